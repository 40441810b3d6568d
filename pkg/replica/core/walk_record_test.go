package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func (w *walk) writeLands() {
	if s, ok := pick(w, w.swaps); ok && !s.landed {
		w.say("a write on version %s lands", s.base)
		w.land(s)
	}
}

func (w *walk) writeAnswered() {
	if s, ok := pick(w, w.swaps); ok && s.landed {
		w.answerSwap(s)
	}
}

// tellNews shows the record as it is to everybody.
func (w *walk) tellNews() {
	w.say("everybody watches version %s", w.current().Version)
	for _, p := range w.procs {
		p.core.Observe(w.now, w.current(), FromWatch)
		w.settle(p)
	}
}

// finishRecord brings everybody's dealings with the record to their end.
func (w *walk) finishRecord() {
	for range 20 {
		if len(w.swaps) > 0 {
			w.land(w.swaps[0])
			w.answerSwap(w.swaps[0])
		}
		for _, p := range w.procs {
			w.finishRead(p)
		}
	}
}

func (w *walk) finishRead(p *proc) {
	if p.readBusy {
		p.readBusy = false
		p.core.ReadDone(w.now, w.current())
		w.settle(p)
	}
}

// answerSwap tells the writer what became of its write.
func (w *walk) answerSwap(s *swap) {
	w.swaps = slices.DeleteFunc(w.swaps, func(x *swap) bool { return x == s })
	switch {
	case s.start != nil && s.start.swap == s:
		s.start.swap = nil
		if !s.conflict {
			w.enter(s.start, s.result)
		}
	case s.by != nil && slices.Contains(w.procs, s.by):
		w.say("%s is told of its write on version %s: conflict %t", s.by, s.base, s.conflict)
		if s.conflict {
			s.by.core.WriteFailed(w.now, epoch.ErrConflict)
		} else {
			s.by.core.Written(w.now, s.result)
		}
		w.settle(s.by)
	}
}

// writeUndecided lets a writer give up waiting: the write may have landed, or may yet.
func (w *walk) writeUndecided() {
	s, ok := pick(w, w.swaps)
	if !ok {
		return
	}
	by, start := s.by, s.start
	s.by, s.start = nil, nil
	if s.landed {
		w.swaps = slices.DeleteFunc(w.swaps, func(x *swap) bool { return x == s })
	}
	if start != nil && start.swap == s {
		start.swap = nil
	}
	if by != nil && slices.Contains(w.procs, by) {
		w.say("%s gets no answer to its write on version %s", by, s.base)
		by.core.WriteFailed(w.now, errLost)
		w.settle(by)
	}
}

func (w *walk) startSome() {
	d, _ := pick(w, w.drives)
	if d.running == nil {
		w.start(d)
	}
}

// start begins the start of a process, or makes its next attempt to register.
func (w *walk) start(d *drive) {
	if d.starting == nil {
		w.counters.starts++
		d.starting = &starting{drive: d, startID: epoch.StartID(fmt.Sprint("s", w.counters.starts))}
		if d.log.synced = d.log.EndOffset(); !w.everyBatch && w.chance(50) {
			d.log.synced = max(d.log.start, d.log.synced-1) // no rule for safety needs the sync
		}
	}
	st := d.starting
	if st.swap != nil {
		return
	}
	base := w.current()
	if r, ok := base.Record.Replica(d.id); ok && r.DirectoryID == d.directory && base.Record.InSync(d.id) && base.Record.Progress != nil &&
		d.log.EndOffset() < base.Record.Progress.HighWatermark {
		w.fail("replica %d kept its promise and its log, which ends at %d, below the record's high watermark %d", d.id, d.log.EndOffset(), base.Record.Progress.HighWatermark)
	}
	next, err := epoch.Register(base.Record, epoch.Registration{ID: d.id, DirectoryID: d.directory, VolumeID: epoch.UUID{byte(d.id + 1)}, StartID: st.startID,
		Change: w.changeID(), LastEpoch: d.log.cache.Latest(), LogEndOffset: d.log.EndOffset()})
	switch {
	case errors.Is(err, epoch.ErrNoChange):
		w.enter(st, base)
	case err != nil:
		d.starting = nil
	default:
		st.swap = &swap{start: st, base: base.Version, next: next}
		w.swaps = append(w.swaps, st.swap)
	}
}

// enter makes a registered process of one that was starting.
func (w *walk) enter(st *starting, s epoch.Snapshot) {
	d := st.drive
	if d.starting != st {
		return // it has died meanwhile
	}
	d.starting = nil
	mine, _ := s.Record.Replica(d.id)
	p := &proc{id: d.id, log: d.log, directory: d.directory, acks: map[uint64]string{}}
	p.core = New(Identity{ID: d.id, Session: mine.Session, StartID: st.startID, DirectoryID: d.directory}, Options{FlushEveryBatch: w.everyBatch}, d.log, d.checkpoint, w.changeID)
	d.running = p
	w.procs = append(w.procs, p)
	w.say("%s starts with log end %d, high watermark %d, cache %s", p, d.log.EndOffset(), p.core.HighWatermark(), d.log.cache)
	p.core.Observe(w.now, s, FromWrite)
	w.settle(p)
}

func (w *walk) killSome() {
	for _, p := range w.procs {
		if p.stopped || p.core.Released() {
			w.kill(p)
			return
		}
	}
	if p, ok := w.pickProc(); ok {
		w.kill(p)
	}
}

// kill ends a process. What it wrote stays; a zombie's memory goes.
func (w *walk) kill(p *proc) {
	w.say("%s dies", p)
	w.procs = slices.DeleteFunc(w.procs, func(q *proc) bool { return q == p })
	if p.zombie {
		w.noteLoss(p.log, p.log.synced)
		w.checkDurable()
	} else {
		w.drives[p.id].running = nil
	}
	if w.settled || w.chance(70) {
		w.disconnect(p)
	}
}

// crashMachine takes the tail of a log that is not durable, or rarely the volume.
// The promise is kept only where it covers that.
func (w *walk) crashMachine() {
	d, _ := pick(w, w.drives)
	if d.running != nil {
		w.kill(d.running)
	}
	d.starting = nil
	to := d.log.synced + epoch.Offset(w.rng.IntN(int(d.log.EndOffset()-d.log.synced)+1))
	_, listed := w.current().Record.Replica(d.id)
	lostVolume := w.chance(5) || !listed && w.chance(50)
	if lostVolume {
		to = d.log.start
	}
	w.say("machine %d crashes and keeps its log up to %d of %d", d.id, to, d.log.EndOffset())
	w.noteLoss(d.log, to)
	d.log.cut(to)
	d.log.synced = to
	if lostVolume {
		*d.log = diskLog{}
		d.checkpoint = 0
	}
	if lostVolume || !w.everyBatch {
		d.directory = w.newDirectory(d.id)
	}
	w.checkDurable()
}

// makeZombie cuts a process off from its volume, which another process may now take
// over, with what is durable.
func (w *walk) makeZombie() {
	p, ok := w.pickProc()
	if !ok || p.zombie || len(w.procs) > maxReplicas {
		return
	}
	w.say("%s is cut off from its volume", p)
	d := w.drives[p.id]
	p.zombie = true
	d.running, d.log = nil, p.log.copy()
	d.log.cut(d.log.synced + epoch.Offset(w.rng.IntN(int(d.log.EndOffset()-d.log.synced)+1)))
	if !w.everyBatch {
		d.directory = w.newDirectory(p.id)
	}
}

// live is a hint as an operator has it: mostly right.
func (w *walk) live() []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	guess := !w.settled && w.chance(30)
	for _, d := range w.drives {
		if guess && w.chance(50) || !guess && d.running != nil && !d.running.stopped {
			ids = append(ids, d.id)
		}
	}
	return ids
}

func (w *walk) electSome() {
	r, err := epoch.Elect(w.current().Record, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: w.live(), LeaderEnded: w.chance(15), Change: w.changeID()})
	if w.chance(10) {
		r, err = epoch.RequestSwitchover(w.current().Record, epoch.SwitchoverRequest{To: epoch.NoReplica, Reason: "walk", Change: w.changeID()})
	}
	if err == nil {
		w.say("an election")
		w.commit(r)
	}
}

func (w *walk) assignSome() {
	if !w.reassigns {
		return
	}
	if w.target == nil || w.chance(15) {
		w.target = nil
		for i := range maxReplicas {
			if w.chance(60) {
				w.target = append(w.target, epoch.ReplicaID(i))
			}
		}
		w.wanted = 1 + w.rng.IntN(3)
	}
	w.assign()
}

// assign makes the operator's next step towards the assignment wanted.
func (w *walk) assign() {
	r, err := epoch.Assign(w.current().Record, epoch.Assignment{Target: w.target, WantedMinISR: w.wanted, Live: w.live(), Change: w.changeID(), Now: time.Time{}})
	if err == nil {
		w.say("assignment towards %v", w.target)
		w.commit(r)
	}
}
