package core

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Progress is what a leader tells with its heartbeat.
func (c *Core) Progress(now time.Duration) epoch.Progress {
	rec := c.snap.Record
	p := epoch.Progress{HighWatermark: c.hw, LogStartOffset: c.log.StartOffset(), FlushEveryBatch: c.opts.FlushEveryBatch, TookOver: rec.LeaderEpoch}
	for _, q := range rec.Replicas {
		p.Replicas = append(p.Replicas, c.progressOf(q.ID, now))
	}
	return p
}

func (c *Core) progressOf(id epoch.ReplicaID, now time.Duration) epoch.ReplicaProgress {
	if id == c.me.ID {
		return epoch.ReplicaProgress{ID: id, LogEndOffset: c.log.EndOffset(), HighWatermark: c.hw, LeaderEpoch: c.log.EpochCache().Latest(),
			Session: c.me.Session, Live: true}
	}
	r := c.remotes[id]
	if r == nil {
		r = newRemote()
	}
	return epoch.ReplicaProgress{ID: id, LogEndOffset: r.leo, HighWatermark: r.hw, LeaderEpoch: r.lastEpoch,
		Session: r.session, Live: c.live(id, now) && r.leo != epoch.NoOffset}
}

// LogStartOffsets are those of the replicas that have fetched in this epoch, for the
// low watermark of DeleteRecords (KIP-107).
func (c *Core) LogStartOffsets() []epoch.Offset {
	out := []epoch.Offset{c.log.StartOffset()}
	for _, r := range c.remotes {
		if r.leo != epoch.NoOffset {
			out = append(out, r.start)
		}
	}
	slices.Sort(out)
	return out
}
