package sim

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// heal ends all faults and wants a partition that works: everybody back, all in the
// ISR, logs equal, every acknowledged record there, and a record more taken.
func (w *world) heal() {
	w.healing = true
	w.say("all faults end")
	w.pcg.Seed(w.cfg.Seed, 5)
	clear(w.cuts)
	w.packets, w.strays = append(w.packets, w.strays...), nil
	w.store.down = false
	w.operators[1] = w.operators[0] // two would begin one round of reports after the other
	for _, h := range w.hosts {
		h.mend()
	}
	w.unswap()
	if len(w.target) == 0 {
		for _, r := range w.store.current().Record.Replicas {
			w.target = append(w.target, r.ID)
		}
		w.minISR = w.store.current().Record.WantedMinISR
	}
	for _, p := range slices.Clone(w.procs) {
		if p.zombie || p.stopping {
			w.kill(p)
		}
		p.paused = false
		p.offset, p.rate = p.clock()-w.now, 1 // it is monotonic
	}
	w.maxValues = w.counters.values + 3
	final := w.producers[0]
	var last *sending
	for round := range 400 {
		w.now += 100 * time.Millisecond
		if round > 30 {
			w.tracing = false // the rest repeats itself
		}
		w.round()
		p := w.leading()
		if w.failure != nil || w.store.line.lost && round > 60 {
			return // nobody who knew better was left to notice
		}
		if p == nil || round < 20 {
			continue
		}
		if last == nil && len(final.inFlight) < 5 {
			last = final.produce()
		}
		if w.whole(p) && last != nil && len(final.inFlight) == 0 {
			if !w.store.line.lost {
				w.audit(p)
			}
			return
		}
	}
	w.fail("liveness", "the partition did not heal:\n%s", w.summary())
}

// hopeless: nobody is left who may lead, and only an unclean election can go on. That is
// then part of the healing.
func (w *world) hopeless() bool {
	r := w.store.current().Record
	return len(r.ISR) == 0 && r.Recovery == nil && !w.cfg.Faults.Unclean
}

// round is one round of everybody's work, without any fault.
func (w *world) round() {
	w.rest()
	for _, h := range w.hosts {
		if h.process == nil && w.hosted(h.id) {
			w.start(h)
		}
	}
	w.rest()
	if w.leading() == nil {
		w.electSome()
	}
	w.rest()
	w.recoverSome()
	w.rest()
	if (w.cfg.Faults.Unclean || w.hopeless()) && w.leading() == nil {
		w.electUncleanSome()
	}
	w.rest()
	w.assign()
	w.rest()
	for _, p := range slices.Clone(w.procs) {
		w.turn(p)
	}
	for i := 0; len(w.packets) > 0 && i < 1000; i++ {
		w.arrive(0, false)
	}
	for _, p := range w.producers {
		if len(p.inFlight) > 0 {
			p.leader = w.believedLeader()
			p.retry()
		}
	}
	for i := 0; len(w.packets) > 0 && i < 1000; i++ {
		w.arrive(0, false)
	}
	for _, c := range w.consumers {
		if p := w.leading(); p != nil {
			w.consume(c, p)
		}
	}
	w.oracle.step()
}

// hosted reports that a replica is to have a process: it is assigned, or recovery waits for
// what it knows.
func (w *world) hosted(id epoch.ReplicaID) bool {
	rec := w.store.current().Record
	_, assigned := rec.Replica(id)
	return assigned || rec.Recovery != nil && slices.Contains(rec.Recovery.Assigned, id)
}

// rest lets everything that concerns the record happen, which must come to an end while
// no time passes.
func (w *world) rest() {
	for i := 0; len(w.store.calls) > 0 && w.failure == nil; i++ {
		w.storeAtRest()
		if i == 50 {
			w.fail("liveness", "reads and writes of the record do not come to rest:\n%s", w.summary())
		}
	}
}

// turn lets one process do its work.
func (w *world) turn(p *process) {
	if p.dead || !w.hosted(p.id) {
		w.kill(p)
		return
	}
	if p.node == nil {
		p.ask()
		return
	}
	p.node.Observe(w.store.current())
	w.after(p)
	for _, do := range []func(){p.node.Tick, func() { w.after(p) }, func() {
		for i := 0; p.flush != nil && !p.dead && i < 10; i++ {
			p.finishFlush()
		}
	}, p.ask, func() { w.after(p) }} {
		if p.dead {
			return
		}
		do()
	}
}

// leading is the process that the record names as leader, if it knows.
func (w *world) leading() *process {
	rec := w.store.current().Record
	for _, p := range w.procs {
		if p.node != nil && p.id == rec.Leader && p.node.Core().Role() == core.Leader && p.node.Identity().Session == rec.LeaderSession {
			return p
		}
	}
	return nil
}

// whole reports that nothing is left to be done.
func (w *world) whole(leader *process) bool {
	rec := w.store.current().Record
	if len(rec.Replicas) != len(w.target) || len(rec.ISR) != len(rec.Replicas) || leader.node.Core().HighWatermark() != leader.mirror.end() {
		return false
	}
	for _, id := range rec.ISR {
		p := w.hosts[id].process
		if p == nil || p.node == nil || p.mirror.end() != leader.mirror.end() {
			return false
		}
	}
	return true
}

// audit is the last judgement: logs equal, and every acknowledged record there once.
func (w *world) audit(leader *process) {
	rec := w.store.current().Record
	for _, id := range rec.ISR {
		m := w.hosts[id].process.mirror
		if o := m.commonEnd(leader.mirror); o != m.end() {
			w.fail("logs equal", "replicas %d and %d differ at offset %d: %s and %s", id, leader.id, o, m, leader.mirror)
			return
		}
	}
	for v := range w.oracle.acked {
		if _, ok := w.oracle.place[v]; !ok { // that it is there once only was judged all the time
			w.fail("J lost write", "v%d was acknowledged with acks=all and is not committed", v)
			return
		}
	}
	for _, c := range w.consumers {
		w.readToEnd(c, leader)
	}
}

// readToEnd wants a consumer to get at everything that is left.
func (w *world) readToEnd(c *consumer, leader *process) {
	for range 200 {
		w.consume(c, leader)
	}
	if end := leader.node.Core().HighWatermark(); c.position != end {
		w.fail("J unseen", "%s got to %d of %d", c.name, c.position, end)
	}
}
