package core

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// committedRecord is below some leader's high watermark, or was.
type committedRecord struct {
	entry
	by     epoch.LeaderEpoch
	minISR int // so many copies at least were there
}

// checkChange judges every change of the record (protocol notes, I9 and I10).
func (w *walk) checkChange(old, r epoch.Record) {
	switch grown := r.PartitionEpoch - old.PartitionEpoch; {
	case grown != 0 && grown != 1:
		w.fail("partition epoch %d after %d", r.PartitionEpoch, old.PartitionEpoch)
	case grown == 0 && (r.LastChange() != old.LastChange() || r.LeaderEpoch != old.LeaderEpoch || r.Leader != old.Leader || !slices.Equal(r.ISR, old.ISR) || !slices.Equal(r.Replicas, old.Replicas)):
		w.fail("the record changed without a new partition epoch")
	case r.LeaderEpoch < old.LeaderEpoch || r.LeaderEpoch > old.LeaderEpoch+1:
		w.fail("leader epoch %d after %d", r.LeaderEpoch, old.LeaderEpoch)
	case r.LeaderEpoch == old.LeaderEpoch && r.Leader != old.Leader && r.Leader != epoch.NoReplica:
		w.fail("leader %d after %d in the same epoch", r.Leader, old.Leader)
	case r.Leader != epoch.NoReplica && !r.InSync(r.Leader):
		w.fail("leader %d is not in the ISR %v", r.Leader, r.ISR)
	case !slices.IsSorted(r.ISR) || len(slices.Compact(slices.Clone(r.ISR))) != len(r.ISR):
		w.fail("ISR %v is not a sorted set", r.ISR)
	}
	if p, _ := r.Replica(r.Leader); r.Leader != epoch.NoReplica && (p.Session != r.LeaderSession || p.Session == epoch.NoSession) {
		w.fail("the leader's session is %d, that of replica %d is %d", r.LeaderSession, r.Leader, p.Session)
	}
	for _, id := range r.ISR {
		if p, ok := r.Replica(id); !ok || p.Adding {
			w.fail("ISR member %d is not assigned, or being added", id)
		}
	}
}

// dirty checks what a step may have changed at one process.
func (w *walk) dirty(p *proc) {
	if p.stopped {
		return
	}
	hw, start, end := p.core.HighWatermark(), p.log.StartOffset(), p.log.EndOffset()
	if hw < start || hw > end || p.log.synced > end {
		w.fail("%s: log start %d, high watermark %d, flushed %d, log end %d", p, start, hw, p.log.synced, end)
		return
	}
	if p.core.Role() == Leader {
		w.checkLeader(p)
	}
	for o := start; o < hw; o++ {
		if int(o) >= len(w.committed) {
			w.fail("%s has high watermark %d, but only %d records were ever committed", p, hw, len(w.committed))
			return
		}
		if e, _ := p.log.at(o); e != w.committed[o].entry {
			w.fail("%s holds %v at offset %d, below its high watermark; committed is %v", p, e, o, w.committed[o].entry)
		}
	}
}

func (w *walk) checkLeader(p *proc) {
	e := p.core.Record().LeaderEpoch
	if q := w.leaders[e]; q != nil && q != p {
		w.fail("%s and %s both lead epoch %d", q, p, e)
	}
	w.leaders[e] = p
	if p.ledEpoch != e {
		p.ledEpoch, p.ledHW = e, 0
	}
	if hw := p.core.HighWatermark(); hw < p.ledHW {
		w.fail("%s leads epoch %d and its high watermark fell from %d to %d", p, e, p.ledHW, hw)
	} else if hw > p.ledHW {
		p.ledHW = hw
		w.noteCommits(p)
	}
	w.checkComplete(p, e)
}

// noteCommits remembers what a leader counts as committed.
func (w *walk) noteCommits(p *proc) {
	rec := p.core.Record()
	for o := epoch.Offset(len(w.committed)); o < p.core.HighWatermark(); o++ {
		e, ok := p.log.at(o)
		if !ok {
			w.fail("%s commits offset %d, which is not in its log", p, o)
			return
		}
		w.committed = append(w.committed, committedRecord{e, rec.LeaderEpoch, rec.MinISR})
		w.say("  %s commits %v at %d", p, e, o)
	}
}

// checkComplete is leader completeness (I4): a leader has all that was committed by
// leaders up to its epoch.
func (w *walk) checkComplete(p *proc, e epoch.LeaderEpoch) {
	if p.log.start > w.deleted {
		w.fail("%s starts at %d, retention has dropped only what is below %d", p, p.log.start, w.deleted)
	}
	for o := p.log.start; int(o) < len(w.committed); o++ {
		c := w.committed[o]
		if got, ok := p.log.at(o); c.by <= e && (!ok || got != c.entry) {
			w.fail("%s leads epoch %d and has %v at offset %d, where %v was committed in epoch %d", p, e, got, o, c.entry, c.by)
			return
		}
	}
}

// check judges what any step may have changed.
func (w *walk) check() {
	for _, p := range w.procs {
		if p.core.Role() == Leader && !p.stopped {
			w.checkLeader(p)
		}
	}
	rec := w.current().Record
	for _, id := range rec.ISR {
		d := w.drives[id]
		if r, _ := rec.Replica(id); r.DirectoryID == d.directory {
			w.checkMember(d)
		}
	}
	w.checkMatching()
}

// checkMember is I5 for the record as it is: members hold all that is committed.
func (w *walk) checkMember(d *drive) {
	for o := max(d.log.start, w.deleted); int(o) < len(w.committed); o++ {
		if e, ok := d.log.at(o); !ok || e != w.committed[o].entry {
			w.fail("replica %d is in the ISR and has %v at offset %d, where %v is committed", d.id, e, o, w.committed[o].entry)
			return
		}
	}
}

// logs are all logs, those of zombies included.
func (w *walk) logs() []*diskLog {
	out := make([]*diskLog, 0, maxReplicas+1)
	for _, d := range w.drives {
		out = append(out, d.log)
	}
	for _, p := range w.procs {
		if p.zombie {
			out = append(out, p.log)
		}
	}
	return out
}

// checkMatching is log matching (I3): the same epoch at the same offset means the
// same history up to there.
func (w *walk) checkMatching() {
	logs := w.logs()
	for i, a := range logs {
		for _, b := range logs[i+1:] {
			same := false
			for o := min(a.EndOffset(), b.EndOffset()) - 1; o >= max(a.start, b.start); o-- {
				x, y := a.entries[o-a.start], b.entries[o-b.start]
				if same = same || x.epoch == y.epoch; same && x != y {
					w.fail("two logs agree behind offset %d, and hold %v and %v there", o, x, y)
					return
				}
			}
		}
	}
}

// checkDurable is judged after every loss: a committed record may be gone only if so
// many machines lost it as had to hold it before it was committed.
func (w *walk) checkDurable() {
	for o := w.deleted; int(o) < len(w.committed); o++ {
		c := w.committed[o]
		held := slices.ContainsFunc(w.logs(), func(l *diskLog) bool {
			e, ok := l.at(o)
			return ok && e == c.entry
		})
		if !held && w.lost[c.value] < c.minISR {
			w.fail("%v, committed at offset %d with min ISR %d, is in no log any more after %d machines lost it", c.entry, o, c.minISR, w.lost[c.value])
		}
	}
}

// noteLoss counts what a log has lost from an offset on.
func (w *walk) noteLoss(l *diskLog, from epoch.Offset) {
	for o := max(from, l.start); o < l.EndOffset(); o++ {
		e, _ := l.at(o)
		w.lost[e.value]++
	}
}
