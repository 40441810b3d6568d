package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Identify makes a directory that holds an imported log the data directory of a replica,
// durably: without it a start sets the log aside. The directory must not have an identity
// yet. The first start draws a directory id of its own, since none was registered.
func Identify(fsys vfs.FS, dir, topic string, topicID epoch.UUID, replica epoch.ReplicaID) error {
	name := path.Join(dir, metaFile)
	if _, err := fsys.Stat(name); err == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m := identity{topic: topic, topicID: topicID, replica: replica, directoryID: newUUID(), volumeID: newUUID()}
	return vfs.WriteFileAtomic(fsys, name, m.format())
}

// Imported tells the topic id of a data directory that holds a log of the topic and that no
// replica has registered from: an import. It returns false for any other.
func Imported(fsys vfs.FS, dir, topic string) (epoch.UUID, bool, error) {
	_, err := fsys.Stat(path.Join(dir, recordFile))
	if err == nil {
		return epoch.UUID{}, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return epoch.UUID{}, false, err
	}
	b, err := vfs.ReadFile(fsys, path.Join(dir, metaFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return epoch.UUID{}, false, nil
	}
	if err != nil {
		return epoch.UUID{}, false, err
	}
	m, err := parseIdentity(b)
	if err != nil || m.topic != topic {
		return epoch.UUID{}, false, nil // the start says what is wrong with it
	}
	return m.topicID, true, nil
}
