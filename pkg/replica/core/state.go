package core

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Clone returns a copy of c that works on log and shares nothing that changes with
// c. It is for explorers, which go on from one state in many ways.
func (c *Core) Clone(log Log) *Core {
	n := *c
	n.log = log
	n.effects, n.waiters = slices.Clone(c.effects), slices.Clone(c.waiters)
	n.remotes = maps.Clone(c.remotes)
	for id, r := range n.remotes {
		n.remotes[id] = clonePtr(r)
	}
	n.following.outstanding = clonePtr(c.following.outstanding)
	if p := clonePtr(c.rec.pending); p != nil {
		p.union, p.versions = slices.Clone(p.union), slices.Clone(p.versions)
		n.rec.pending = p
	}
	return &n
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Identity is who this process is.
func (c *Core) Identity() Identity { return c.me }

// MaximalISR is the set that the high watermark is counted over: the record's ISR and
// every change of it that may still be written (rule 4).
func (c *Core) MaximalISR() []epoch.ReplicaID { return c.maximalISR() }

// Position is what a leader knows of another replica: the log end that it counts,
// NoOffset if none, and the session that proved it.
func (c *Core) Position(id epoch.ReplicaID) (epoch.Offset, epoch.Session) {
	if r := c.remotes[id]; r != nil {
		return r.leo, r.session
	}
	return epoch.NoOffset, epoch.NoSession
}

// AppendState appends a canonical form of the state: two cores of equal form, over
// equal logs, answer every sequence of events alike. record appends the form of a
// snapshot.
//
// Instants are told only as old or not. That is exact for a caller that lets time pass
// in two ways: a second before every event, which ends all pauses between retries, and
// all such seconds together less than half of LagTimeMax; or more than twice LagTimeMax
// at once. With ShowGrace as long as LagTimeMax and DisconnectGrace shorter than a
// second, an instant is then within every limit or beyond it, whatever its exact
// distance, and so is the pause of an isolated leader, which LagTimeMax bounds. What
// depends on the age of the lease (rule 8: reads and acks below all) and
// what is only reported ([Core.Progress]) is left out: neither ever decides what is
// committed.
func (c *Core) AppendState(b []byte, record func([]byte, epoch.Snapshot) []byte) []byte {
	b = binary.AppendVarint(b, int64(c.me.ID))
	b = binary.AppendVarint(b, int64(c.me.Session))
	b = appendString(b, string(c.me.StartID))
	b = append(b, c.me.DirectoryID[:]...)
	b = append(b, byte(c.role), bit(c.stopping), bit(c.HoldsAppends(c.now)), bit(c.holdUntil > 0))
	if c.role == Leader || c.stopping || c.rec.pending != nil || c.following.ended {
		b = record(b, c.snap)
	} else { // of its record, only what a newer one is compared with is looked at again
		last := c.snap.Record.LastChange()
		b = binary.AppendVarint(b, int64(last.PartitionEpoch))
		b = binary.AppendVarint(b, int64(last.LeaderEpoch))
		b = appendString(b, string(last.ID))
	}
	b = binary.AppendVarint(b, int64(c.hw))
	if i := c.isolation; i.backoff > 0 { // it has asked to be replaced
		b = append(b, bit(c.now < i.notBefore))
		b = binary.AppendVarint(b, int64(i.at))
		b = binary.AppendVarint(b, int64(i.backoff))
	}
	b = c.appendRole(b)
	b = binary.AppendUvarint(b, uint64(len(c.waiters)))
	for _, w := range c.waiters {
		b = binary.AppendUvarint(b, w.token)
		b = binary.AppendVarint(b, int64(w.required))
		b = append(b, bit(w.deadline <= c.now))
	}
	return c.appendWriter(b)
}

func (c *Core) appendRole(b []byte) []byte {
	if c.role == Follower {
		f := c.following
		b = binary.AppendVarint(b, int64(f.leader))
		b = binary.AppendVarint(b, int64(f.epoch))
		b = binary.AppendVarint(b, int64(f.session))
		b = append(b, bit(f.fenced), bit(f.ended), bit(f.outstanding != nil))
		if q := f.outstanding; q != nil {
			b = binary.AppendVarint(b, int64(q.Offset))
			b = binary.AppendVarint(b, int64(q.LastEpoch))
		}
	}
	if c.role != Leader {
		return b
	}
	b = binary.AppendVarint(b, int64(c.epochStart))
	shown := true // once all have connected, it does not matter how long they took
	for _, r := range c.remotes {
		shown = shown && r.connection != 0
	}
	b = append(b, bit(!shown && c.old(c.takeover)))
	for _, id := range slices.Sorted(maps.Keys(c.remotes)) {
		r := c.remotes[id]
		b = binary.AppendVarint(b, int64(id))
		b = binary.AppendVarint(b, int64(r.leo))
		b = binary.AppendVarint(b, int64(r.session))
		b = append(b, r.directory[:]...)
		b = append(b, bit(c.old(r.caughtUp)), bit(r.connected), bit(r.refused && !r.connected))
		if c.snap.Record.MinISR > 1 { // it may find itself isolated
			b = append(b, bit(c.old(max(r.fetchedAt, c.takeover))))
		}
		if r.leo != epoch.NoOffset && c.old(r.caughtUp) && !c.old(r.fetchedAt) { // the last fetch may make it caught up
			b = binary.AppendVarint(b, int64(r.leaderLEOBefore))
		}
		b = append(b, 0xff)
		b = binary.AppendUvarint(b, r.connection)
	}
	return b
}

func (c *Core) appendWriter(b []byte) []byte {
	w := &c.rec
	b = append(b, bit(w.busy), bit(w.writing), bit(w.wantRead), bit(w.unsettled), bit(w.regressed), bit(w.closed), bit(w.farewell), bit(w.reported),
		bit(c.role == Leader && w.heartbeatDue <= c.now), bit(w.pending != nil))
	if w.busy && !w.writing {
		b = binary.AppendVarint(b, int64(w.readChange.PartitionEpoch))
		b = binary.AppendVarint(b, int64(w.readChange.LeaderEpoch))
		b = binary.AppendVarint(b, int64(w.readEpoch))
		b = appendString(b, string(w.readChange.ID))
	}
	if p := w.pending; p != nil {
		b = binary.AppendVarint(b, int64(p.since))
		for _, id := range p.union {
			b = binary.AppendVarint(b, int64(id))
		}
		b = append(b, 0xff)
		for _, v := range p.versions {
			b = appendString(b, v)
		}
	}
	return b
}

// old reports that an instant is beyond the limits.
func (c *Core) old(t time.Duration) bool { return c.now-t > c.opts.LagTimeMax/2 }

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
