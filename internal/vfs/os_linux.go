package vfs

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxVec is the most buffers that one pwritev takes (IOV_MAX).
const maxVec = 1024

// WriteVec implements File with pwritev, and goes on after a short write, so that
// the error that stopped it (ENOSPC as a rule) is the one returned.
func (f osFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	if len(bufs) == 1 {
		return f.writeEach(bufs, off)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var done int64
	for rest := bufs; len(rest) > 0; {
		var n int
		var werr error
		err := raw.Control(func(fd uintptr) {
			n, werr = pwritev(int(fd), rest[:min(len(rest), maxVec)], off+done)
		})
		if err == nil {
			err = werr
		}
		if err != nil {
			return done, &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
		}
		done += int64(n)
		skipped := len(rest)
		rest = advance(rest, n)
		if n == 0 && skipped == len(rest) {
			return done, &os.PathError{Op: "pwritev", Path: f.Name(), Err: io.ErrShortWrite}
		}
	}
	return done, nil
}

// Allocate implements File. What the file system cannot allocate is only made longer.
func (f osFile) Allocate(size int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var aerr error
	err = raw.Control(func(fd uintptr) {
		for aerr = unix.EINTR; errors.Is(aerr, unix.EINTR); {
			aerr = unix.Fallocate(int(fd), 0, 0, size)
		}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(aerr, unix.EOPNOTSUPP), errors.Is(aerr, unix.ENOSYS):
		return f.atLeast(size)
	case aerr != nil:
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: aerr}
	}
	return nil
}

// Space implements FS.
func (OS) Space(dir string) (Space, error) {
	var st unix.Statfs_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statfs(filepath.FromSlash(dir), &st)
	}
	if err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := st.Frsize
	if size == 0 {
		size = st.Bsize
	}
	return Space{Free: blocks(st.Bavail, size), Total: blocks(st.Blocks, size)}, nil
}

// blocks is their size, MaxInt64 where a file system tells more than can be.
func blocks(n uint64, size int64) int64 {
	if size <= 0 || n > uint64(math.MaxInt64/size) {
		return math.MaxInt64
	}
	return int64(n) * size
}

func pwritev(fd int, bufs [][]byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev(fd, bufs, off)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// advance drops the first n bytes of bufs, without changing the caller's slices.
func advance(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n == 0 {
		return bufs
	}
	rest := append([][]byte{bufs[0][n:]}, bufs[1:]...)
	return rest
}
