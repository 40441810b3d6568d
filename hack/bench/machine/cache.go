package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Forget writes the files of directories to the disk and drops them from the page
// cache. Pages that a process has mapped stay.
func Forget(dirs ...string) error {
	return eachFile(dirs, func(f *os.File, size int64) error {
		return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, size, unix.FADV_DONTNEED))
	})
}

// Bytes is how much the files of directories hold.
func Bytes(dirs ...string) (total int64, err error) {
	err = eachFile(dirs, func(_ *os.File, size int64) error {
		total += size
		return nil
	})
	return total, err
}

func eachFile(dirs []string, visit func(f *os.File, size int64) error) error {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			return visit(f, info.Size())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
