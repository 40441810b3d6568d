package replica

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// The scrub reads the whole log once a week, as slowly as that allows: a record that nobody
// reads for years would otherwise be found damaged when no other replica holds it any more.
const (
	scrubPeriod = 7 * 24 * time.Hour
	scrubChunk  = 1 << 20
	// scrubPause is the longest pause between two chunks; small logs are read more often.
	scrubPause = time.Minute
)

// noteDamage tells the loop what a read has found, if that is damage.
func (r *Replica) noteDamage(err error) {
	if errors.Is(err, log.ErrDamaged) {
		r.mailbox.post(func(n *node.Node) { n.NoteDamage(err) })
	}
}

// scrub runs until ctx ends.
func (r *Replica) scrub(ctx context.Context) {
	l := r.node.Log()
	next := l.StartOffset()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseOf(l.Size())):
		}
		next = scrubOnce(l, next, r.view().HighWatermark, r.noteDamage)
	}
}

// pauseOf is how long to wait between two chunks of a log of that many bytes.
func pauseOf(bytes int64) time.Duration {
	return min(scrubPause, scrubPeriod/time.Duration(bytes/scrubChunk+1))
}

// scrubOnce checks a chunk from an offset on, and returns where to go on.
func scrubOnce(l *log.Log, from, limit epoch.Offset, damaged func(error)) epoch.Offset {
	next, err := l.Verify(from, limit, scrubChunk)
	if err != nil {
		damaged(err)
	}
	if err != nil || next == from { // at the end, or what was there is deleted
		return l.StartOffset()
	}
	return next
}
