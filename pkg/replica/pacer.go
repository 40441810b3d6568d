package replica

import (
	"context"
	"time"
)

// compactRate bounds what compaction reads, in bytes a second, so that clients do not feel
// it.
const compactRate = 32 << 20

// pacer delays work so that it takes no more than rate bytes a second.
type pacer struct {
	ctx  context.Context
	rate int64
	next time.Time // when what was told of before is worked off
}

func newPacer(ctx context.Context, rate int64) *pacer { return &pacer{ctx: ctx, rate: rate} }

// pace waits until so many bytes may be read. It returns early, with an error, when ctx ends.
// It is not for several goroutines.
func (p *pacer) pace(bytes int64) error {
	now := time.Now()
	wait := p.next.Sub(now)
	if wait < 0 {
		p.next, wait = now, 0
	}
	p.next = p.next.Add(time.Duration(bytes) * time.Second / time.Duration(p.rate))
	if wait < time.Millisecond { // too short to sleep for
		return p.ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}
