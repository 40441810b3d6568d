package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// recordClient does the loop's reads and writes of the record in the background, and
// hands the results back to the loop. The core asks for one at a time.
type recordClient struct {
	store   RecordStore
	mailbox *mailbox
	timeout time.Duration
	metrics *metrics
	ctx     context.Context
	running sync.WaitGroup
}

// background runs work outside of the loop, and what it returns in the loop.
func (c *recordClient) background(work func() func(*node)) {
	c.running.Go(func() { c.mailbox.post(work()) })
}

func (c *recordClient) write(base epoch.Snapshot, next epoch.Record) {
	c.background(func() func(*node) {
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		s, err := c.store.Update(ctx, base, next)
		c.metrics.recordWrites.WithLabelValues(writeResult(err)).Inc()
		return func(n *node) {
			if err != nil {
				n.noteRecordError(err)
				n.core.WriteFailed(n.now(), err)
				return
			}
			n.noteRecordError(nil)
			n.core.Written(n.now(), s)
		}
	})
}

func (c *recordClient) read() {
	c.background(func() func(*node) {
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		s, err := c.store.Get(ctx)
		return func(n *node) {
			if err != nil {
				n.noteRecordError(err)
				n.core.ReadFailed(n.now(), err)
				return
			}
			n.noteRecordError(nil)
			n.core.ReadDone(n.now(), s)
		}
	})
}

// watch delivers what the store shows until ctx ends.
func (c *recordClient) watch(ctx context.Context) {
	_ = c.store.Watch(ctx, func(s epoch.Snapshot) {
		c.mailbox.post(func(n *node) { n.core.Observe(n.now(), s, core.FromWatch) })
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

// noteRecordError logs when the record becomes unreachable and reachable again; a
// conflict is everyday business.
func (n *node) noteRecordError(err error) {
	failing := err != nil && !errors.Is(err, epoch.ErrConflict)
	if failing && n.recordError == nil {
		n.cfg.Log.Error(err, "the partition record cannot be read or written; what works goes on working")
	}
	if !failing && n.recordError != nil {
		n.cfg.Log.Info("the partition record can be read and written again")
	}
	n.recordError = nil
	if failing {
		n.recordError = err
	}
}
