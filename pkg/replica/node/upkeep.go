package node

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// checkpointEvery and syncEvery are Kafka's
// replica.high.watermark.checkpoint.interval.ms and
// log.flush.offset.checkpoint.interval.ms.
const (
	checkpointEvery = 5 * time.Second
	syncEvery       = time.Minute
)

// upkeep does what is done from time to time.
func (n *Node) upkeep() {
	n.watchSpace()
	if n.failed == nil {
		n.compact()
	}
	now := n.cfg.Now()
	if now-n.checkpointed >= checkpointEvery {
		n.checkpointed = now
		n.checkpoint()
	}
	if now-n.synced >= syncEvery && n.failed == nil {
		n.synced = now
		n.log.ExpireProducers(n.cfg.Wall())
		n.retain()
		if n.flag == flagFailed {
			n.flag = flagWanted
		}
		if n.log.FlushedOffset() < n.log.EndOffset() || n.flag == flagWanted {
			n.flush()
		}
	}
}

// checkpoint writes the high watermark and its like, if they have moved.
func (n *Node) checkpoint() {
	state := [3]epoch.Offset{n.core.HighWatermark(), n.log.FlushedOffset(), n.log.StartOffset()}
	if state == n.lastCheckpoint {
		return
	}
	if err := n.withReserve(func() error { return n.log.Checkpoint(state[0]) }); err != nil {
		n.failUnlessFull(err)
		return
	}
	n.lastCheckpoint = state
}

// retain drops what retention allows. Only the leader decides; followers take over
// its log start.
func (n *Node) retain() {
	if !n.core.MayServe(n.cfg.Now()) {
		return
	}
	start := n.log.StartOffset()
	err := n.changeLogAtAllCosts(func() error {
		_, err := n.log.ApplyRetention(n.cfg.Wall(), n.core.HighWatermark())
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

// flag is how far the durable flag of EveryBatch is behind the settings. It may be set
// only after a sync, begun when every acknowledgement already waited for one, of the
// whole log and its directories: until then something acknowledged may be unsynced.
type flag int

const (
	flagSettled flag = iota
	flagWanted       // the settings say EveryBatch; the sync is still to begin
	flagSyncing      // it has begun
	flagFailed       // the flag could not be written: tried again with the next regular sync
)

// flushSoon makes the log's tail durable in the background where that is asked for;
// appends of the meantime share the next fsync.
func (n *Node) flushSoon() {
	if n.settings.FlushEveryBatch && (n.log.FlushedOffset() < n.log.EndOffset() || n.flag == flagWanted) {
		n.flush()
	}
}

// flush begins a sync of the log in the background.
func (n *Node) flush() {
	if n.flushing {
		return
	}
	n.flushing = true
	if n.flag == flagWanted {
		n.flag = flagSyncing
	}
	n.ports.Flush(func() error {
		_, err := n.log.Flush()
		return err
	})
}

// FlushDone says what the work that Ports.Flush was given returned.
func (n *Node) FlushDone(err error) {
	if n.failed != nil {
		return
	}
	n.flushing = false
	if err != nil {
		n.fail(err)
		return
	}
	if n.flag == flagSyncing {
		n.flag = flagSettled
		if err := n.volume.SetEveryBatch(n.me.Session, n.me.StartID); err != nil {
			n.flag = flagFailed // without the flag there is only no proof by it
			n.cfg.Log.Error(err, "EveryBatch is in force, and cannot be noted on the volume; it is tried again with the next sync")
		}
	}
	n.core.Flushed()
	n.ports.Fetcher.Wake()
	n.flushSoon()
	n.settle()
}
