package volume

import (
	"encoding/json"
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

// importStart is whose clean mark an import leaves: that of the start which the record that
// speaks for it names.
const importStart epoch.StartID = "import"

// Identify makes a directory that holds an imported log, all of it synced, the data
// directory of a replica, durably: without it a start sets the log aside. The directory must
// not have an identity yet.
func Identify(fsys vfs.FS, dir string, i Import) error {
	name := path.Join(dir, metaFile)
	if _, err := fsys.Stat(name); err == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mark, err := json.Marshal(cleanMark{StartID: importStart})
	if err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(fsys, path.Join(dir, cleanFile), mark); err != nil {
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

// ImportedRecord speaks for an imported log, which ends at an offset, where a record is made
// of what replicas remember: as if this replica had been the partition's only one, in sync,
// and had stopped in good order. Its change has a name of its own: of several imported logs
// with the same epochs the longest wins, and none passes for another. A record that was
// acted upon at the same epochs wins over it. It is nil for a volume that no log was
// imported to.
func (v *Volume) ImportedRecord(end epoch.Offset) (*epoch.Record, error) {
	i, ok, err := Imported(v.fs, v.cfg.Dir)
	if err != nil || !ok {
		return nil, err
	}
	r := epoch.New(i.TopicID, []epoch.ReplicaID{i.Replica}, 1, epoch.ChangeID(fmt.Sprintf(".%s-%020d-%s", importStart, end, v.id.directoryID)))
	r.LeaderEpoch, r.PartitionEpoch = max(i.LeaderEpoch, 0), epoch.PartitionEpochFor(i.ProducerID)
	r.Changes[0].LeaderEpoch, r.Changes[0].PartitionEpoch = r.LeaderEpoch, r.PartitionEpoch
	r.Replicas[0].DirectoryID, r.Replicas[0].VolumeID, r.Replicas[0].StartID = v.id.directoryID, v.id.volumeID, importStart
	return &r, nil
}

// Stranger reports that the log was imported, and is not the one that a record speaks of: it
// names this volume for it, or has only this replica, which never registered. Of a stranger
// nobody knows what it shares with the partition's log: its leader epochs may have the same
// numbers.
func (v *Volume) Stranger(r epoch.Record) (bool, error) {
	_, ok, err := Imported(v.fs, v.cfg.Dir)
	if err != nil || !ok {
		return false, err
	}
	mine, _ := r.Replica(v.cfg.ReplicaID)
	return mine.DirectoryID != v.id.directoryID && (len(r.Replicas) != 1 || !mine.DirectoryID.IsZero()), nil
}
