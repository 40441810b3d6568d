package core

import (
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// This file is rule 7 as one replica sees it: what it tells of a record that went
// backwards, and what it does when a recovery has set aside the history that it knew.
// Without the first, committed records are lost by an election on an old ISR; without
// the second, two logs hold different records under the same leader epoch, and no
// fetch would ever show it.

// knowledge is this replica's report. Its log is knowledge, too: it holds no epoch that
// no record had.
func (c *Core) knowledge() epoch.Recovery {
	known := c.snap.Record
	v := epoch.RecoveryOf(c.me.ID, &known, c.hw)
	v.LeaderEpoch = max(v.LeaderEpoch, c.log.EpochCache().Latest())
	return v
}

// heed looks at a record that waits for recovery: if it lacks what this replica knows, a
// quorum read is to be made, and added to. One that has just been made is added to at once:
// where reads take longer than the pause between two, another would follow for ever.
func (c *Core) heed(rec epoch.Record, from Source) {
	if rec.Recovery == nil || from == FromRead {
		return
	}
	if _, err := epoch.MarkRecovery(rec, c.knowledge()); err == nil {
		c.readSoon()
	}
}

// report adds what this replica knows to a frozen record, just read. If there is nothing
// to add it pauses: whoever did not act on that record before it was frozen has an older
// one, and no write based on that can succeed.
func (c *Core) report(now time.Duration, s epoch.Snapshot) {
	w := &c.rec
	if s.Record.Recovery == nil || w.busy {
		return
	}
	if marked, err := epoch.MarkRecovery(s.Record, c.knowledge()); err == nil {
		w.busy, w.writing, w.sentAt = true, true, now
		c.emit(WriteRecord{Base: s, Next: marked})
		return
	}
	w.notBefore = max(w.notBefore, now+readRetry)
}

// wentBack reports that a quorum read is of an older state, or of another history, than
// what was known when it began.
func (c *Core) wentBack(rec epoch.Record) bool {
	return !rec.Sees(c.rec.readChange) || rec.LeaderEpoch < c.rec.readEpoch
}

func (c *Core) regress(now time.Duration, s epoch.Snapshot) {
	if !c.rec.regressed {
		c.rec.regressed = true
		c.emit(Regression{Read: s.Record, Known: c.snap.Record})
	}
	c.rec.wantRead, c.rec.notBefore, c.rec.reported = true, now+c.opts.LeaseDuration/3, true
	marked, err := epoch.MarkRecovery(s.Record, c.knowledge())
	if err == nil {
		c.rec.busy, c.rec.writing = true, true
		c.emit(WriteRecord{Base: s, Next: marked})
	}
}

// leaveHistory gives up what a recovery has set aside, and what it knew to be committed:
// a leader on the record that was put back may have told so, of records that members of
// the ISR that won do not have. It does so before the record that says so is persisted:
// whoever forgot first, and cut after, could be killed in between, and keep
// the other history for good. It reports whether this process may go on: if the record
// has it in the ISR nevertheless, another volume had reported in its name, and only a
// registration under a new directory id gives up a place that it has no right to.
func (c *Core) leaveHistory(old, rec epoch.Record) (goOn bool) {
	if rec.RecoveredSince(old) {
		c.rec.regressed, c.rec.reported = false, false // it went on from all that was known
		if !guard.Off(guard.RecoveryForgetsCommitted) {
			c.hw = c.log.StartOffset()
		}
	}
	shared, aside := rec.SetAside(c.me.ID, old)
	if !aside {
		return true
	}
	c.resign(Idle)
	if rec.InSync(c.me.ID) {
		c.emit(Exit{Reason: "a recovery of the record has set aside the history that this process followed, on the report of another volume; only a new registration can count again"})
		return false
	}
	if to, ok := c.log.EpochCache().StartAfter(shared); ok && to < c.log.EndOffset() {
		c.truncate(to)
	} else if ok {
		c.emit(Truncate{To: to}) // epochs in which nothing was written go, too
	}
	return true
}
