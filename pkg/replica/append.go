package replica

import (
	"errors"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// produceMessage is a produce request on its way to the loop.
type produceMessage struct {
	kafka.ProduceRequest
	done func(kafka.ProduceResult)
}

// staged is a request whose batch goes into the next append, or repeats one that does.
type staged struct {
	produceMessage
	base, last epoch.Offset
}

// produce appends all waiting requests by one write. Requests are judged in order of
// arrival, each with those before it, so a pipelining idempotent producer is served
// right (protocol.md 3.4).
func (n *node) produce(messages []produceMessage) {
	stage := n.log.Producers().Stage(n.log.EndOffset())
	batches := make([]batch.Batch, 0, len(messages))
	waiting := make([]staged, 0, len(messages))
	leaderEpoch := epoch.NoEpoch
	for _, m := range messages {
		e, err := n.admit(m)
		if err != nil {
			n.refuse(m, err)
			continue
		}
		leaderEpoch = e
		duplicate, repeats, err := stage.Check(m.Batch)
		switch {
		case err != nil:
			n.refuse(m, err)
		case repeats && duplicate.Staged:
			waiting = append(waiting, staged{m, duplicate.Base, duplicate.Last})
		case repeats:
			n.await(m, duplicate.Base, duplicate.Last)
		default:
			base := stage.Next()
			stage.Add(m.Batch)
			batches = append(batches, m.Batch)
			waiting = append(waiting, staged{m, base, stage.Next() - 1})
		}
	}
	if len(batches) > 0 {
		n.appendBatches(leaderEpoch, batches, waiting)
	}
}

// admit says whether a request may be appended, before anything is.
func (n *node) admit(m produceMessage) (epoch.LeaderEpoch, error) {
	if int64(m.Batch.Size()) > n.settings.SegmentBytes {
		return epoch.NoEpoch, log.ErrBatchTooLarge
	}
	return n.core.AdmitProduce(n.now(), m.Acks)
}

func (n *node) appendBatches(e epoch.LeaderEpoch, batches []batch.Batch, waiting []staged) {
	err := n.changeLog(func() error {
		_, err := n.log.Append(e, batches)
		return err
	})
	full := n.noteSpace(err)
	if err != nil {
		for _, m := range waiting {
			n.refuse(m.produceMessage, core.ErrStorage)
		}
		if !full {
			n.fail(err)
		}
		return
	}
	n.raise()
	n.core.Appended()
	for _, m := range waiting {
		n.await(m.produceMessage, m.base, m.last)
	}
	n.flushSoon()
}

// noteSpace reports whether the volume is full, and logs when that begins and ends.
func (n *node) noteSpace(err error) bool {
	full := errors.Is(err, log.ErrNoSpace)
	if full != n.full && (full || err == nil) {
		n.full = full
		if full {
			n.cfg.Log.Error(err, "the volume is full: appends are refused, reads go on; give it more space (spec.storage.size)")
		} else {
			n.cfg.Log.Info("the volume has space again")
		}
	}
	return full
}

// await answers a request once its batch, or the batch that it repeats, counts: with
// acks=all when it is committed.
func (n *node) await(m produceMessage, base, last epoch.Offset) {
	start := n.log.StartOffset()
	answer := func(err error) {
		m.done(kafka.ProduceResult{BaseOffset: base, LogStartOffset: start, LogAppendTime: -1, Err: err})
	}
	if m.Acks != core.AcksAll {
		answer(nil)
		return
	}
	n.lastToken++
	n.produces[n.lastToken] = answer
	n.core.Await(n.lastToken, last+1, n.now()+m.Timeout)
}

func (n *node) refuse(m produceMessage, err error) {
	m.done(kafka.ProduceResult{BaseOffset: epoch.NoOffset, LogStartOffset: n.log.StartOffset(), LogAppendTime: -1, Err: err})
}

// appendFetched appends what the leader sent, takes over its log start, and only then
// counts the leader's high watermark.
func (n *node) appendFetched(e core.AppendFetched) error {
	if len(e.Records) > 0 {
		err := n.changeLog(func() error {
			_, err := n.log.AppendFetched(e.Records, e.MaxEpoch)
			return err
		})
		switch {
		case n.noteSpace(err):
			n.fetcher.Backoff()
		case errors.Is(err, log.ErrFailed):
			return err
		case err != nil:
			n.cfg.Log.Error(err, "fetched records refused; fetching them again")
			n.fetcher.Backoff()
			return nil
		}
		n.raise()
		n.flushSoon()
	}
	hw := min(max(e.HighWatermark, n.log.StartOffset()), n.log.EndOffset())
	if start := min(e.LogStartOffset, hw); start > n.log.StartOffset() {
		if err := n.changeLog(func() error { return n.log.SetStartOffset(start) }); err != nil {
			return err
		}
	}
	n.core.AppliedFetch(e)
	return nil
}

// flushSoon makes the log's tail durable in the background where that is asked for;
// appends of the meantime share the next fsync.
func (n *node) flushSoon() {
	if !n.settings.FlushEveryBatch || n.flushing || n.log.FlushedOffset() >= n.log.EndOffset() {
		return
	}
	n.flush()
}

// flush runs an fsync of the log in the background.
func (n *node) flush() {
	if n.flushing {
		return
	}
	n.flushing = true
	begun := time.Now()
	n.records.background(func() func(*node) {
		_, err := n.log.Flush()
		return func(n *node) {
			n.flushing = false
			n.metrics.flushSeconds.Observe(time.Since(begun).Seconds())
			if err != nil {
				n.fail(err)
				return
			}
			n.core.Flushed()
			n.fetcher.Wake()
			n.flushSoon()
		}
	})
}
