package replica

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// Replica serves one replica to connections: it is what package kafka calls a
// Partition. Its methods are safe for any number of goroutines; they talk to the loop
// by messages, and read what it publishes and the log.
type Replica struct {
	node       *node
	log        *log.Log
	mailbox    *mailbox
	maxMessage atomic.Int64
	producers  atomic.Int64 // producer ids given out in this process
	identity   core.Identity
}

func (r *Replica) view() *view { return r.node.published.Load() }

// View implements kafka.Partition.
func (r *Replica) View() kafka.View { return r.view().View }

// MaxMessageBytes implements kafka.Partition.
func (r *Replica) MaxMessageBytes() int { return int(r.maxMessage.Load()) }

// Produce implements kafka.Partition. It waits only while the loop has more requests
// before it than it takes at once.
func (r *Replica) Produce(q kafka.ProduceRequest, done func(kafka.ProduceResult)) {
	select {
	case r.mailbox.produces <- produceMessage{q, done}:
	case <-r.mailbox.ended:
		done(kafka.ProduceResult{BaseOffset: epoch.NoOffset, LogAppendTime: -1, Err: core.ErrNotLeader})
	}
}

// ReplicaFetch implements kafka.Partition.
func (r *Replica) ReplicaFetch(ctx context.Context, q kafka.ReplicaFetchRequest) kafka.ReplicaFetchResult {
	answer := make(chan fetchOutcome, 1)
	f := &parkedFetch{answer: answer, cancel: ctx.Done(), request: core.ReplicaFetch{
		Replica: q.ReplicaID, Session: q.Session, StartID: q.StartID, DirectoryID: q.DirectoryID, LeaderEpoch: q.CurrentLeaderEpoch,
		Offset: q.Offset, LastEpoch: q.LastFetchedEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: q.ConnectionID}}
	posted := r.mailbox.post(func(n *node) {
		f.until = n.now() + q.MaxWait
		n.replicaFetch(f)
	})
	if !posted {
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

// readForReplica reads what the loop allowed, and gives it out only if this replica
// still leads the same epoch: bytes of a later history must not pass for this one's
// (KAFKA-18723).
func (r *Replica) readForReplica(q kafka.ReplicaFetchRequest, o fetchOutcome) kafka.ReplicaFetchResult {
	if o.err != nil {
		return replicaRefusal(o.err)
	}
	a := o.answer
	res := kafka.ReplicaFetchResult{LeaderEpoch: a.LeaderEpoch, FetchResult: kafka.FetchResult{HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset}}
	if a.Diverging != nil {
		res.Diverging = &kafka.DivergingEpoch{Epoch: a.Diverging.Epoch, EndOffset: a.Diverging.Start}
		return res
	}
	if q.Offset < a.LogEndOffset {
		records, err := r.log.Read(q.Offset, a.LogEndOffset, q.MaxBytes, true)
		if err != nil {
			return replicaRefusal(err)
		}
		res.Records = records
	}
	if v := r.view(); v.role != core.Leader || v.LeaderEpoch != a.LeaderEpoch {
		return replicaRefusal(core.ErrNotLeader)
	}
	return res
}

// ReplicaDisconnected implements kafka.Partition.
func (r *Replica) ReplicaDisconnected(id epoch.ReplicaID, _ epoch.Session, connection uint64) {
	r.mailbox.post(func(n *node) { n.core.Disconnected(n.now(), id, connection) })
}

// leads is what every client's read needs (rule 8), with the epoch checked before
// the leadership (KAFKA-14078).
func (v *view) leads(current epoch.LeaderEpoch) error {
	switch {
	case current != epoch.NoEpoch && current < v.LeaderEpoch:
		return core.ErrFencedLeaderEpoch
	case current != epoch.NoEpoch && current > v.LeaderEpoch:
		return core.ErrUnknownLeaderEpoch
	case v.role != core.Leader || !v.mayServe:
		return core.ErrNotLeader
	}
	return nil
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
	if err := v.leads(q.CurrentLeaderEpoch); err != nil {
		return kafka.FetchResult{Err: err}
	}
	res := kafka.FetchResult{HighWatermark: v.highWatermark, LogStartOffset: v.logStart}
	if q.LastFetchedEpoch != epoch.NoEpoch {
		e, end := v.cache.EndOffset(q.LastFetchedEpoch, v.logEnd)
		if e == epoch.NoEpoch || q.Offset < v.logStart {
			return kafka.FetchResult{Err: core.ErrOffsetOutOfRange}
		}
		if e < q.LastFetchedEpoch || end < q.Offset {
			res.Diverging = &kafka.DivergingEpoch{Epoch: e, EndOffset: end}
			return res
		}
	}
	switch {
	case q.Offset < v.logStart || q.Offset > v.logEnd && !v.behind():
		return kafka.FetchResult{Err: core.ErrOffsetOutOfRange}
	case q.Offset >= v.highWatermark:
		return res // what is not committed yet is no error (KAFKA-725)
	}
	records, err := r.log.Read(q.Offset, v.highWatermark, q.MaxBytes, q.AtLeastOne)
	if err != nil {
		return kafka.FetchResult{Err: err}
	}
	if w := r.view(); w.role != core.Leader || w.LeaderEpoch != v.LeaderEpoch {
		return kafka.FetchResult{Err: core.ErrNotLeader}
	}
	res.Records = records
	return res
}

// behind reports that the high watermark has not reached the epoch's start yet
// (KIP-207).
func (v *view) behind() bool { return v.highWatermark < v.epochStart }
