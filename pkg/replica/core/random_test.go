package core

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var (
	walkSeed  = flag.Uint64("walk.seed", 0, "the one seed to walk, with a trace of all of it")
	walkFirst = flag.Uint64("walk.first", 1, "the first seed of the random walks")
	walkCount = flag.Int("walk.count", 400, "how many seeds the random walks take")
)

const walkSteps = 400

// drawConfig draws the shape of a walk from its seed.
func drawConfig(seed uint64) walkConfig {
	r := rand.New(rand.NewPCG(seed, 2))
	n := 1 + r.IntN(maxReplicas)
	return walkConfig{seed: seed, replicas: n, minISR: 1 + r.IntN(3), everyBatch: r.IntN(2) == 0, reassigns: r.IntN(3) == 0, retains: r.IntN(3) == 0}
}

// run walks, heals and judges.
func run(c walkConfig, tracing bool) *walk {
	w := newWalk(c, tracing)
	w.say("%+v", c)
	for w.failed == "" && w.steps < walkSteps && !w.stuck() {
		w.step()
	}
	if w.failed == "" && !w.stuck() {
		w.heal()
	}
	return w
}

// stuck reports that only an unclean election could go on: everybody in the ISR has
// lost its promise.
func (w *walk) stuck() bool { return len(w.current().Record.ISR) == 0 }

// TestRandomWalks looks for a history that breaks an invariant. A failure prints its
// seed: go test -run RandomWalks -walk.seed N shows all of it.
func TestRandomWalks(t *testing.T) {
	if *walkSeed != 0 {
		w := run(drawConfig(*walkSeed), true)
		t.Logf("%s\n%s", w.failed, strings.Join(w.trace, "\n"))
		if w.failed != "" {
			t.Fail()
		}
		return
	}
	steps, stuck, idle := 0, 0, 0
	for seed := *walkFirst; seed < *walkFirst+uint64(*walkCount); seed++ {
		w := run(drawConfig(seed), false)
		steps += w.steps
		if w.stuck() {
			stuck++
		}
		if len(w.committed) == 0 {
			idle++
		}
		if w.failed != "" {
			w = run(drawConfig(seed), true)
			t.Fatalf("seed %d: %s\n%s", seed, w.failed, strings.Join(w.trace[max(0, len(w.trace)-120):], "\n"))
		}
	}
	t.Logf("%d seeds, %d steps, %d ended with an empty ISR, %d committed nothing", *walkCount, steps, stuck, idle)
}

// heal lets everything come back, and wants a partition that works: all logs equal,
// everybody in the ISR, a record acknowledged.
func (w *walk) heal() {
	w.settled = true
	w.say("healing")
	w.target, w.wanted = w.finalTarget()
	for _, p := range slices.Clone(w.procs) {
		if p.zombie || p.stopped || p.core.stopping {
			w.kill(p)
		}
	}
	value := ""
	for round := range 600 {
		w.now += 100 * time.Millisecond
		w.tracing = w.tracing && round < 25 // the rest repeats itself
		w.round()
		if w.failed != "" || w.stuck() {
			return
		}
		p := w.leading()
		if p != nil && w.seed%2 == 0 {
			w.abandonOne(p)
		}
		if p == nil || round < 20 {
			continue
		}
		if value == "" {
			value, _ = w.produce(p, AcksAll)
		}
		if value != "" && w.whole(p) {
			return
		}
	}
	w.fail("did not heal: record %+v\n%s", w.current().Record, w.show())
}

// abandonOne leaves a replica dead for ever that the assignment is to replace.
func (w *walk) abandonOne(leader *proc) {
	for _, d := range w.drives {
		if d.running != nil && !slices.Contains(w.target, d.id) && d != w.drives[leader.id] && w.abandoned == nil {
			w.abandoned = d
			w.kill(d.running)
		}
	}
}

func (w *walk) finalTarget() ([]epoch.ReplicaID, int) {
	if len(w.target) > 0 {
		return w.target, w.wanted
	}
	var ids []epoch.ReplicaID
	for _, r := range w.current().Record.Replicas {
		ids = append(ids, r.ID)
	}
	return ids, w.current().Record.WantedMinISR
}

// round is one round of everybody's work, without any fault.
func (w *walk) round() {
	for i := 0; len(w.swaps) > 0 && i < 50; i++ { // an answer may bring the next write
		w.land(w.swaps[0])
		w.answerSwap(w.swaps[0])
	}
	rec := w.current().Record
	for _, d := range w.drives {
		if _, ok := rec.Replica(d.id); ok && d.running == nil && d != w.abandoned {
			w.start(d)
		}
	}
	if p := w.leading(); p == nil {
		w.electSome()
	}
	w.assign()
	for _, p := range slices.Clone(w.procs) {
		if _, ok := w.current().Record.Replica(p.id); !ok || p.stopped {
			w.kill(p)
			continue
		}
		p.core.Observe(w.now, w.current(), FromWatch)
		w.settle(p)
		p.core.Tick(w.now)
		w.settle(p)
		for p.readBusy {
			w.finishRead(p)
		}
		p.log.synced = p.log.EndOffset()
		p.core.Flushed()
		w.ask(p)
		w.settle(p)
	}
	for len(w.fetches) > 0 {
		w.arrive(0)
	}
	for len(w.answers) > 0 {
		w.answer(0)
	}
	w.check()
}

// leading is the process that the record names as leader, if it knows.
func (w *walk) leading() *proc {
	rec := w.current().Record
	for _, p := range w.procs {
		if p.core.Role() == Leader && p.core.me.Session == rec.LeaderSession && p.id == rec.Leader && !p.stopped {
			return p
		}
	}
	return nil
}

// whole reports that nothing is left to be done.
func (w *walk) whole(leader *proc) bool {
	rec := w.current().Record
	if len(rec.Replicas) != len(w.target) || len(rec.ISR) != len(rec.Replicas) || leader.core.HighWatermark() != leader.log.EndOffset() || len(leader.acks) > 0 {
		return false
	}
	for _, id := range rec.ISR {
		if l := w.drives[id].log; l.EndOffset() != leader.log.EndOffset() || !slices.Equal(l.entries[max(0, leader.log.start-l.start):], leader.log.entries[max(0, l.start-leader.log.start):]) {
			return false
		}
	}
	return true
}

func (w *walk) show() string {
	var b strings.Builder
	for _, d := range w.drives {
		role, hw := "down", epoch.NoOffset
		if p := d.running; p != nil {
			role, hw = p.core.Role().String()+" "+p.String(), p.core.HighWatermark()
		}
		fmt.Fprintf(&b, "%d %s: log %d..%d HW %d cache %s: %s\n", d.id, role, d.log.start, d.log.EndOffset(), hw, d.log.cache, &d.log.memoryLog)
	}
	return b.String()
}
