package core

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// readRetry is the pause after a failed read or a refused write of the record.
const readRetry = 250 * time.Millisecond

// recordWriter is the state of this replica's dealings with the record's store: one
// read or write at a time, and what may still be written by an earlier one.
type recordWriter struct {
	busy          bool // a read or write is outstanding
	writing       bool // the outstanding one is a write
	wantRead      bool
	unsettled     bool // a write failed: no other before a read
	readNotBefore time.Duration
	notBefore     time.Duration
	readChange    epoch.Change      // the newest known when the read began
	readEpoch     epoch.LeaderEpoch // the newest in the log then
	heartbeatDue  time.Duration
	sentAt        time.Duration // when the outstanding write was begun
	renewedAt     time.Duration // no observer saw the newest heartbeat before
	liveAtRenewal []epoch.ReplicaID
	pending       *pendingISR
	regressed     bool
	closed        bool // the record is deleted, or closed to this replica
	reported      bool // to a frozen record; what is known then must not grow before the record has gone on
	farewell      bool // a leader that stops is to tell once more how far it came
}

// pendingISR is an ISR change whose outcome is not known (rule 4): it, and every one
// tried since, may be in force. It is settled only when the object is seen, by a
// quorum read or an own write, past every version that one was conditioned on.
type pendingISR struct {
	union    []epoch.ReplicaID
	versions []string
	since    epoch.PartitionEpoch
}

func (w *recordWriter) settle(s epoch.Snapshot, from Source) {
	p := w.pending
	if p == nil {
		return
	}
	moved := s.Record.PartitionEpoch > p.since
	if from != FromWatch && !slices.Contains(p.versions, s.Version) {
		moved = true
	}
	if moved {
		w.pending = nil
	}
}

// with is a set and more: what is tried again for hours must not grow.
func with[T cmp.Ordered](set []T, more ...T) []T {
	set = slices.Concat(set, more)
	slices.Sort(set)
	return slices.Compact(set)
}

// propose remembers that an ISR change is about to be written.
func (w *recordWriter) propose(isr []epoch.ReplicaID, s epoch.Snapshot) {
	if w.pending == nil {
		w.pending = &pendingISR{since: s.Record.PartitionEpoch}
	}
	w.pending.since = max(w.pending.since, s.Record.PartitionEpoch)
	w.pending.union = with(w.pending.union, isr...)
	w.pending.versions = with(w.pending.versions, s.Version)
}

// maybeWrite writes what is to be written, if nothing is outstanding. A heartbeat
// carries the wanted ISR change with it.
func (c *Core) maybeWrite(now time.Duration) {
	w := &c.rec
	now = c.passed(now)
	if w.busy && !(w.writing && guard.Off(guard.OneWriteOutstanding)) || now < w.notBefore {
		return
	}
	if w.wantRead && now >= w.readNotBefore {
		c.startRead()
		return
	}
	if w.unsettled || w.regressed || c.snap.Record.Recovery != nil {
		return
	}
	next, ok := c.nextRecord(now)
	if !ok {
		return
	}
	w.busy, w.writing, w.sentAt = true, true, now
	c.emit(WriteRecord{Base: c.snap, Next: next})
}

// nextRecord is the record that this replica would have, and whether that differs.
func (c *Core) nextRecord(now time.Duration) (epoch.Record, bool) {
	rec := c.snap.Record
	if c.role != Leader {
		if !c.stopping {
			return c.succeed()
		}
		n, err := epoch.Retire(rec, c.me.ID, c.me.Session, c.changeID())
		return n, err == nil
	}
	if n, ok := c.handOver(now); ok {
		return n, true
	}
	if n, ok := c.told(now); ok {
		return epoch.Renew(n, time.Time{}, c.opts.LeaseDuration, c.Progress(now)), true
	}
	n, err := epoch.ChangeISR(rec, epoch.ISRChange{Leader: c.me.ID, Session: c.me.Session, LeaderEpoch: rec.LeaderEpoch,
		ISR: c.wantedISR(now), Change: c.changeID()})
	changed := err == nil
	if changed {
		c.rec.propose(n.ISR, c.snap)
	} else {
		n = rec
	}
	if changed || now >= c.rec.heartbeatDue || c.newsDue(now) || c.rec.farewell {
		c.rec.heartbeatDue = now + c.opts.LeaseDuration/3
		return epoch.Renew(n, time.Time{}, c.opts.LeaseDuration, c.Progress(now)), true
	}
	return n, false
}

// newsPause is the least time between two writes that only tell of a change of
// liveness.
const newsPause = 200 * time.Millisecond

// newsDue reports that who is live, or in trouble, has changed since the
// record was last told, so that status need not wait for the next heartbeat.
func (c *Core) newsDue(now time.Duration) bool {
	told := c.snap.Record.Progress
	if now-c.rec.renewedAt < newsPause || told == nil || told.TookOver != c.snap.Record.LeaderEpoch {
		return false
	}
	for _, p := range told.Replicas {
		if r := c.remotes[p.ID]; r != nil && (p.Trouble != r.trouble || p.Live != (c.live(p.ID, now) && r.leo != epoch.NoOffset)) || p.ID == c.me.ID && p.Trouble != c.trouble {
			return true
		}
	}
	return false
}

// Written says that a write succeeded, with the record as it is now.
func (c *Core) Written(now time.Duration, s epoch.Snapshot) {
	w := &c.rec
	w.busy, w.writing, w.closed, w.farewell = false, false, false, false
	if c.role == Leader && s.Record.Recovery == nil && s.Record.PartitionEpoch >= c.snap.Record.PartitionEpoch { // a report renews nothing
		w.renewedAt = max(w.renewedAt, w.sentAt) // it may have been written long before its answer came
		w.liveAtRenewal = c.liveOthers(now)
	}
	c.Observe(now, s, FromWrite)
	c.advance()
	c.maybeWrite(now)
}

// WriteFailed says that a write was refused, or that its outcome is not known. Both
// need a look at the record: only that it has moved settles the matter.
func (c *Core) WriteFailed(now time.Duration, err error) {
	w := &c.rec
	w.busy, w.writing, w.wantRead, w.unsettled = false, false, true, true
	w.farewell = w.farewell && errors.Is(err, epoch.ErrConflict)
	w.readNotBefore = now
	w.closed = w.closed || errors.Is(err, epoch.ErrNotFound) || errors.Is(err, epoch.ErrRejected)
	if guard.Off(guard.UndecidedUntilMoved) {
		w.pending = nil
	}
	if !errors.Is(err, epoch.ErrConflict) {
		w.notBefore = now + readRetry
	}
	c.maybeWrite(now)
}

// readSoon asks for a quorum read: somebody seems to know a newer record.
func (c *Core) readSoon() {
	c.rec.wantRead = true
	if !c.rec.busy && c.now >= max(c.rec.readNotBefore, c.rec.notBefore) {
		c.startRead()
	}
}

func (c *Core) startRead() {
	w := &c.rec
	w.busy, w.wantRead, w.unsettled = true, false, false
	w.readNotBefore = c.now + readRetry
	w.readChange, w.readEpoch = c.snap.Record.LastChange(), c.log.EpochCache().Latest()
	c.emit(ReadRecord{})
}

// ReadDone takes in a quorum read. One that was begun after a newer record was seen
// and returns an older one, or another history, is a regression (rule 7): the record is
// marked, and nothing else is changed any more until it was recovered.
func (c *Core) ReadDone(now time.Duration, s epoch.Snapshot) {
	w := &c.rec
	w.busy, w.closed = false, false
	rec := s.Record
	if c.wentBack(rec) && !guard.Off(guard.MarkRegression) {
		c.regress(now, s)
		return
	}
	w.regressed, w.reported = false, rec.Recovery != nil
	c.Observe(now, s, FromRead)
	c.report(now, s)
	c.advance()
	c.maybeWrite(now)
}

// ReadFailed says that the record could not be read; it will be tried again.
func (c *Core) ReadFailed(now time.Duration, err error) {
	w := &c.rec
	w.closed = w.closed || errors.Is(err, epoch.ErrNotFound) || errors.Is(err, epoch.ErrRejected)
	w.busy, w.wantRead, w.unsettled, w.farewell = false, true, true, false
	w.notBefore = now + readRetry
}

func (c *Core) liveOthers(now time.Duration) []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	for id := range c.remotes {
		if c.live(id, now) {
			ids = append(ids, id)
		}
	}
	return ids
}
