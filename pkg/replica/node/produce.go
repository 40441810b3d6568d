package node

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// Produce is a producer's batch on its way into the log.
type Produce struct {
	// Batch has passed batch.Validate. The Node writes offsets and epoch into it, and
	// keeps it until Done is called.
	Batch batch.Batch
	// AppendTime makes the time of its append that of its records.
	AppendTime bool
	// Acks is one of core's Acks constants.
	Acks int16
	// Timeout bounds the wait for replicas under core.AcksAll.
	Timeout time.Duration
	// Done is called once, within a call of the Node.
	Done func(Produced)
}

// Produced is the fate of one batch.
type Produced struct {
	// BaseOffset of the batch, of the first copy when it was a duplicate; NoOffset
	// when it was refused.
	BaseOffset     epoch.Offset
	LogStartOffset epoch.Offset
	// AppendTime is the time that its records were given, in milliseconds; those of the first
	// copy when it was a duplicate. batch.NoTimestamp: they keep the client's.
	AppendTime int64
	// Err is nil, or why the batch is not known to be committed.
	Err error
}

// staged is a request whose batch goes into the next append, or repeats one that does.
type staged struct {
	Produce
	base, last epoch.Offset
	appendTime int64
}

// Produce appends requests by one write. They are judged in order, each with those
// before it, so a pipelining idempotent producer is served right (protocol.md 3.4).
func (n *Node) Produce(requests []Produce) {
	if n.failed != nil {
		for _, q := range requests {
			n.refuse(q, core.ErrNotLeader)
		}
		return
	}
	if n.holds() || len(n.held) > 0 { // in the order in which they came
		n.held = append(n.held, requests...)
	} else {
		n.produce(requests)
	}
	if n.failed == nil {
		n.settle()
	}
}

// holds reports that appends wait for a successor to take over ([core.Core.HoldsAppends]).
func (n *Node) holds() bool { return n.core.HoldsAppends(n.cfg.Now()) }

// letGo appends what was held, or refuses it since another leads.
func (n *Node) letGo() {
	held := n.held
	n.held = nil
	n.produce(held)
}

func (n *Node) produce(requests []Produce) {
	stage := n.log.Producers().Stage(n.log.EndOffset())
	batches := make([]batch.Batch, 0, len(requests))
	waiting := make([]staged, 0, len(requests))
	leaderEpoch, now := epoch.NoEpoch, n.cfg.Wall().UnixMilli()
	for _, q := range requests {
		e, err := n.admit(q)
		if err != nil {
			n.refuse(q, err)
			continue
		}
		leaderEpoch = e
		duplicate, repeats, err := stage.Check(q.Batch)
		switch {
		case err != nil:
			n.refuse(q, err)
		case repeats && duplicate.Staged:
			waiting = append(waiting, staged{q, duplicate.Base, duplicate.Last, appendTime(q, duplicate.Timestamp)})
		case repeats:
			n.await(staged{q, duplicate.Base, duplicate.Last, appendTime(q, duplicate.Timestamp)})
		default:
			if q.AppendTime {
				q.Batch.StampAppendTime(now)
			}
			base := stage.Next()
			stage.Add(q.Batch)
			batches = append(batches, q.Batch)
			waiting = append(waiting, staged{q, base, stage.Next() - 1, appendTime(q, now)})
		}
	}
	if len(batches) > 0 {
		n.appendBatches(leaderEpoch, batches, waiting)
	}
}

// appendTime is what the answer tells of a batch's time.
func appendTime(q Produce, stamped int64) int64 {
	if q.AppendTime {
		return stamped
	}
	return batch.NoTimestamp
}

// admit says whether a request may be appended, before anything is.
func (n *Node) admit(q Produce) (epoch.LeaderEpoch, error) {
	if int64(q.Batch.Size()) > n.settings.SegmentBytes {
		return epoch.NoEpoch, log.ErrBatchTooLarge
	}
	return n.core.AdmitProduce(n.cfg.Now(), q.Acks)
}

func (n *Node) appendBatches(e epoch.LeaderEpoch, batches []batch.Batch, waiting []staged) {
	var bytes int64
	for _, b := range batches {
		bytes += int64(len(b))
	}
	err := n.errMargin()
	if n.roomFor(bytes, asLeader) {
		err = n.changeLog(func() error {
			_, err := n.log.Append(e, batches)
			return err
		})
	}
	full := n.noteSpace(err)
	if err != nil {
		for _, q := range waiting {
			n.refuse(q.Produce, core.ErrStorage)
		}
		if !full {
			n.fail(err)
		}
		return
	}
	n.setFull(false, nil)
	n.raise()
	n.core.Appended()
	for _, q := range waiting {
		n.await(q)
	}
	n.flushSoon()
}

// await answers a request once its batch, or the batch that it repeats, counts: with
// acks=all when it is committed.
func (n *Node) await(q staged) {
	start := n.log.StartOffset()
	answer := func(err error) {
		q.Done(Produced{BaseOffset: q.base, LogStartOffset: start, AppendTime: q.appendTime, Err: err})
	}
	if q.Acks != core.AcksAll {
		answer(nil)
		return
	}
	n.lastToken++
	n.produces[n.lastToken] = answer
	n.core.Await(n.lastToken, q.last+1, n.cfg.Now()+q.Timeout)
}

func (n *Node) refuse(q Produce, err error) {
	q.Done(Produced{BaseOffset: epoch.NoOffset, LogStartOffset: n.log.StartOffset(), AppendTime: batch.NoTimestamp, Err: err})
}

// complete answers a produce request that waited for its commit.
func (n *Node) complete(token uint64, err error) {
	if done := n.produces[token]; done != nil {
		delete(n.produces, token)
		done(err)
	}
}
