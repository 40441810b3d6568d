package core

import (
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

// NoteTrouble says what is wrong with this replica's volume. A leader tells it with its
// progress, a follower with its fetches; a damaged leader hands over as soon as it is
// Dispensable.
func (c *Core) NoteTrouble(t epoch.Trouble) { c.trouble = t }

// Trouble is what NoteTrouble last said.
func (c *Core) Trouble() epoch.Trouble { return c.trouble }

// Dispensable reports that nothing stands still without this replica: so many others are
// in sync, and live as far as it knows, that acks=all goes on and somebody can lead.
func (c *Core) Dispensable(now time.Duration) bool {
	rec := c.snap.Record
	if c.role == Leader {
		others := 0
		for _, id := range rec.ISR {
			if r := c.remotes[id]; r != nil && r.connected && c.live(id, now) {
				others++
			}
		}
		return others >= max(rec.MinISR, 1)
	}
	return rec.Recovery == nil && c.role == Follower && (!rec.InSync(c.me.ID) || len(rec.ISR) > rec.MinISR)
}

func (c *Core) progressOf(id epoch.ReplicaID, now time.Duration) epoch.ReplicaProgress {
	if id == c.me.ID {
		return epoch.ReplicaProgress{ID: id, LogEndOffset: c.log.EndOffset(), HighWatermark: c.hw, LeaderEpoch: c.log.EpochCache().Latest(),
			Session: c.me.Session, Live: true, Trouble: c.trouble}
	}
	r := c.remotes[id]
	if r == nil {
		r = newRemote()
	}
	p := epoch.ReplicaProgress{ID: id, LogEndOffset: r.leo, HighWatermark: r.hw, LeaderEpoch: r.lastEpoch,
		Session: r.session, Live: c.live(id, now) && r.leo != epoch.NoOffset, Trouble: r.trouble}
	if r.leo != epoch.NoOffset && !c.snap.Record.InSync(id) {
		p.BytesBehind = c.log.SizeFrom(r.leo)
	}
	return p
}

// LowWatermark is the lowest log start of the replicas that are at work, NoOffset while
// one of them has not told its own: nothing before it comes back by an election
// (DeleteRecords, KIP-107). Replicas that are down are not waited for, as in Kafka; they
// take over the leader's log start when they return.
func (c *Core) LowWatermark(now time.Duration) epoch.Offset {
	low := c.log.StartOffset()
	for id, r := range c.remotes {
		if !c.gone(id, r, now) {
			low = min(low, r.start)
		}
	}
	return low
}
