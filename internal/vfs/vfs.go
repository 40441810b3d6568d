package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"
)

// FS is a file system. All methods may be called by several goroutines.
type FS interface {
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Create makes an empty file, in place of what has that name, and opens it for
	// reading and writing. The name is durable after SyncDir.
	Create(name string) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename gives a file another name, in place of what has that name, atomically.
	Rename(from, to string) error
	// MkdirAll makes a directory and those above it, unless they exist.
	MkdirAll(dir string) error
	// List returns the names of the files and directories in dir, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (Info, error)
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
	// Space tells what the disk, or the quota, that dir is on has left.
	Space(dir string) (Space, error)
}

// Space is the room on a disk, in bytes.
type Space struct {
	// Free is what may still be written, Total what the disk holds. Both are
	// math.MaxInt64 where nobody sets a limit.
	Free, Total int64
}

// File is an open file. Reads may run beside writes. Once closed, or after its
// name was removed, the file stays usable through other open handles.
type File interface {
	io.ReaderAt
	io.Closer
	// WriteVec writes the buffers one behind the other, beginning at off, as one
	// write where the system can. It returns how many bytes were written.
	WriteVec(bufs [][]byte, off int64) (int64, error)
	// Truncate sets the size.
	Truncate(size int64) error
	// Allocate makes the file at least that long, and takes the room for it on the disk
	// at once, where the file system can.
	Allocate(size int64) error
	// Sync makes content and size durable. After an error nothing is known about
	// what is durable, and trying again proves nothing ("fsyncgate").
	Sync() error
	// Size is the present size in bytes.
	Size() (int64, error)
}

// Info describes a file.
type Info struct {
	Size    int64
	ModTime time.Time
}

// IsNoSpace reports that err says that the disk, or the quota on it, is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// ReadFile reads a whole file of at most limit bytes. A larger one is an error, so
// that a damaged disk cannot fill the memory.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%d bytes, expected at most %d", size, limit)}
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, err
	}
	return b, nil
}

// WriteFile replaces the content of a file without making it durable.
func WriteFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		_, err = f.WriteVec([][]byte{data}, 0)
	}
	return errors.Join(err, f.Close())
}

// WriteFileAtomic replaces a file durably: after a crash at any moment it has
// either the old content or the new one (KAFKA-1539: the file is synced before it
// gets its name). The content goes to name + ".tmp" first.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := WriteFileSynced(fsys, tmp, data); err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// WriteFileSynced replaces the content of a file and makes it durable, but not its name.
func WriteFileSynced(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		_, err = f.WriteVec([][]byte{data}, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
