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

// acquire takes an flock on <dir>/.lock, Kafka's name for it, without waiting. It ends
// with the process, or when release closes the file. The file names the pod that holds
// it, for the message of the next one; nothing depends on what it says.
func acquire(dir, podUID string) (release func(), err error) {
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
	return func() { _ = f.Close() }, nil
}
