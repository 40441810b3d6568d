package replica

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/fetcher"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// Replica serves one replica to connections: it is what package kafka calls a
// Partition. Its methods are safe for any number of goroutines; they talk to the loop
// by messages, and read what it publishes and the log.
type Replica struct {
	node      *node.Node
	mailbox   *mailbox
	published atomic.Pointer[view]
	settings  atomic.Pointer[Settings]
	producers atomic.Int64 // producer ids given out in this process
	identity  core.Identity
	topic     string
	topicID   epoch.UUID
}

var _ kafka.Partition = (*Replica)(nil)

func (r *Replica) view() *view { return r.published.Load() }

// View implements kafka.Partition.
func (r *Replica) View() kafka.View { return r.view().client }

func (r *Replica) configure(s Settings) { r.settings.Store(&s) }

// Rules implements kafka.Partition.
func (r *Replica) Rules() kafka.ProduceRules {
	s := r.settings.Load()
	return kafka.ProduceRules{MaxMessageBytes: s.MaxMessageBytes, RequireKeys: s.Cleanup.Compacts(),
		AppendTime: s.AppendTime, MaxBehind: s.TimestampMaxBehind, MaxAhead: s.TimestampMaxAhead}
}

// Produce implements kafka.Partition. It waits only while the loop has more requests
// before it than it takes at once.
func (r *Replica) Produce(q kafka.ProduceRequest, done func(kafka.ProduceResult)) {
	p := node.Produce{Batch: q.Batch, AppendTime: q.AppendTime, Acks: q.Acks, Timeout: q.Timeout, Done: func(a node.Produced) {
		done(kafka.ProduceResult{BaseOffset: a.BaseOffset, LogStartOffset: a.LogStartOffset, LogAppendTime: a.AppendTime, Err: a.Err})
	}}
	select {
	case r.mailbox.produces <- p:
	case <-r.mailbox.ended:
		done(kafka.ProduceResult{BaseOffset: epoch.NoOffset, LogAppendTime: -1, Err: core.ErrNotLeader})
	}
}

// fetchOutcome is the node's answer to a follower's fetch.
type fetchOutcome struct {
	answer core.FetchAnswer
	err    error
}

// ReplicaFetch implements kafka.Partition.
func (r *Replica) ReplicaFetch(ctx context.Context, q kafka.ReplicaFetchRequest) kafka.ReplicaFetchResult {
	answer := make(chan fetchOutcome, 1)
	f := &node.Fetch{MaxWait: q.MaxWait,
		Answer:    func(a core.FetchAnswer, err error) { answer <- fetchOutcome{a, err} },
		Abandoned: func() bool { return ctx.Err() != nil },
		Request: core.ReplicaFetch{
			Replica: q.ReplicaID, Session: q.Session, StartID: q.StartID, DirectoryID: q.DirectoryID, LeaderEpoch: q.CurrentLeaderEpoch,
			Offset: q.Offset, LastEpoch: q.LastFetchedEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: q.ConnectionID, Trouble: q.Trouble}}
	if !r.mailbox.post(func(n *node.Node) { n.ReplicaFetch(f) }) {
		return replicaRefusal(core.ErrNotLeader)
	}
	select {
	case o := <-answer:
		return r.readForReplica(q, o)
	case <-ctx.Done():
		return replicaRefusal(core.ErrTimedOut)
	case <-r.mailbox.ended:
		return replicaRefusal(core.ErrNotLeader)
	}
}

func replicaRefusal(err error) kafka.ReplicaFetchResult {
	return kafka.ReplicaFetchResult{FetchResult: kafka.FetchResult{Err: err}}
}

// readForReplica reads what the loop allowed.
func (r *Replica) readForReplica(q kafka.ReplicaFetchRequest, o fetchOutcome) kafka.ReplicaFetchResult {
	if o.err != nil {
		return replicaRefusal(o.err)
	}
	a, loan, err := r.node.LendToReplica(q.Offset, q.MaxBytes, o.answer)
	if err != nil {
		r.noteDamage(err)
		return replicaRefusal(err)
	}
	return kafka.ReplicaFetchResult{LeaderEpoch: o.answer.LeaderEpoch, FetchResult: kafka.FetchResult{
		Records: a.Records, Release: loan.Return, HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset, Diverging: diverging(a.Diverging)}}
}

func diverging(e *epoch.Entry) *kafka.DivergingEpoch {
	if e == nil {
		return nil
	}
	return &kafka.DivergingEpoch{Epoch: e.Epoch, EndOffset: e.Start}
}

// ReplicaDisconnected implements kafka.Partition. Whether the other process has ended, or
// only this connection, shows when it is tried: so a follower that dies is not waited for.
func (r *Replica) ReplicaDisconnected(id epoch.ReplicaID, _ epoch.Session, connection uint64) {
	r.mailbox.post(func(n *node.Node) {
		address, ask := n.Disconnected(id, connection)
		if !ask {
			return
		}
		go func() {
			if fetcher.Refuses(address) {
				r.mailbox.post(func(n *node.Node) { n.Refused(id, connection) })
			}
		}()
	})
}

// Fetch implements kafka.Partition.
func (r *Replica) Fetch(ctx context.Context, q kafka.FetchRequest) kafka.FetchResult {
	timer := time.NewTimer(q.MaxWait)
	defer timer.Stop()
	last := q.MaxWait <= 0
	for {
		v := r.view()
		res := r.read(v, q)
		if last || res.Err != nil || res.Diverging != nil || len(res.Records) > 0 && len(res.Records) >= q.MinBytes || q.MinBytes == 0 {
			return res
		}
		res.Release()
		select {
		case <-v.changed:
		case <-timer.C:
			last = true
		case <-ctx.Done():
			last = true
		case <-r.mailbox.ended:
			return kafka.FetchResult{Err: core.ErrNotLeader}
		}
	}
}

// read reads up to the high watermark, for a consumer.
func (r *Replica) read(v *view, q kafka.FetchRequest) kafka.FetchResult {
	a, err := r.node.Read(v.View, node.Read{Offset: q.Offset, MaxBytes: q.MaxBytes, AtLeastOne: q.AtLeastOne,
		CurrentLeaderEpoch: q.CurrentLeaderEpoch, LastFetchedEpoch: q.LastFetchedEpoch})
	if err != nil {
		r.noteDamage(err)
		return kafka.FetchResult{Err: err}
	}
	return kafka.FetchResult{Records: a.Records, Release: a.Return, HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset, Diverging: diverging(a.Diverging)}
}
