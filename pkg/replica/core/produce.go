package core

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// waiter is a produce request with acks=all that waits for its commit.
type waiter struct {
	token    uint64
	required epoch.Offset // committed when HW ≥ required
	deadline time.Duration
}

// Acks as a produce request asks for it.
const (
	AcksNone int16 = 0
	AcksOne  int16 = 1
	AcksAll  int16 = -1
)

// AdmitProduce says whether this replica may append, and under which epoch. With
// acks=all it refuses, before anything is appended, when fewer than min ISR members
// are live.
func (c *Core) AdmitProduce(now time.Duration, acks int16) (epoch.LeaderEpoch, error) {
	if c.role != Leader {
		return epoch.NoEpoch, ErrNotLeader
	}
	rec := c.snap.Record
	if acks == AcksAll {
		if len(c.LiveISR(now)) < rec.MinISR && !guard.Off(guard.RefuseBelowMinISR) {
			return epoch.NoEpoch, ErrNotEnoughReplicas
		}
	} else if !c.MayServe(now) {
		return epoch.NoEpoch, ErrNotLeader
	}
	return rec.LeaderEpoch, nil
}

// MayServe is rule 8 for what does not wait for the high watermark: acks 0 and 1,
// and reads. A leader that cannot renew goes on while every replica that was live at
// its last renewal still fetches in its epoch: those would know of a newer leader.
func (c *Core) MayServe(now time.Duration) bool {
	if c.role != Leader {
		return false
	}
	if now-c.rec.renewedAt <= c.opts.LeaseDuration || guard.Off(guard.StaleServing) {
		return true
	}
	for _, id := range c.rec.liveAtRenewal {
		r := c.remotes[id]
		if r == nil || r.leo == epoch.NoOffset || now-r.fetchedAt > c.opts.LeaseDuration {
			return false
		}
	}
	return len(c.rec.liveAtRenewal) > 0 || len(c.snap.Record.Replicas) == 1
}

// Appended says that this leader's log has grown.
func (c *Core) Appended() {
	c.advance()
	c.emit(Changed{})
}

// Flushed says that FlushedOffset has moved.
func (c *Core) Flushed() { c.advance() }

// Await answers a produce request by a Complete effect once everything below
// required is committed, or at the deadline with ErrTimedOut: the records stay.
func (c *Core) Await(token uint64, required epoch.Offset, deadline time.Duration) {
	if c.role != Leader {
		c.emit(Complete{Token: token, Err: ErrNotLeader})
		return
	}
	if c.hw >= required || guard.Off(guard.AcknowledgeOnlyCommitted) {
		c.emit(Complete{Token: token, Err: c.committed()})
		return
	}
	c.waiters = append(c.waiters, waiter{token, required, deadline})
}

// committed is the last check before an acknowledgement (I11).
func (c *Core) committed() error {
	if len(c.maximalISR()) < c.snap.Record.MinISR {
		return ErrNotEnoughReplicasAfterAppend
	}
	return nil
}

func (c *Core) completeWaiters() {
	c.waiters = slices.DeleteFunc(c.waiters, func(w waiter) bool {
		if c.hw < w.required {
			return false
		}
		c.emit(Complete{Token: w.token, Err: c.committed()})
		return true
	})
}

func (c *Core) failWaiters(err error) {
	for _, w := range c.waiters {
		c.emit(Complete{Token: w.token, Err: err})
	}
	c.waiters = nil
}

func (c *Core) expireWaiters(now time.Duration) {
	c.waiters = slices.DeleteFunc(c.waiters, func(w waiter) bool {
		if now < w.deadline {
			return false
		}
		c.emit(Complete{Token: w.token, Err: ErrTimedOut})
		return true
	})
}
