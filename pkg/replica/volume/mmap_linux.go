package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// onTmpfs refuses a directory whose content could outlive the page cache, or be lost
// before it.
func onTmpfs(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	if st.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is not on tmpfs: mount a memory-backed emptyDir there", dir)
	}
	return nil
}

// mapFile maps an existing file of that size for reading and writing.
func mapFile(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < int64(size) {
		// Beyond the end of a file, memory faults.
		return nil, fmt.Errorf("%s has %d bytes, expected %d", path, st.Size(), size)
	}
	return mmap(f, size)
}

// createMapped makes a file, fills it through fill and gives it its name.
func createMapped(path string, size int, fill func([]byte)) ([]byte, error) {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// In full: a page that cannot be had later would kill the process.
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("allocate %d bytes in %s: %w", size, tmp, err)
	}
	b, err := mmap(f, size)
	if err != nil {
		return nil, err
	}
	fill(b)
	if err := os.Rename(tmp, path); err != nil {
		return nil, errors.Join(err, unmap(b))
	}
	return b, nil
}

func mmap(f *os.File, size int) ([]byte, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return b, nil
}

func unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}
