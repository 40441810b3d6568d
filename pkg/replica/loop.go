package replica

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

const (
	// tickEvery is how often time passes for the node.
	tickEvery = 50 * time.Millisecond
	// maxGather bounds how many produce requests share one write.
	maxGather = 512
)

// mailbox is how everybody else talks to the loop.
type mailbox struct {
	calls    chan func(*node.Node)
	produces chan node.Produce
	released chan struct{} // closed when an orderly stop need not wait any longer
	ended    chan struct{} // closed when the loop has ended
}

func newMailbox() *mailbox {
	return &mailbox{calls: make(chan func(*node.Node), 256), produces: make(chan node.Produce, maxGather),
		released: make(chan struct{}), ended: make(chan struct{})}
}

// post hands a call to the loop, and reports false if the loop has ended.
func (m *mailbox) post(call func(*node.Node)) bool {
	select {
	case m.calls <- call:
		return true
	case <-m.ended:
		return false
	}
}

// ask runs a call in the loop and waits for it.
func (m *mailbox) ask(ctx context.Context, call func(*node.Node)) bool {
	done := make(chan struct{})
	wrapped := func(n *node.Node) {
		call(n)
		close(done)
	}
	select {
	case m.calls <- wrapped:
	case <-m.ended:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-m.ended:
		return false
	case <-ctx.Done():
		return false
	}
}

// run is the partition's loop, the owner of the node. It ends with ctx, or with the
// failure of the node.
func (m *mailbox) run(ctx context.Context, n *node.Node) error {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	gathered := make([]node.Produce, 0, maxGather)
	n.Start()
	for released := false; n.Err() == nil; {
		select {
		case <-ctx.Done():
			return m.end(n)
		case call := <-m.calls:
			call(n)
		case p := <-m.produces:
			gathered = gather(append(gathered[:0], p), m.produces)
			n.Produce(gathered)
			clear(gathered)
		case <-ticker.C:
			n.Tick()
		}
		if !released && n.Released() {
			released = true
			close(m.released)
		}
	}
	return m.end(n)
}

// end answers who still waits: this process serves nobody any more.
func (m *mailbox) end(n *node.Node) error {
	close(m.ended)
	err := n.End()
	for {
		select {
		case p := <-m.produces:
			p.Done(node.Produced{BaseOffset: epoch.NoOffset, LogStartOffset: n.Log().StartOffset(), Err: core.ErrNotLeader})
		default:
			return err
		}
	}
}

// gather takes what else waits, so that it shares one write.
func gather(requests []node.Produce, more <-chan node.Produce) []node.Produce {
	for len(requests) < maxGather {
		select {
		case p := <-more:
			requests = append(requests, p)
		default:
			return requests
		}
	}
	return requests
}
