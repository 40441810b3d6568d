package core

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Stop begins an orderly end: a leader hands over to the live member of the ISR with
// the longest log and goes on serving until the record names it; a follower asks to
// be taken out of the ISR, so that the leader never waits for it. A leader without a
// successor tells its high watermark a last time: should it not come back, the record
// says how much of what was committed went with it.
func (c *Core) Stop(now time.Duration) {
	c.stopping = true
	c.rec.farewell = c.role == Leader
	c.maybeWrite(now)
}

// Released reports that nobody waits for this replica any more: it neither leads nor
// is in the ISR, or nothing that could be waited for would change that.
func (c *Core) Released() bool {
	rec := c.snap.Record
	me, assigned := rec.Replica(c.me.ID)
	switch {
	case !assigned, c.rec.closed:
		return true
	case c.role == Leader:
		return !c.successorMayCome() && (!c.rec.farewell || c.rec.regressed || rec.Recovery != nil)
	case !rec.InSync(c.me.ID), rec.Leader == epoch.NoReplica:
		return true
	}
	return me.Stopping && len(rec.ISR)-1 < rec.MinISR // the leader may not take it out
}

// successorMayCome reports that another replica is at work and means to stay, so that
// it can take over now or soon.
func (c *Core) successorMayCome() bool {
	for id, r := range c.remotes {
		p, _ := c.snap.Record.Replica(id)
		if !p.Stopping && !p.Removing && !c.gone(id, r, c.now) {
			return true
		}
	}
	return false
}

// handOverPause bounds for how long appends wait for a leader's successor to have all.
const handOverPause = 500 * time.Millisecond

// HoldsAppends reports that this leader is about to hand over, and appends are to wait:
// what it took now, its successor might not have. Records acknowledged with acks 1 would be
// lost, and those that wait for their commit be written twice by a producer that is not
// idempotent. It ends when another leads, and after handOverPause at the latest.
func (c *Core) HoldsAppends(now time.Duration) bool {
	return c.role == Leader && now < c.holdUntil
}

// handOver is the record with a successor in office, if this leader is to go, somebody can
// take over, and has all that was appended: appends wait for that.
func (c *Core) handOver(now time.Duration) (epoch.Record, bool) {
	rec := c.snap.Record
	best, leo := epoch.NoReplica, epoch.NoOffset
	if to, wanted := c.isToGo(now); wanted {
		best, leo = c.successor(to, now)
	}
	if best == epoch.NoReplica {
		c.holdUntil = 0
		return rec, false
	}
	if c.holdUntil == 0 {
		c.holdUntil = now + handOverPause
	}
	if c.HoldsAppends(now) && (leo < c.log.EndOffset() || len(c.waiters) > 0) {
		return rec, false // its next fetch goes on from here
	}
	var n epoch.Record
	var err error
	if c.stopping {
		n, err = epoch.HandOver(rec, c.me.ID, c.me.Session, best, c.changeID(), time.Time{})
	} else {
		n, err = epoch.Elect(rec, epoch.Election{Reason: epoch.ReasonSwitchover, Live: []epoch.ReplicaID{best}, Change: c.changeID()})
	}
	if err != nil {
		return rec, false
	}
	p := c.Progress(now)
	n.Progress = &p
	return n, true
}

// isToGo reports that this leader is to hand over, and to whom if that was said: it stops,
// was asked to, or has a damaged log and others enough.
func (c *Core) isToGo(now time.Duration) (to *epoch.ReplicaID, wanted bool) {
	s := c.snap.Record.Switchover
	switch {
	case c.stopping, c.trouble.Damaged && c.Dispensable(now):
		return nil, true
	case s != nil && s.Session == c.me.Session && !s.Isolated():
		return s.To, true
	}
	return nil, false
}

// successor is the live member of the ISR with the longest log, or whom a switchover names
// if it is one, and where that log is known to end.
func (c *Core) successor(to *epoch.ReplicaID, now time.Duration) (best epoch.ReplicaID, leo epoch.Offset) {
	rec := c.snap.Record
	best, leo = epoch.NoReplica, epoch.NoOffset
	for _, id := range rec.ISR {
		p, _ := rec.Replica(id)
		r := c.remotes[id]
		if id == c.me.ID || r == nil || p.Stopping || p.Removing || !r.connected || !c.live(id, now) || to != nil && *to != id {
			continue
		}
		if r.leo > leo {
			best, leo = id, r.leo
		}
	}
	return best, leo
}
