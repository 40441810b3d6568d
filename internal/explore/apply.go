package explore

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// apply makes one step of w. It reports false when the step cannot be made or changes
// nothing; w is of no use then.
func (x *Explorer) apply(w *world, a action) (bool, *flaw) {
	x.acked, x.flawed = 0, 0
	k, i, arg := a.parts()
	if !x.move(w, k, i, arg) {
		return false, nil
	}
	x.normalize(w)
	f := x.check(w)
	x.forget(w)
	if f == nil && x.flawed != 0 {
		f = &x.tables.flaws[x.flawed]
	}
	if f == nil {
		f = x.checkAcked(w)
	}
	return true, f
}

// checkAcked is I11: what a leader acknowledges is committed.
func (x *Explorer) checkAcked(w *world) *flaw {
	for v := int8(1); x.acked>>v != 0; v++ {
		if x.acked>>v&1 == 1 && x.watched[Acknowledged] && !slices.ContainsFunc(w.committed[:], func(e entry) bool { return e.value == v }) {
			return flawf(Acknowledged, "m%d is acknowledged, and not committed", v)
		}
	}
	return nil
}

func (x *Explorer) move(w *world, k actionKind, i, arg int) bool {
	switch k {
	case see:
		version := w.record
		if arg > 0 {
			version = w.older[arg-1]
		}
		return x.event(w, i, saw, version)
	case readRecord:
		return x.event(w, i, read, w.record)
	case produce:
		w.records++
		return x.event(w, i, produced, uint32(w.records))
	case flush:
		return x.event(w, i, flushed, 0)
	case timers:
		return x.timer(w, i, timePassed, 0)
	case lose:
		return x.timer(w, i, lostSight, uint32(arg))
	case crash, machineDies:
		return x.die(w, k, i, arg)
	case start:
		return x.event(w, i, started, w.record)
	case elect:
		return x.elect(w, i)
	case land, tell, giveUp, landLate:
		return x.moveWrite(w, k, i, arg)
	}
	return x.moveFetch(w, k, i, arg)
}

// event lets something happen at replica i and takes in what follows.
func (x *Explorer) event(w *world, i int, kind eventKind, arg uint32) bool {
	out := x.happen(w.replicas[i], kind, arg)
	return !out.impossible && x.absorb(w, i, *out)
}

// timer leaves out what only makes instants older: nothing follows from that but what
// follows as well when they grow old together with the step that matters.
func (x *Explorer) timer(w *world, i int, kind eventKind, arg uint32) bool {
	out := x.happen(w.replicas[i], kind, arg)
	return !out.impossible && out.acted && x.absorb(w, i, *out)
}

// absorb takes in an outcome; false when it is out of bounds.
func (x *Explorer) absorb(w *world, i int, out outcome) bool {
	w.replicas[i] = out.replica
	x.acked |= out.acked
	if x.flawed == 0 {
		x.flawed = out.flaw
	}
	if out.record != 0 && !x.store(w, out.record) {
		return false
	}
	if out.write != 0 && !x.begin(w, i, out.write) {
		return false
	}
	if p := &x.tables.replicas.things[w.replicas[i]]; !p.up {
		x.leaveWrite(w, i)
	} else if p.replica.reading && !x.UndecidedWrites {
		return x.event(w, i, read, w.record)
	}
	return true
}

// begin sends a write of the record on its way. A heartbeat is over at once: it
// changes nothing but the version.
func (x *Explorer) begin(w *world, i int, n uint32) bool {
	wr := x.tables.writes.things[n]
	switch {
	case !wr.heartbeat:
		x.leaveWrite(w, i)
		w.writes[i], w.fate[i] = n, onItsWay
		return true
	case wr.base == w.record:
		w.record = wr.next
		return x.event(w, i, wrote, wr.next)
	}
	return x.event(w, i, conflicted, 0)
}

// leaveWrite lets a write go on without its writer.
func (x *Explorer) leaveWrite(w *world, i int) {
	if n := w.writes[i]; n != 0 && w.fate[i] == onItsWay {
		if k := slices.Index(w.orphans[:], 0); k >= 0 {
			w.orphans[k] = n
		}
	}
	w.writes[i], w.fate[i] = 0, onItsWay
}

// store makes a record the present one, if it is within the bounds.
func (x *Explorer) store(w *world, n uint32) bool {
	rec := &x.tables.records.things[n]
	if int(rec.change) > x.firstChange+x.Changes || int(rec.epoch) > x.firstEpoch+x.Elections {
		return false
	}
	if x.SkipNothing {
		copy(w.older[1:], w.older[:])
		w.older[0] = w.record
	}
	w.record = n
	return true
}

func (x *Explorer) die(w *world, k actionKind, i, arg int) bool {
	if k == crash {
		w.crashes++
		return x.event(w, i, crashed, 0)
	}
	w.machine++
	for _, e := range x.tables.replicas.things[w.replicas[i]].log[arg:] {
		if e.value != 0 {
			w.lost[e.value-1]++
		}
	}
	return x.event(w, i, cut, uint32(arg))
}

func (x *Explorer) moveWrite(w *world, k actionKind, i, arg int) bool {
	if k == landLate {
		n := w.orphans[arg]
		w.orphans[arg] = 0
		wr := x.tables.writes.things[n]
		return wr.base == w.record && x.store(w, wr.next)
	}
	n, fate := w.writes[i], w.fate[i]
	wr := x.tables.writes.things[n]
	switch k {
	case land:
		w.fate[i] = landed
		return wr.base == w.record && x.store(w, wr.next)
	case tell:
		w.writes[i], w.fate[i] = 0, onItsWay
		if fate == landed {
			return x.event(w, i, wrote, wr.next)
		}
		return x.event(w, i, conflicted, 0)
	}
	x.leaveWrite(w, i)
	return x.event(w, i, gaveUp, 0)
}

func (x *Explorer) moveFetch(w *world, k actionKind, i, arg int) bool {
	switch k {
	case deliver:
		at := arg &^ twice
		ok, answer := x.arrive(w, w.messages[i][at])
		if arg&twice != 0 {
			at = 1 - at
		}
		w.messages[i][at] = answer
		return ok
	case receive:
		n := w.messages[i][arg&^twice]
		if arg&twice == 0 {
			w.messages[i][arg] = 0
		}
		return x.event(w, i, gotAnswer, n)
	}
	out := x.happen(w.replicas[i], asked, 0)
	if out.impossible { // a follower may have to make its log durable first
		if !x.EveryBatch || !x.event(w, i, flushed, 0) {
			return false
		}
		if out = x.happen(w.replicas[i], asked, 0); out.impossible {
			return false
		}
	}
	if k == fetchLost { // that it waits for an answer that will not come makes no difference
		ok, answer := x.arrive(w, out.message)
		return ok && answer != 0
	}
	w.replicas[i] = out.replica
	if k == send {
		w.messages[i][slots-1] = out.message
		return true
	}
	ok, answer := x.arrive(w, out.message)
	switch {
	case !ok || answer == 0:
		return false
	case x.Fetching == Prompt:
		return x.event(w, i, gotAnswer, answer)
	}
	m := &w.messages[i]
	if x.Fetching == Disordered && m[0] != 0 && m[1] == 0 {
		m[1] = m[0]
	}
	m[0] = answer
	return true
}

// arrive lets a fetch arrive and returns the answer, 0 if it is refused.
func (x *Explorer) arrive(w *world, n uint32) (bool, uint32) {
	to := int(x.tables.messages.things[n].to)
	if !x.tables.replicas.things[w.replicas[to]].up {
		return false, 0
	}
	out := x.happen(w.replicas[to], gotFetch, n)
	if out.impossible {
		return false, 0
	}
	answer := out.message
	return x.absorb(w, to, *out), answer
}

// elect lets the operator elect replica i, if it may.
func (x *Explorer) elect(w *world, i int) bool {
	key := election{w.record, i}
	n, known := x.elections[key]
	if !known {
		old := x.tables.records.things[w.record].snap.Record
		r, err := epoch.Elect(old, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{epoch.ReplicaID(i)}})
		if err == nil {
			n.record = x.tables.record(w.record, r)
			if f := changeFlaw(old, r); f != nil && x.watched[f.breaks] {
				n.flaw = x.tables.flaw(*f)
			}
		}
		x.elections[key] = n
	}
	if x.flawed == 0 {
		x.flawed = n.flaw
	}
	return n.record != 0 && x.store(w, n.record)
}
