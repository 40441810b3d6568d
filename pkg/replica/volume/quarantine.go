package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	quarantineDir = "quarantine"
	metadataFile  = "partition.metadata"
)

// companions are the files that speak about the log in the partition directory, and
// so go where it goes: an old log start over a new log would empty it.
var companions = []string{
	"log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
	recordFile, everyBatchFile, cleanFile, failedFile,
}

var partitionDir = regexp.MustCompile(`^.+-[0-9]+$`)

// stray is a partition directory that must not be used, and why.
type stray struct {
	name   string
	owner  string // its topic id, or "unknown"
	reason string
}

// findStrays looks for partition directories that are not the partition's own. With
// known false the volume's identity is missing and every one is a stray: data without
// identity is never adopted (KAFKA-16814).
func findStrays(fsys vfs.FS, dir, own string, topicID epoch.UUID, known bool) ([]stray, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var out []stray
	for _, name := range names {
		if !partitionDir.MatchString(name) {
			continue
		}
		files, err := fsys.List(path.Join(dir, name))
		if err != nil || len(files) == 0 {
			continue // a file, or a directory that holds nothing yet
		}
		owner, err := ownerOf(fsys, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		switch {
		case owner == "unknown":
			out = append(out, stray{name, owner, "it does not say which topic id it belongs to"})
		case owner != topicID.String():
			out = append(out, stray{name, owner, "it belongs to another topic id"})
		case name != own:
			out = append(out, stray{name, owner, "it is of another topic name"})
		case !known:
			out = append(out, stray{name, owner, "the volume's identity is missing"})
		}
	}
	return out, nil
}

// ownerOf reads the topic id from partition.metadata; "unknown" if that is missing
// or broken.
func ownerOf(fsys vfs.FS, dir string) (string, error) {
	b, err := vfs.ReadFile(fsys, path.Join(dir, metadataFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "unknown", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", metadataFile, path.Base(dir), err)
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if id, err := epoch.ParseUUID(strings.TrimSpace(value)); key == "topic_id" && err == nil {
			return id.String(), nil
		}
	}
	return "unknown", nil
}

// quarantine sets strays aside, durably, each under a name that is free, and with
// them, if they speak about such a log, the companions. The directories go last: they
// are what a start after a crash in between finds, and begins again. It returns the
// new names, relative to the volume.
func quarantine(fsys vfs.FS, dir string, strays []stray, companionsToo bool) ([]string, error) {
	base := path.Join(dir, quarantineDir)
	taken, err := fsys.List(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var moved []string
	if companionsToo {
		to := freeName(taken, "files")
		some, err := moveCompanions(fsys, dir, path.Join(base, to))
		if err != nil {
			return nil, err
		}
		if some {
			moved, taken = append(moved, path.Join(quarantineDir, to)), append(taken, to)
		}
	}
	if len(strays) == 0 {
		return moved, nil
	}
	if err := fsys.MkdirAll(base); err != nil {
		return nil, err
	}
	for _, s := range strays {
		to := freeName(taken, s.name+"."+s.owner)
		if err := fsys.Rename(path.Join(dir, s.name), path.Join(base, to)); err != nil {
			return nil, err
		}
		moved, taken = append(moved, path.Join(quarantineDir, to)), append(taken, to)
	}
	return moved, errors.Join(fsys.SyncDir(base), fsys.SyncDir(dir))
}

// moveCompanions leaves the volume without any word about a log, and reports whether
// there was one.
func moveCompanions(fsys vfs.FS, dir, to string) (bool, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return false, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(companions, n) })
	if len(names) == 0 {
		return false, nil
	}
	if err := fsys.MkdirAll(to); err != nil {
		return false, err
	}
	for _, name := range names {
		if err := fsys.Rename(path.Join(dir, name), path.Join(to, name)); err != nil {
			return false, err
		}
	}
	return true, errors.Join(fsys.SyncDir(to), fsys.SyncDir(path.Dir(to)), fsys.SyncDir(dir))
}

func freeName(taken []string, name string) string {
	free := name
	for n := 1; slices.Contains(taken, free); n++ {
		free = fmt.Sprintf("%s.%d", name, n)
	}
	return free
}
