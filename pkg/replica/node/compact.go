package node

import (
	"errors"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// CleanupPolicy says what becomes of old records. It is Kafka's cleanup.policy.
type CleanupPolicy int

// The policies. Deleting goes by age and size, compacting by key.
const (
	CleanupDelete CleanupPolicy = iota
	CleanupCompact
	CleanupCompactAndDelete
)

// Compacts reports that of every key only the last record need stay.
func (p CleanupPolicy) Compacts() bool { return p != CleanupDelete }

// Deletes reports that records go when they are too old, or too many.
func (p CleanupPolicy) Deletes() bool { return p != CleanupCompact }

// String names the policy as the API does.
func (p CleanupPolicy) String() string {
	return [...]string{"Delete", "Compact", "CompactAndDelete"}[p]
}

const (
	// compactEvery is Kafka's log.cleaner.backoff.ms: how often it is looked whether there is
	// enough to compact.
	compactEvery = 15 * time.Second
	// compactLater is when a compaction that has failed is tried again.
	compactLater = 10 * time.Minute
)

// compaction is the one under way, and when to look for the next.
type compaction struct {
	run *log.Compaction
	due time.Duration
	// seen is what of the run's statistics is in the totals.
	seen log.CompactionStats
}

// CompactionTotals are those of this process.
type CompactionTotals struct {
	// Read counts the bytes of segments gone through, Freed those that are not there any
	// more.
	Read, Freed int64
	// LastRun is when the last run has ended; zero: none has.
	LastRun time.Time
	// DirtyRatio is how much of what may be compacted no run has seen.
	DirtyRatio float64
}

// Compactions is for any goroutine.
func (n *Node) Compactions() CompactionTotals { return *n.compacted.Load() }

func (n *Node) updateTotals(change func(*CompactionTotals)) {
	t := *n.compacted.Load()
	change(&t)
	n.compacted.Store(&t)
}

// compact begins a run of the log's compaction, if there is enough for one. Every replica
// compacts its own log, leader or not.
func (n *Node) compact() {
	c, now := &n.compaction, n.cfg.Now()
	if !n.settings.Cleanup.Compacts() || n.ports.Compact == nil || c.run != nil || n.damage != nil || now < c.due || n.core.Record().Recovery != nil {
		return
	}
	c.due = now + compactEvery
	run, dirty := n.log.PlanCompaction(log.CompactionRules{HighWatermark: n.core.HighWatermark(), TombstonesBelow: n.heldByAll(), Now: n.cfg.Wall(),
		MinLag: n.settings.MinCompactionLag, DeleteRetention: n.settings.DeleteRetention, MinDirtyPercent: n.settings.MinDirtyPercent})
	n.updateTotals(func(t *CompactionTotals) { t.DirtyRatio = dirty.Ratio() })
	if run == nil {
		return
	}
	if !n.roomFor(0, asLeader) || !n.cfg.NoSpaceMargin && n.space.room.Free-run.LargestGroup() < n.space.room.Margin {
		run.Close() // the new segment stands beside the old ones for a time
		return
	}
	c.run, c.seen = run, log.CompactionStats{}
	n.stepCompaction()
}

func (n *Node) stepCompaction() {
	run := n.compaction.run
	n.ports.Compact(func(pace func(bytes int64) error) error { return run.Step(pace) })
}

// heldByAll is the offset below which every assigned replica was seen to have the log, by
// what the leader of this epoch has told: each of them has seen what was deleted there. A
// replica that is away keeps all tombstones from being removed, also those that it had: what
// it had not synced is gone if its machine was.
func (n *Node) heldByAll() epoch.Offset {
	if guard.Off(guard.TombstonesSeenByAll) {
		return n.log.EndOffset()
	}
	rec := n.core.Record()
	if rec.Progress == nil || rec.Progress.TookOver != rec.LeaderEpoch || len(rec.Replicas) == 0 {
		return 0
	}
	low := n.log.EndOffset()
	for _, p := range rec.Replicas {
		i := slices.IndexFunc(rec.Progress.Replicas, func(q epoch.ReplicaProgress) bool { return q.ID == p.ID })
		if i < 0 || !rec.Progress.Replicas[i].Live {
			return 0
		}
		low = min(low, rec.Progress.Replicas[i].LogEndOffset)
	}
	return low
}

// Compacted says what the work that Ports.Compact was given returned.
func (n *Node) Compacted(err error) {
	c := &n.compaction
	if n.failed != nil || c.run == nil {
		return
	}
	more := false
	if err == nil && n.settings.Cleanup.Compacts() {
		err = n.changeLog(func() (err error) {
			more, err = n.log.SwapCompacted(c.run)
			return err
		})
	}
	stats := c.run.Stats()
	n.updateTotals(func(t *CompactionTotals) {
		t.Read += stats.Read - c.seen.Read
		t.Freed += stats.Freed - c.seen.Freed
	})
	c.seen = stats
	if more && err == nil {
		n.stepCompaction()
		return
	}
	c.run.Close()
	c.run = nil
	n.endCompaction(stats, err)
	if n.failed == nil {
		n.settle()
	}
}

func (n *Node) endCompaction(stats log.CompactionStats, err error) {
	switch {
	case err == nil:
		n.updateTotals(func(t *CompactionTotals) { t.LastRun, t.DirtyRatio = n.cfg.Wall(), 0 })
		n.cfg.Log.Info("log compacted", "upTo", n.log.CleanedOffset(), "bytesRead", stats.Read, "bytesFreed", stats.Freed, "recordsRemoved", stats.Removed)
	case errors.Is(err, log.ErrCompactionStale), errors.Is(err, log.ErrClosed):
	case errors.Is(err, log.ErrDamaged):
		n.NoteDamage(err)
	case errors.Is(err, log.ErrFailed):
		n.fail(err)
	default:
		n.compaction.due = n.cfg.Now() + compactLater
		n.cfg.Log.Error(err, "the log could not be compacted; it is tried again later", "seconds", compactLater.Seconds())
	}
}
