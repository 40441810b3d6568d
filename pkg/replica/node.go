package replica

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/fetcher"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// node is the state of the loop: the core, the log under it, and who waits. Only the
// loop's goroutine touches it, but for published and what is said to be safe.
type node struct {
	cfg       Config
	settings  Settings
	core      *core.Core
	log       *log.Log
	volume    *volume.Volume
	records   *recordClient
	fetcher   *fetcher.Fetcher
	metrics   *metrics
	started   time.Time
	published atomic.Pointer[view]

	produces    map[uint64]func(error) // waiting for their commit, by token
	lastToken   uint64
	parked      []*parkedFetch
	flushing    bool
	failed      error // the volume is not to be trusted any more, or the process is to end
	full        bool  // the last append found no space
	recordError error // the last failure to reach the record

	stopping bool
	released chan struct{} // closed once an orderly stop need not wait any longer

	checkpointed   time.Duration
	synced         time.Duration
	lastCheckpoint [3]epoch.Offset
}

// now is the core's clock: monotonic, since the start of the process.
func (n *node) now() time.Duration { return time.Since(n.started) }

// settle carries out what the core wants, until it wants nothing more, and then
// shows the outcome.
func (n *node) settle() {
	for effects := n.core.Take(); len(effects) > 0 && n.failed == nil; effects = n.core.Take() {
		for _, e := range effects {
			if err := n.carryOut(e); vfs.IsNoSpace(err) || errors.Is(err, log.ErrNoSpace) {
				n.quit(fmt.Errorf("the volume is full, and what the partition record demands cannot be written; give it more space (spec.storage.size): %w", err))
			} else if err != nil {
				n.fail(err)
			}
			if n.failed != nil {
				break
			}
		}
	}
	if n.failed != nil {
		return
	}
	n.publish()
	n.answerParked()
	if n.stopping && n.core.Released() {
		n.stopping = false
		close(n.released)
	}
}

// stop begins an orderly end.
func (n *node) stop() {
	n.stopping = true
	n.core.Stop(n.now())
}

// fail ends leadership and promise at once (rule 10): the volume is at fault, nothing
// is answered any more, and the error mark outlives the process.
func (n *node) fail(err error) {
	n.failed = fmt.Errorf("the volume cannot be trusted any more, this replica gives up its promise and ends: %w", err)
	n.volume.MarkError()
	for token, done := range n.produces {
		delete(n.produces, token)
		done(core.ErrStorage)
	}
}

// quit ends the process for a reason that is not the volume's: its promise stays.
func (n *node) quit(err error) { n.failed = err }

func (n *node) carryOut(e core.Effect) error {
	switch e := e.(type) {
	case core.PersistRecord:
		n.noteTransition(e.Record)
		return n.volume.PersistRecord(e.Record)
	case core.AssignEpoch:
		return n.changeLog(func() error { return n.log.AssignEpoch(e.Epoch) })
	case core.Truncate:
		return n.truncate(e)
	case core.TruncateFully:
		n.cfg.Log.Info("log emptied", "startAt", e.StartAt, "logEndOffset", n.log.EndOffset())
		n.volume.Lower(volume.Position{LogEndOffset: e.StartAt})
		return n.changeLog(func() error { return n.log.TruncateFullyAndStartAt(e.StartAt) })
	case core.AppendFetched:
		return n.appendFetched(e)
	case core.WriteRecord:
		n.records.write(e.Base, n.stamp(e.Base.Record, e.Next))
	case core.ReadRecord:
		n.records.read()
	case core.Follow:
		n.fetcher.Follow(e.Leader, e.Address, e.Epoch)
	case core.StopFollowing:
		n.fetcher.Stop()
	case core.Complete:
		n.complete(e.Token, e.Err)
	case core.Exit:
		n.quit(errors.New(e.Reason))
	case core.Regression:
		n.metrics.regressions.Inc()
		n.cfg.Log.Error(nil, "the partition record went backwards; it is marked for recovery and nothing is changed any more",
			"readPartitionEpoch", e.Read.PartitionEpoch, "knownPartitionEpoch", e.Known.PartitionEpoch,
			"readLeaderEpoch", e.Read.LeaderEpoch, "knownLeaderEpoch", e.Known.LeaderEpoch)
	}
	return nil
}

// stamp gives a write its wall-clock times; nobody compares them with another clock.
func (n *node) stamp(base, next epoch.Record) epoch.Record {
	now := time.Now()
	if n.core.Role() == core.Leader {
		next.Heartbeat.Renewed = now
		next.Heartbeat.Duration = n.settings.LeaseDuration
	}
	if next.LeaderEpoch != base.LeaderEpoch {
		next.Heartbeat.Acquired, next.Heartbeat.Renewed = now, now
	}
	return next
}

// changeLog changes the log other than by an append: the clean mark goes first.
func (n *node) changeLog(change func() error) error {
	if err := n.volume.BeginWriting(); err != nil {
		return err
	}
	return change()
}

func (n *node) truncate(e core.Truncate) error {
	if e.BelowHighWatermark {
		n.cfg.Log.Error(nil, "truncating below the high watermark: the leader lacks records that were committed", "to", e.To, "logEndOffset", n.log.EndOffset())
	} else if e.To < n.log.EndOffset() {
		n.cfg.Log.Info("log truncated to where the leader's history parts", "to", e.To, "logEndOffset", n.log.EndOffset())
	}
	position := volume.Position{LogEndOffset: e.To}
	if id, ok, err := n.log.BatchEndingAt(e.To - 1); err != nil {
		return err
	} else if ok {
		position.LeaderEpoch, position.CRC = id.Epoch, id.CRC
	}
	if e.To < n.log.EndOffset() {
		n.volume.Lower(position)
	}
	return n.changeLog(func() error { return n.log.TruncateTo(e.To) })
}

// raise tells the witness what the log holds, before the new end counts anywhere.
func (n *node) raise() {
	if id, ok := n.log.LastBatch(); ok {
		n.volume.Raise(volume.Position{LogEndOffset: n.log.EndOffset(), LeaderEpoch: id.Epoch, CRC: id.CRC})
	}
}

// noteTransition logs what the record's new state means for this replica.
func (n *node) noteTransition(rec epoch.Record) {
	n.cfg.Log.Info("partition record", "partitionEpoch", rec.PartitionEpoch, "leader", rec.Leader, "leaderEpoch", rec.LeaderEpoch,
		"isr", rec.ISR, "minISR", rec.MinISR, "role", n.core.Role().String())
}

// complete answers a produce request that waited for its commit.
func (n *node) complete(token uint64, err error) {
	if done := n.produces[token]; done != nil {
		delete(n.produces, token)
		done(err)
	}
}

var _ kafka.Partition = (*Replica)(nil)
