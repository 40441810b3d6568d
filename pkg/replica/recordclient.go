package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// recordClient does the node's reads and writes of the record, and its syncs of the
// log, in the background, and hands the results back to the loop.
type recordClient struct {
	store   RecordStore
	mailbox *mailbox
	timeout time.Duration
	metrics *metrics
	ctx     context.Context
	running sync.WaitGroup
}

var _ node.RecordPort = (*recordClient)(nil)

// background runs work outside of the loop, and what it returns in the loop.
func (c *recordClient) background(work func() func(*node.Node)) {
	c.running.Go(func() { c.mailbox.post(work()) })
}

// Write implements node.RecordPort.
func (c *recordClient) Write(base epoch.Snapshot, next epoch.Record) {
	c.background(func() func(*node.Node) {
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		s, err := c.store.Update(ctx, base, next)
		c.metrics.recordWrites.WithLabelValues(writeResult(err)).Inc()
		if err != nil {
			return func(n *node.Node) { n.WriteFailed(err) }
		}
		return func(n *node.Node) { n.Written(s) }
	})
}

// Read implements node.RecordPort.
func (c *recordClient) Read() {
	c.background(func() func(*node.Node) {
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		s, err := c.store.Get(ctx)
		if err != nil {
			return func(n *node.Node) { n.ReadFailed(err) }
		}
		return func(n *node.Node) { n.ReadDone(s) }
	})
}

// flush runs a sync of the log.
func (c *recordClient) flush(work func() error) {
	begun := time.Now()
	c.background(func() func(*node.Node) {
		err := work()
		c.metrics.flushSeconds.Observe(time.Since(begun).Seconds())
		return func(n *node.Node) { n.FlushDone(err) }
	})
}

// compact runs a step of a compaction.
func (c *recordClient) compact(work func(pace func(int64) error) error) {
	c.background(func() func(*node.Node) {
		err := work(newPacer(c.ctx, compactRate).pace)
		return func(n *node.Node) { n.Compacted(err) }
	})
}

// watch delivers what the store shows until ctx ends.
func (c *recordClient) watch(ctx context.Context) {
	_ = c.store.Watch(ctx, func(s epoch.Snapshot) {
		c.mailbox.post(func(n *node.Node) { n.Observe(s) })
	}, func(error) {})
}

func writeResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, epoch.ErrConflict):
		return "conflict"
	case errors.Is(err, epoch.ErrRejected):
		return "rejected"
	default:
		return "undecided"
	}
}
