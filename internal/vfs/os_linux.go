package vfs

import (
	"errors"
	"io"
	"os"

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
