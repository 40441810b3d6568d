package logtool

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

var partitionDir = regexp.MustCompile(`^.+-[0-9]+$`)

// standaloneVolume is the data directory within that of `replica standalone`.
const standaloneVolume = "volume"

// Find opens the log of a directory: a partition's own, or a data directory that holds
// exactly one, or that of `replica standalone`. path is the partition's.
func Find(dir string) (in *log.Inspector, path string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	root, name, err := place(abs)
	if err != nil {
		return nil, "", err
	}
	in, err = log.Inspect(os.DirFS(root), name)
	return in, filepath.Join(root, name), err
}

// place splits the path of a log into data directory and partition directory.
func place(dir string) (root, name string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", "", err
	}
	var found []string
	for _, e := range entries {
		switch {
		case ofPartition(e.Name()):
			return filepath.Dir(dir), filepath.Base(dir), nil
		case e.IsDir() && partitionDir.MatchString(e.Name()):
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 1:
		return dir, found[0], nil
	case 0:
		if inner := filepath.Join(dir, standaloneVolume); filepath.Base(dir) != standaloneVolume {
			if root, name, err := place(inner); err == nil {
				return root, name, nil
			}
		}
		return "", "", fmt.Errorf("%s is neither a partition's directory nor a data directory with one: %w", dir, fs.ErrNotExist)
	}
	return "", "", fmt.Errorf("%s holds %d partitions (%s): name the directory of one", dir, len(found), strings.Join(found, ", "))
}

// ofPartition reports a file that only a partition's directory has.
func ofPartition(name string) bool {
	return name == "partition.metadata" || name == "leader-epoch-checkpoint" || len(name) == len("00000000000000000000.log") && strings.HasSuffix(name, ".log")
}
