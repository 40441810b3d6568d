//go:build unix

package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock is an flock on <dir>/.lock, Kafka's name for it. It ends with the process.
type lock struct{ f *os.File }

// acquire takes the lock without waiting. The file names the pod that holds it, for
// the message of the next one; nothing depends on what it says.
func acquire(dir, podUID string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 200))
		_ = f.Close()
		return nil, fmt.Errorf("another process holds the volume's lock (%q): two pods use one volume, or the last process is still ending; stop the other one, this one may then be restarted", holder)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock the volume: %w; its file system must support flock", err)
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "pod %s, process %d", podUID, os.Getpid()), 0)
	}
	return &lock{f}, nil
}

// release closes the file, and with it gives the lock up.
func (l *lock) release() { _ = l.f.Close() }
