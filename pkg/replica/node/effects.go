package node

import (
	"errors"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

func (n *Node) carryOut(e core.Effect) error {
	switch e := e.(type) {
	case core.PersistRecord:
		n.noteTransition(e.Record)
		return n.persist(e.Record)
	case core.AssignEpoch:
		return n.changeLogAtAllCosts(func() error { return n.log.AssignEpoch(e.Epoch) })
	case core.Truncate:
		return n.truncate(e)
	case core.TruncateFully:
		n.cfg.Log.Info("log emptied", "startAt", e.StartAt, "logEndOffset", n.log.EndOffset())
		n.volume.Lower(volume.Position{LogEndOffset: e.StartAt})
		return n.changeLogAtAllCosts(func() error { return n.log.TruncateFullyAndStartAt(e.StartAt) })
	case core.AppendFetched:
		return n.appendFetched(e)
	case core.WriteRecord:
		n.ports.Records.Write(e.Base, n.stamp(e.Base.Record, e.Next))
	case core.ReadRecord:
		n.ports.Records.Read()
	case core.Follow:
		n.ports.Fetcher.Follow(e.Leader, e.Address, e.Epoch)
	case core.StopFollowing:
		n.ports.Fetcher.Stop()
	case core.Complete:
		n.complete(e.Token, e.Err)
	case core.Exit:
		n.Quit(errors.New(e.Reason))
	case core.Regression:
		n.noteRegression(e)
	}
	return nil
}

// changeLog changes the log: the clean mark goes first.
func (n *Node) changeLog(change func() error) error {
	if err := n.volume.BeginWriting(); err != nil {
		return err
	}
	return change()
}

func (n *Node) truncate(e core.Truncate) error {
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
	if err := n.changeLogAtAllCosts(func() error { return n.log.TruncateTo(e.To) }); err != nil {
		return err
	}
	if n.log.EndOffset() < e.To { // e.To lay inside of a batch
		n.volume.Lower(atEnd(n.log))
	}
	n.core.Truncated()
	return nil
}

// raise tells the witness what the log holds, before the new end counts anywhere.
func (n *Node) raise() {
	if id, ok := n.log.LastBatch(); ok && !guard.Off(guard.WitnessBeforeCount) {
		n.volume.Raise(volume.Position{LogEndOffset: n.log.EndOffset(), LeaderEpoch: id.Epoch, CRC: id.CRC})
	}
}

// appendFetched appends what the leader sent, takes over its log start, and only then
// counts the leader's high watermark.
func (n *Node) appendFetched(e core.AppendFetched) error {
	if err := n.dropDeleted(e); err != nil {
		return err
	}
	if len(e.Records) > 0 {
		appended, err := 0, n.errMargin()
		if n.roomFor(int64(len(e.Records)), asFollower) {
			err = n.changeLog(func() (err error) {
				appended, err = n.log.AppendFetched(e.Records, e.MaxEpoch)
				return err
			})
		}
		if appended > 0 { // whatever became of the rest, this much is in the log and will be acknowledged
			n.raise()
			n.flushSoon()
		}
		switch {
		case n.noteSpace(err):
			n.ports.Fetcher.Backoff()
		case errors.Is(err, log.ErrFailed):
			return err
		case err != nil:
			n.cfg.Log.Error(err, "fetched records refused; fetching them again")
			n.ports.Fetcher.Backoff()
		default:
			n.setFull(false, nil)
		}
	}
	hw := min(max(e.HighWatermark, n.log.StartOffset()), n.log.EndOffset())
	if start := min(e.LogStartOffset, hw); start > n.log.StartOffset() {
		if err := n.changeLogAtAllCosts(func() error { return n.log.SetStartOffset(start) }); err != nil {
			return err
		}
	}
	n.core.AppliedFetch(e)
	return nil
}

// dropDeleted empties a log that ends where the leader's begins. All of it is deleted on
// the leader, and it may be another history: no epoch can tell any more. The leader's
// log start may lie inside of a batch, which only an empty log takes (KAFKA-6975).
func (n *Node) dropDeleted(e core.AppendFetched) error {
	end := n.log.EndOffset()
	if e.LogStartOffset != end || n.log.StartOffset() == end {
		return nil
	}
	return n.changeLogAtAllCosts(func() error { return n.log.SetStartOffset(end) })
}

// stamp gives a write its wall-clock times; nobody compares them with another clock.
func (n *Node) stamp(base, next epoch.Record) epoch.Record {
	now := n.cfg.Wall()
	if n.core.Role() == core.Leader {
		next.Heartbeat.Renewed = now
		next.Heartbeat.Duration = n.settings.LeaseDuration
	}
	if next.LeaderEpoch != base.LeaderEpoch {
		next.Heartbeat.Acquired, next.Heartbeat.Renewed = now, now
	}
	return next
}

// noteTransition logs what the record's new state means for this replica.
func (n *Node) noteTransition(rec epoch.Record) {
	n.cfg.Log.Info("partition record", "partitionEpoch", rec.PartitionEpoch, "leader", rec.Leader, "leaderEpoch", rec.LeaderEpoch,
		"isr", rec.ISR, "minISR", rec.MinISR, "role", n.core.Role().String())
}

func (n *Node) noteRegression(e core.Regression) {
	if n.ports.Regressed != nil {
		n.ports.Regressed(e.Read, e.Known)
	}
	n.cfg.Log.Error(nil, "the partition record went backwards; it is marked for recovery and nothing is changed any more",
		"readPartitionEpoch", e.Read.PartitionEpoch, "knownPartitionEpoch", e.Known.PartitionEpoch,
		"readLeaderEpoch", e.Read.LeaderEpoch, "knownLeaderEpoch", e.Known.LeaderEpoch)
}
