package processes

import (
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tidemark-io/tidemark/test/nemesis"
)

// lastWords is how long a zombie runs that has woken up when its successor was at work.
const lastWords = 3 * time.Second

// zombie lets a process stand still, starts another on a copy of its volume, and lets the first go on: at once, or when
// it is healed. In the end it is killed.
func (r *storm) zombie(f nemesis.Fault, c *container) (heal func() error, err error) {
	if !c.signal(syscall.SIGSTOP) {
		return nil, fmt.Errorf("no process: %w", errPassed)
	}
	if err := r.leaveBehind(c); err != nil {
		c.signal(syscall.SIGCONT)
		return nil, err
	}
	end := nothingFails(func() { c.end(syscall.SIGKILL) })
	if f.Pick%2 == 0 {
		c.signal(syscall.SIGCONT)
		return end, nil
	}
	return func() error {
		c.signal(syscall.SIGCONT)
		r.endure(f, c.name, lastWords, end)
		return nil
	}, nil
}

// leaveBehind moves the pod and a copy of its volume away from a process that stands still.
func (r *storm) leaveBehind(c *container) error {
	// Both say: all that was acknowledged is on this volume. A disk that is taken away from a node takes no more writes
	// and so keeps that true, but the zombie's directory does take them.
	for _, proof := range []string{everyBatch, cleanMark} {
		if exists(filepath.Join(c.volume, proof)) {
			return fmt.Errorf("the volume has the proof %s: %w", proof, errPassed)
		}
	}
	if err := r.loseProof(c); err != nil {
		return err
	}
	back, err := r.p.kubelet.move(c)
	if err != nil {
		return err
	}
	c.forget(true)
	if err := r.deleteObject(c, true); err != nil {
		c.forget(false)
		back()
		return err
	}
	return nil
}
