package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Import is a log that was not written under the record that it will be served by.
type Import struct {
	Topic   string
	TopicID epoch.UUID
	Replica epoch.ReplicaID
	// LeaderEpoch is the newest of the log; a record has to begin with no older one.
	LeaderEpoch epoch.LeaderEpoch
	// ProducerID is the greatest that the log knows, -1 for none. Who gets one of them
	// anew would have records taken for ones that are there.
	ProducerID int64
}

// Keys of meta.properties that Identify writes. The first start under a record draws a new
// directory id, and leaves them out.
const (
	importEpochKey    = "tidemark.import.leader.epoch"
	importProducerKey = "tidemark.import.producer.id"
)

// Identify makes a directory that holds an imported log the data directory of a replica,
// durably: without it a start sets the log aside. The directory must not have an identity
// yet.
func Identify(fsys vfs.FS, dir string, i Import) error {
	name := path.Join(dir, metaFile)
	if _, err := fsys.Stat(name); err == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m := identity{topic: i.Topic, topicID: i.TopicID, replica: i.Replica, directoryID: newUUID(), volumeID: newUUID()}
	return vfs.WriteFileAtomic(fsys, name, fmt.Appendf(m.format(), "%s=%d\n%s=%d\n", importEpochKey, i.LeaderEpoch, importProducerKey, i.ProducerID))
}

// Imported tells what Identify wrote, false if that is not there, or no more.
func Imported(fsys vfs.FS, dir string) (Import, bool, error) {
	b, err := vfs.ReadFile(fsys, path.Join(dir, metaFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Import{}, false, nil
	}
	if err != nil {
		return Import{}, false, err
	}
	m, err := parseIdentity(b)
	if err != nil {
		return Import{}, false, nil // the start says what is wrong with it
	}
	values, err := properties(b)
	if err != nil || values[importEpochKey] == "" {
		return Import{}, false, err
	}
	e, eerr := strconv.ParseInt(values[importEpochKey], 10, 32)
	p, perr := strconv.ParseInt(values[importProducerKey], 10, 64)
	if err := errors.Join(eerr, perr); err != nil {
		return Import{}, false, fmt.Errorf("%s: %w", metaFile, err)
	}
	return Import{Topic: m.topic, TopicID: m.topicID, Replica: m.replica, LeaderEpoch: epoch.LeaderEpoch(e), ProducerID: p}, true, nil
}
