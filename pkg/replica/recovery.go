package replica

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// recoveryClock tells how far the recovery of the log is, which may take minutes after a
// power cut: in /v1/status all the time, and in the log now and then.
type recoveryClock struct {
	log         logr.Logger
	front       *front
	begun, told time.Time
}

// recoveryTold is how often the log tells it.
const recoveryTold = 10 * time.Second

func newRecoveryClock(log logr.Logger, f *front) *recoveryClock {
	now := time.Now()
	return &recoveryClock{log: log, front: f, begun: now, told: now}
}

// checking is told how many bytes of the log have been read and checked.
func (c *recoveryClock) checking(done, total int64) {
	message := tellChecking(done, total, time.Since(c.begun))
	c.front.enter("Recovering", message)
	if now := time.Now(); now.Sub(c.told) >= recoveryTold {
		c.told = now
		c.log.Info("recovering the log", "progress", message)
	}
}

func tellChecking(done, total int64, took time.Duration) string {
	const mib = 1 << 20
	message := fmt.Sprintf("checked %d of %d MiB of the log", done/mib, total/mib)
	if done >= mib && done < total {
		left := time.Duration(float64(took) / float64(done) * float64(total-done))
		message += fmt.Sprintf(", about %s left", max(left.Round(time.Second), time.Second))
	}
	return message
}
