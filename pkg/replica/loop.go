package replica

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

const (
	// tickEvery is how often time passes for the core.
	tickEvery = 50 * time.Millisecond
	// checkpointEvery and syncEvery are Kafka's
	// replica.high.watermark.checkpoint.interval.ms and
	// log.flush.offset.checkpoint.interval.ms.
	checkpointEvery = 5 * time.Second
	syncEvery       = time.Minute
	// maxGather bounds how many produce requests share one write.
	maxGather = 512
)

// mailbox is how everybody else talks to the loop.
type mailbox struct {
	calls    chan func(*node)
	produces chan produceMessage
	ended    chan struct{} // closed when the loop has ended
}

func newMailbox() *mailbox {
	return &mailbox{calls: make(chan func(*node), 256), produces: make(chan produceMessage, maxGather), ended: make(chan struct{})}
}

// post hands a call to the loop, and reports false if the loop has ended.
func (m *mailbox) post(call func(*node)) bool {
	select {
	case m.calls <- call:
		return true
	case <-m.ended:
		return false
	}
}

// ask runs a call in the loop and waits for it.
func (m *mailbox) ask(ctx context.Context, call func(*node)) bool {
	done := make(chan struct{})
	wrapped := func(n *node) {
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

// run is the partition's loop. It ends with ctx, or with the failure of the volume.
func (n *node) run(ctx context.Context, m *mailbox) error {
	defer n.end(m)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	gathered := make([]produceMessage, 0, maxGather)
	n.settle()
	for n.failed == nil {
		select {
		case <-ctx.Done():
			return nil
		case call := <-m.calls:
			call(n)
		case p := <-m.produces:
			gathered = gather(append(gathered[:0], p), m.produces)
			n.produce(gathered)
			clear(gathered)
		case <-ticker.C:
			n.tick()
		}
		if n.failed == nil {
			n.settle()
		}
	}
	return n.failed
}

// end answers who still waits: this process serves nobody any more.
func (n *node) end(m *mailbox) {
	close(m.ended)
	for token, done := range n.produces {
		delete(n.produces, token)
		done(core.ErrNotLeader)
	}
	for {
		select {
		case p := <-m.produces:
			n.refuse(p, core.ErrNotLeader)
		default:
			return
		}
	}
}

// gather takes what else waits, so that it shares one write.
func gather(messages []produceMessage, more <-chan produceMessage) []produceMessage {
	for len(messages) < maxGather {
		select {
		case p := <-more:
			messages = append(messages, p)
		default:
			return messages
		}
	}
	return messages
}

// tick lets time pass, and does what is done from time to time.
func (n *node) tick() {
	now := n.now()
	n.core.Tick(now)
	if now-n.checkpointed >= checkpointEvery {
		n.checkpointed = now
		n.checkpoint()
	}
	if now-n.synced >= syncEvery {
		n.synced = now
		n.retain()
		if n.log.FlushedOffset() < n.log.EndOffset() {
			n.flush()
		}
	}
}

// checkpoint writes the high watermark and its like, if they have moved.
func (n *node) checkpoint() {
	state := [3]epoch.Offset{n.core.HighWatermark(), n.log.FlushedOffset(), n.log.StartOffset()}
	if state == n.lastCheckpoint {
		return
	}
	if err := n.log.Checkpoint(state[0]); err != nil {
		n.failUnlessFull(err)
		return
	}
	n.lastCheckpoint = state
}

// retain drops what retention allows. Only the leader decides; followers take over
// its log start.
func (n *node) retain() {
	if !n.core.MayServe(n.now()) {
		return
	}
	start := n.log.StartOffset()
	err := n.changeLog(func() error {
		_, err := n.log.ApplyRetention(time.Now(), n.core.HighWatermark())
		return err
	})
	if err != nil {
		n.failUnlessFull(err)
		return
	}
	if now := n.log.StartOffset(); now > start {
		n.cfg.Log.Info("log start moved by retention", "from", start, "to", now)
	}
}

func (n *node) failUnlessFull(err error) {
	if !n.noteSpace(err) {
		n.fail(err)
	}
}
