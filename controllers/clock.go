package controllers

import (
	"context"
	"sync"
	"time"
)

// readableClock counts the time in which the API could be read. It goes on while
// reads succeed, and time that ended in a failed read is taken back: a leader that
// could not renew its lease because nobody could reach the API is not silent.
//
// It has to run (it is a manager.Runnable) to notice an outage. Its zero point is
// arbitrary; only differences mean something.
type readableClock struct {
	read     func(context.Context) error
	interval time.Duration
	now      func() time.Time

	mu      sync.Mutex
	counted time.Duration
	// last is the start of the last successful read, zero after a failed one. A
	// success speaks for the time since the success before it.
	last time.Time
}

const (
	// probeInterval is how often the API is read to see that it can be read.
	probeInterval = time.Second
	// probeTimeout ends a read that hangs.
	probeTimeout = 2 * time.Second
)

func newReadableClock(read func(context.Context) error) *readableClock {
	return &readableClock{read: read, interval: probeInterval, now: time.Now}
}

// Start probes until ctx ends.
func (c *readableClock) Start(ctx context.Context) error {
	t := time.NewTicker(c.interval)
	defer t.Stop()
	for {
		c.probe(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// NeedLeaderElection lets the clock run in every operator process, so that one that
// takes over knows at once whether the API was readable.
func (c *readableClock) NeedLeaderElection() bool { return false }

func (c *readableClock) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begin := c.now()
	err := c.read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.last = time.Time{}
		return
	}
	if !c.last.IsZero() {
		c.counted += begin.Sub(c.last)
	}
	c.last = begin
}

// reading is the time counted so far. Since the last success it runs on
// provisionally, for at most the time that noticing an outage takes.
func (c *readableClock) reading() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return c.counted
	}
	return c.counted + min(c.now().Sub(c.last), c.interval+probeTimeout)
}
