package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// remote is what a leader knows of another replica, by its fetches in this epoch.
type remote struct {
	leo       epoch.Offset // NoOffset until it fetched in this epoch
	start     epoch.Offset
	hw        epoch.Offset
	lastEpoch epoch.LeaderEpoch
	session   epoch.Session // of the last fetch that counted
	directory epoch.UUID    // of the record when that fetch counted

	caughtUp        time.Duration // the newest instant at which it is known to have had everything
	fetchedAt       time.Duration
	leaderLEOBefore epoch.Offset // this leader's log end at the previous fetch
	connection      uint64
	connected       bool
	disconnectedAt  time.Duration
	refused         bool // since then: no process listens any more where it was
	trouble         epoch.Trouble
}

func newRemote() *remote {
	return &remote{leo: epoch.NoOffset, start: epoch.NoOffset, hw: epoch.NoOffset, lastEpoch: epoch.NoEpoch}
}

// lead takes over an epoch, or takes in a newer record of the epoch that it leads.
func (c *Core) lead(now time.Duration, old epoch.Record) {
	rec := c.snap.Record
	if c.role == Leader && old.LeaderEpoch == rec.LeaderEpoch {
		c.refreshRemotes(old)
		c.advance()
		c.maybeWrite(now)
		return
	}
	if c.role == Follower {
		c.emit(StopFollowing{}) // nothing fetched may be appended behind the epoch's start
		c.following = following{}
	}
	c.role = Leader
	c.takeover, c.holdUntil = now, 0
	c.epochStart = c.log.EndOffset()
	if !guard.Off(guard.EpochStartBeforeAppend) {
		c.emit(AssignEpoch{Epoch: rec.LeaderEpoch})
	}
	c.remotes = map[epoch.ReplicaID]*remote{}
	for _, p := range rec.Replicas {
		if p.ID != c.me.ID {
			c.remotes[p.ID] = c.freshRemote(rec, p)
		}
	}
	c.rec.heartbeatDue = now
	c.rec.renewedAt = now
	c.rec.liveAtRenewal = slices.DeleteFunc(slices.Clone(rec.ISR), func(id epoch.ReplicaID) bool { return id == c.me.ID })
	c.advance()
	c.maybeWrite(now)
}

func (c *Core) freshRemote(rec epoch.Record, p epoch.Replica) *remote {
	r := newRemote()
	r.directory = p.DirectoryID
	if rec.InSync(p.ID) {
		r.caughtUp = c.takeover // counts as live for the lag time, unless it is known to be gone
	} else {
		r.caughtUp = -c.opts.LagTimeMax * 2
	}
	return r
}

// refreshRemotes follows the assignment: a remembered log end survives a new
// session, and is void with a new directory id.
func (c *Core) refreshRemotes(old epoch.Record) {
	rec := c.snap.Record
	for id := range c.remotes {
		if _, ok := rec.Replica(id); !ok {
			delete(c.remotes, id)
		}
	}
	for _, p := range rec.Replicas {
		if p.ID == c.me.ID {
			continue
		}
		r, known := c.remotes[p.ID]
		if q, was := old.Replica(p.ID); known && was && (q.DirectoryID == p.DirectoryID || guard.Off(guard.PositionVoidWithDirectory)) {
			continue
		}
		fresh := c.freshRemote(rec, p)
		if known {
			fresh.connection, fresh.connected, fresh.disconnectedAt = r.connection, r.connected, r.disconnectedAt
		}
		c.remotes[p.ID] = fresh
	}
}

// ownEnd is this leader's log end as far as it counts for the high watermark.
func (c *Core) ownEnd() epoch.Offset {
	if c.opts.FlushEveryBatch && !guard.Off(guard.LeaderFlushesFirst) {
		return c.log.FlushedOffset()
	}
	return c.log.EndOffset()
}

// maximalISR is the union of the record's ISR and every change still undecided.
func (c *Core) maximalISR() []epoch.ReplicaID {
	isr := c.snap.Record.ISR
	if c.rec.pending == nil {
		return isr
	}
	return with(isr, c.rec.pending.union...)
}

// advance moves the high watermark as far as the maximal ISR allows, and completes
// what waited for it. It never moves back, and stands still while the record's ISR
// is below the effective min ISR (rule 5, KAFKA-15583).
func (c *Core) advance() {
	if c.role != Leader {
		return
	}
	rec := c.snap.Record
	if !rec.InSync(c.me.ID) || len(rec.ISR) < rec.MinISR && !guard.Off(guard.FreezeBelowMinISR) {
		return
	}
	members := c.maximalISR()
	if guard.Off(guard.MaximalISR) {
		members = rec.ISR
	}
	hw := c.ownEnd()
	for id, r := range c.remotes {
		if r.leo == epoch.NoOffset && guard.Off(guard.UnknownPositionBlocks) {
			continue
		}
		if slices.Contains(members, id) || c.aboutToJoin(id, r) {
			hw = min(hw, r.leo)
		}
	}
	if hw == c.hw || hw < c.hw && !guard.Off(guard.HighWatermarkNeverBack) {
		return
	}
	c.hw = hw
	c.completeWaiters()
	c.emit(Changed{})
}

// aboutToJoin lets a follower that keeps pace hold the high watermark, so that it
// can ever reach it and join.
func (c *Core) aboutToJoin(id epoch.ReplicaID, r *remote) bool {
	return r.leo >= c.hw && r.connected && c.eligible(id, r) && c.isCaughtUp(r, c.now)
}

// eligible is KIP-841 and KIP-903: only the registered process may join, and only
// one that means to stay.
func (c *Core) eligible(id epoch.ReplicaID, r *remote) bool {
	p, ok := c.snap.Record.Replica(id)
	stays := !p.Stopping && !p.Removing && !p.Gone || guard.Off(guard.JoinOnlyToStay)
	return ok && stays && (p.Session == r.session || guard.Off(guard.JoinWithFetchSession))
}

// isCaughtUp compares for equality first: an idle follower is not behind (KAFKA-7152).
func (c *Core) isCaughtUp(r *remote, now time.Duration) bool {
	return r.leo == c.log.EndOffset() || now-r.caughtUp <= c.opts.LagTimeMax
}

// gone reports that a replica is known or presumed to be down: its process ended,
// its fetch connection closed and did not come back, or it never showed up.
func (c *Core) gone(id epoch.ReplicaID, r *remote, now time.Duration) bool {
	if r.connected {
		return false
	}
	if p, ok := c.snap.Record.Replica(id); ok && p.Gone {
		return true
	}
	if r.connection != 0 {
		return r.refused || now-r.disconnectedAt >= c.opts.DisconnectGrace
	}
	return now-c.takeover >= c.opts.ShowGrace
}

// live reports that a replica is at work and keeps up.
func (c *Core) live(id epoch.ReplicaID, now time.Duration) bool {
	if id == c.me.ID {
		return true
	}
	r := c.remotes[id]
	return r != nil && c.isCaughtUp(r, now) && !c.gone(id, r, now)
}

// LiveISR lists the members of the ISR that are live, as this leader knows them.
func (c *Core) LiveISR(now time.Duration) []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	for _, id := range c.snap.Record.ISR {
		if c.role != Leader || c.live(id, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Disconnected says that a replica's fetch connection has closed.
func (c *Core) Disconnected(now time.Duration, id epoch.ReplicaID, connection uint64) {
	now = c.passed(now)
	if r := c.remotes[id]; r != nil && r.connected && r.connection == connection {
		r.connected, r.refused = false, false
		r.disconnectedAt = now
	}
}

// Refused says that the machine of a replica whose fetch connection has closed refuses
// another one: its process has ended, and need not be waited for.
func (c *Core) Refused(now time.Duration, id epoch.ReplicaID, connection uint64) {
	now = c.passed(now)
	if r := c.remotes[id]; r != nil && !r.connected && r.connection == connection {
		r.refused = true
		c.maybeWrite(now)
	}
}

// wantedISR is the ISR that this leader would have: without those that are gone or
// behind, with those that have caught up. It stays at or above min ISR, as that
// will be with who joins, by keeping the members with the longest logs.
func (c *Core) wantedISR(now time.Duration) []epoch.Member {
	rec := c.snap.Record
	var stay []epoch.Member
	var out []epoch.ReplicaID
	for _, id := range rec.ISR {
		p, _ := rec.Replica(id)
		if id == c.me.ID || c.live(id, now) && !p.Stopping {
			stay = append(stay, epoch.Member{ID: id, Session: p.Session})
		} else {
			out = append(out, id)
		}
	}
	var joining []epoch.ReplicaID
	for id, r := range c.remotes {
		if !rec.InSync(id) && c.mayJoin(id, r, now) {
			stay = append(stay, epoch.Member{ID: id, Session: r.session})
			joining = append(joining, id)
		}
	}
	minISR := rec.MinISRWith(joining)
	slices.SortFunc(out, func(a, b epoch.ReplicaID) int { return cmp.Compare(c.knownEnd(b), c.knownEnd(a)) })
	for _, id := range out {
		if len(stay) >= minISR || guard.Off(guard.NeverBelowMinISR) {
			break
		}
		stay = append(stay, epoch.Member{ID: id})
	}
	slices.SortFunc(stay, func(a, b epoch.Member) int { return int(a.ID - b.ID) })
	return stay
}

// knownEnd is the log end that a replica was last seen at, NoOffset if never.
func (c *Core) knownEnd(id epoch.ReplicaID) epoch.Offset {
	if r := c.remotes[id]; r != nil {
		return r.leo
	}
	return epoch.NoOffset
}

// mayJoin: at or past the high watermark and the start of this epoch (KAFKA-7128).
// Who has caught up in this epoch has reached its start, too; the comparison stands
// for itself, since being caught up is a matter of times and limits.
func (c *Core) mayJoin(id epoch.ReplicaID, r *remote, now time.Duration) bool {
	atStart := r.leo >= c.epochStart && c.isCaughtUp(r, now) || guard.Off(guard.JoinAtEpochStart)
	atHW := r.leo >= c.hw || guard.Off(guard.JoinAtHighWatermark)
	return c.eligible(id, r) && !c.gone(id, r, now) && atHW && atStart && c.proven(r)
}

// proven reports that the epochs have shown a replica's log to be of this history. Of one
// that ends where this log begins they show nothing: all that it holds is deleted here, and
// may be another history. It empties itself with the answer to its fetch, and then says so.
func (c *Core) proven(r *remote) bool {
	return r.leo != c.log.StartOffset() || r.start >= r.leo || guard.Off(guard.JoinWithProvenHistory)
}

// Live reports that the leader knows a replica to be at work and to keep up.
func (c *Core) Live(now time.Duration, id epoch.ReplicaID) bool {
	return c.role == Leader && c.live(id, now)
}
