package vfs

import (
	"io"
	"os"
	"path/filepath"
)

// OS is the operating system's file system.
type OS struct{}

// osFile adds to os.File what File asks for beyond it.
type osFile struct{ *os.File }

// Open implements FS.
func (OS) Open(name string) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Create implements FS.
func (OS) Create(name string) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

// Rename implements FS.
func (OS) Rename(from, to string) error {
	return os.Rename(filepath.FromSlash(from), filepath.FromSlash(to))
}

// MkdirAll implements FS.
func (OS) MkdirAll(dir string) error { return os.MkdirAll(filepath.FromSlash(dir), 0o755) }

// List implements FS.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat implements FS.
func (OS) Stat(name string) (Info, error) {
	st, err := os.Stat(filepath.FromSlash(name))
	if err != nil {
		return Info{}, err
	}
	return Info{Size: st.Size(), ModTime: st.ModTime()}, nil
}

// SyncDir implements FS.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Size implements File.
func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// atLeast makes a shorter file that long.
func (f osFile) atLeast(size int64) error {
	if have, err := f.Size(); err != nil || have >= size {
		return err
	}
	return f.Truncate(size)
}

// writeEach is WriteVec for systems without a vectored write.
func (f osFile) writeEach(bufs [][]byte, off int64) (int64, error) {
	var done int64
	for _, b := range bufs {
		n, err := f.WriteAt(b, off+done)
		done += int64(n)
		if err != nil {
			return done, err
		}
		if n < len(b) {
			return done, io.ErrShortWrite
		}
	}
	return done, nil
}
