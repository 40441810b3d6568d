package replica

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// parkedFetch is a follower's fetch that waits for records or a higher watermark.
type parkedFetch struct {
	request core.ReplicaFetch
	until   time.Duration
	answer  chan<- fetchOutcome
	cancel  <-chan struct{}
}

type fetchOutcome struct {
	answer core.FetchAnswer
	err    error
}

// replicaFetch counts a follower's fetch, and answers it or parks it.
func (n *node) replicaFetch(f *parkedFetch) {
	a, err := n.core.Fetch(n.now(), f.request)
	if n.worthAnswering(f, a, err) {
		f.answer <- fetchOutcome{a, err}
		return
	}
	n.parked = append(n.parked, f)
}

// worthAnswering: news of any kind ends the wait. A higher watermark is news even
// without records, so that followers know early what is committed (KIP-1166).
func (n *node) worthAnswering(f *parkedFetch, a core.FetchAnswer, err error) bool {
	return err != nil || a.Diverging != nil || a.LogEndOffset > f.request.Offset ||
		a.HighWatermark > f.request.HighWatermark || a.LogStartOffset > f.request.LogStartOffset || n.now() >= f.until
}

// answerParked answers what has become worth it. A fetch is not counted twice.
func (n *node) answerParked() {
	waiting := n.parked[:0]
	for _, f := range n.parked {
		select {
		case <-f.cancel:
			continue
		default:
		}
		a, err := n.core.Peek(f.request)
		if n.worthAnswering(f, a, err) {
			f.answer <- fetchOutcome{a, err}
		} else {
			waiting = append(waiting, f)
		}
	}
	clear(n.parked[len(waiting):])
	n.parked = waiting
}
