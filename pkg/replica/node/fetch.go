package node

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Fetch is a follower's fetch, on the leader.
type Fetch struct {
	Request core.ReplicaFetch
	// MaxWait bounds the wait for records or a higher watermark.
	MaxWait time.Duration
	// Answer is called once, within a call of the Node; then ReadForReplica
	// reads what it allows.
	Answer func(core.FetchAnswer, error)
	// Abandoned reports that nobody waits any more. May be nil.
	Abandoned func() bool

	until time.Duration
}

// ReplicaFetch counts a follower's fetch, and answers it or lets it wait.
func (n *Node) ReplicaFetch(f *Fetch) {
	if n.failed != nil {
		f.Answer(core.FetchAnswer{}, core.ErrNotLeader)
		return
	}
	now := n.cfg.Now()
	f.until = now + f.MaxWait
	a, err := n.core.Fetch(now, f.Request)
	if n.worthAnswering(f, a, err) {
		f.Answer(a, err)
	} else {
		n.parked = append(n.parked, f)
	}
	n.settle()
}

// Disconnected says that a replica's fetch connection has closed. It returns where that
// replica listens for others, if this one leads: see Refused.
func (n *Node) Disconnected(id epoch.ReplicaID, connection uint64) (epoch.Address, bool) {
	if n.failed != nil {
		return epoch.Address{}, false
	}
	n.core.Disconnected(n.cfg.Now(), id, connection)
	n.settle()
	p, ok := n.core.Record().Replica(id)
	return p.Address, ok && n.core.Role() == core.Leader && p.Address.ReplicationPort != 0
}

// Refused says that after its fetch connection had closed that replica's machine refused
// another one: its process has ended.
func (n *Node) Refused(id epoch.ReplicaID, connection uint64) {
	if n.failed != nil {
		return
	}
	n.cfg.Log.Info("a replica's process has ended: it closed its connection, and its machine refuses another one", "replica", id)
	n.core.Refused(n.cfg.Now(), id, connection)
	n.settle()
}

// worthAnswering: news of any kind ends the wait. A higher watermark is news even
// without records, so that followers know early what is committed (KIP-1166).
func (n *Node) worthAnswering(f *Fetch, a core.FetchAnswer, err error) bool {
	return err != nil || a.Diverging != nil || a.LogEndOffset > f.Request.Offset ||
		a.HighWatermark > f.Request.HighWatermark || a.LogStartOffset > f.Request.LogStartOffset || n.cfg.Now() >= f.until
}

// answerParked answers what has become worth it. A fetch is not counted twice.
func (n *Node) answerParked() {
	waiting := n.parked[:0]
	for _, f := range n.parked {
		if f.Abandoned != nil && f.Abandoned() {
			continue
		}
		a, err := n.core.Peek(f.Request)
		if n.worthAnswering(f, a, err) {
			f.Answer(a, err)
		} else {
			waiting = append(waiting, f)
		}
	}
	clear(n.parked[len(waiting):])
	n.parked = waiting
}

// NextFetch is what the fetch loop has to send, false if there is nothing to be sent
// before FetchPort.Wake or FetchPort.Follow.
func (n *Node) NextFetch() (core.FetchRequest, bool) {
	if n.failed != nil {
		return core.FetchRequest{}, false
	}
	q, ok := n.core.NextFetch()
	n.settle()
	return q, ok
}

// Fetched says what a fetch brought.
func (n *Node) Fetched(q core.FetchRequest, a core.FetchResponse) {
	if n.failed != nil {
		return
	}
	n.core.Fetched(n.cfg.Now(), q, a)
	n.settle()
}

// OutOfRange tells the leader's log bounds, asked for after it had answered
// OFFSET_OUT_OF_RANGE.
func (n *Node) OutOfRange(q core.FetchRequest, start, end epoch.Offset) {
	if n.failed != nil {
		return
	}
	n.core.OutOfRange(q, start, end)
	n.settle()
}

// LeaderEnded says that the process that leads in that epoch is no more: it closed the
// connection that its fetches were answered on, and its machine refuses another one.
func (n *Node) LeaderEnded(e epoch.LeaderEpoch) {
	if n.failed != nil {
		return
	}
	n.core.LeaderEnded(n.cfg.Now(), e)
	n.settle()
}

// FetchFailed says that a fetch was refused or got no answer; fenced, that the leader
// knows a newer epoch.
func (n *Node) FetchFailed(q core.FetchRequest, fenced bool) {
	if n.failed != nil {
		return
	}
	n.core.FetchFailed(q, fenced)
	n.settle()
}
