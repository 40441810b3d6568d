package core

import (
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// ReplicaFetch is a follower's fetch, as the leader gets it. It says both "send me
// from Offset on" and "I hold everything below it, in the history that LastEpoch
// ends": the second is the acknowledgement that moves the high watermark.
type ReplicaFetch struct {
	Replica     epoch.ReplicaID
	Session     epoch.Session
	StartID     epoch.StartID
	DirectoryID epoch.UUID
	LeaderEpoch epoch.LeaderEpoch
	Offset      epoch.Offset
	// LastEpoch is the newest epoch of the follower's cache; NoEpoch only when its
	// log is empty.
	LastEpoch      epoch.LeaderEpoch
	LogStartOffset epoch.Offset
	HighWatermark  epoch.Offset
	// Connection tells connections apart, never 0.
	Connection uint64
	// Trouble is what the follower says of its volume.
	Trouble epoch.Trouble
}

// FetchAnswer is what the leader says. Diverging, when set, comes without records:
// the follower must truncate first.
type FetchAnswer struct {
	LeaderEpoch    epoch.LeaderEpoch
	HighWatermark  epoch.Offset
	LogStartOffset epoch.Offset
	LogEndOffset   epoch.Offset
	Diverging      *epoch.Entry // Epoch, and Start used as that epoch's end offset
}

// Fetch answers a follower and counts its position. The order of the checks is
// Kafka's: epochs before leadership (KAFKA-14078), divergence before the offset.
func (c *Core) Fetch(now time.Duration, f ReplicaFetch) (FetchAnswer, error) {
	now = c.passed(now)
	if err := c.fence(f.LeaderEpoch); err != nil {
		return FetchAnswer{}, err
	}
	if c.role != Leader {
		return FetchAnswer{}, ErrNotLeader
	}
	if err := c.authenticate(f); err != nil {
		return FetchAnswer{}, err
	}
	r := c.remotes[f.Replica]
	end := c.log.EndOffset()
	a := FetchAnswer{LeaderEpoch: c.snap.Record.LeaderEpoch, LogStartOffset: c.log.StartOffset(), LogEndOffset: end}
	r.connection, r.connected, r.trouble = f.Connection, true, f.Trouble
	diverging, err := c.parts(f)
	if err != nil {
		return a, err
	}
	if diverging == nil || guard.Off(guard.DivergingNotCounted) {
		c.count(now, r, f, end)
	}
	a.Diverging = diverging
	a.HighWatermark = c.hw
	return a, nil
}

// Peek answers a parked fetch again, without counting it again.
func (c *Core) Peek(f ReplicaFetch) (FetchAnswer, error) {
	if err := c.fence(f.LeaderEpoch); err != nil {
		return FetchAnswer{}, err
	}
	if c.role != Leader {
		return FetchAnswer{}, ErrNotLeader
	}
	diverging, err := c.parts(f)
	return FetchAnswer{LeaderEpoch: c.snap.Record.LeaderEpoch, LogStartOffset: c.log.StartOffset(), LogEndOffset: c.log.EndOffset(),
		HighWatermark: c.hw, Diverging: diverging}, err
}

// fence refuses what names another leader epoch than the one of the record (KIP-320).
func (c *Core) fence(e epoch.LeaderEpoch) error {
	switch known := c.snap.Record.LeaderEpoch; {
	case e < known && !guard.Off(guard.FetchOlderEpoch):
		return ErrFencedLeaderEpoch
	case e > known && !guard.Off(guard.FetchNewerEpoch):
		c.readSoon()
		return ErrUnknownLeaderEpoch
	}
	return nil
}

// authenticate lets only the registered process of an assigned replica count
// (rule 9, KIP-903): its session, its directory id, and its start id, which only who
// may read the record knows.
func (c *Core) authenticate(f ReplicaFetch) error {
	p, ok := c.snap.Record.Replica(f.Replica)
	switch {
	case !ok || f.Replica == c.me.ID || c.remotes[f.Replica] == nil:
		return ErrUnknownLeaderEpoch // the sender may know a newer assignment
	case f.Session > p.Session:
		c.readSoon()
		return ErrUnknownLeaderEpoch
	case f.Session < p.Session && guard.Off(guard.FetchSession):
		return nil
	case f.Session < p.Session:
		return ErrStaleSession
	case (f.StartID != p.StartID || f.DirectoryID != p.DirectoryID) && !guard.Off(guard.FetchDirectory):
		return ErrUnauthorized
	}
	return nil
}

// parts finds where the follower's history parts from this log: nil if it does not
// up to its offset. A log without any epoch has no history, and begins where this one
// does: one that begins behind would lack what is there, since after an unclean election
// the old leader's log start may lie behind the new leader's end. A member of the ISR
// has deleted what it lacks, by order of a leader of this history.
func (c *Core) parts(f ReplicaFetch) (*epoch.Entry, error) {
	offset, last := f.Offset, f.LastEpoch
	start, end := c.log.StartOffset(), c.log.EndOffset()
	if last != epoch.NoEpoch && !guard.Off(guard.TruncateByEpoch) {
		e, upTo := c.log.EpochCache().EndOffset(last, end)
		switch {
		case e == epoch.NoEpoch, offset < start && !guard.Off(guard.DivergenceBeforeOffset): // KAFKA-12996
			return nil, ErrOffsetOutOfRange
		case e < last || upTo < offset:
			return &epoch.Entry{Epoch: e, Start: upTo}, nil
		}
	}
	beginsElsewhere := last == epoch.NoEpoch && offset != start && !c.snap.Record.InSync(f.Replica)
	if offset < start || offset > end || beginsElsewhere {
		return nil, ErrOffsetOutOfRange
	}
	return nil, nil
}

// count takes a follower's position into account (KAFKA-4485: "it has what I had
// when it last asked" is caught up).
func (c *Core) count(now time.Duration, r *remote, f ReplicaFetch, end epoch.Offset) {
	switch {
	case f.Offset >= end:
		r.caughtUp = max(r.caughtUp, now)
	case r.leo != epoch.NoOffset && f.Offset >= r.leaderLEOBefore:
		r.caughtUp = max(r.caughtUp, r.fetchedAt)
	}
	r.leo, r.start, r.hw, r.lastEpoch = f.Offset, f.LogStartOffset, f.HighWatermark, f.LastEpoch
	r.session, r.directory = f.Session, f.DirectoryID
	r.leaderLEOBefore = max(end, r.leaderLEOBefore)
	r.fetchedAt = now
	c.advance()
	if !c.snap.Record.InSync(f.Replica) && c.mayJoin(f.Replica, r, now) {
		c.maybeWrite(now)
	}
}
