package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// A leader that stops without a successor tells a last time how far it came: should its
// volume be lost before it is back, the record says what went with it.
func TestALeaderThatStopsAloneTellsItsHighWatermark(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	w.run("a heartbeat", func() bool { return w.record.Record.Progress != nil })
	for range 3 {
		must(t, p.produce("since").Err)
	}
	if hw := w.record.Record.Progress.HighWatermark; hw == 3 {
		t.Fatalf("the record knows the high watermark already: nothing is tested")
	}
	must(t, p.stop())
	if hw := w.record.Record.Progress.HighWatermark; hw != 3 {
		t.Errorf("the record has the high watermark %d, want 3", hw)
	}
}

// What a leader has acknowledged with acks=1 is not lost by an orderly change of leaders,
// and what comes meanwhile is written by one of them only: it waits for the successor to
// have all, and is then refused, for the producer to go there.
func TestHandingOverLosesAndDoublesNothing(t *testing.T) {
	for _, tc := range []struct {
		name string
		ask  func(w *world)
		want epoch.ReplicaID
	}{
		{"a stop", func(w *world) { w.procs[0].n.Stop() }, epoch.NoReplica},
		{"a switchover to a replica", func(w *world) { w.switchover(2) }, 2},
		{"a switchover to whom the leader finds fittest", func(w *world) { w.switchover(epoch.NoReplica) }, epoch.NoReplica},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 3, 2, nil)
			for _, p := range w.procs {
				must(t, p.start())
			}
			w.elect(0)
			w.run("all in sync", w.inSync(0, 1, 2))
			leader := w.procs[0]
			must(t, leader.produceWith("acknowledged", core.AcksOne).Err)
			all := leader.produce("in flight")
			tc.ask(w)
			w.run("appends to wait", func() bool { return leader.n.core.HoldsAppends(w.now) })
			late := []*Produced{leader.produceWith("late", core.AcksOne), leader.produce("late, all")}
			w.run("another leader", func() bool { return w.record.Record.Leader > 0 && w.leads(w.record.Record.Leader)() })
			if got := w.record.Record.Leader; tc.want != epoch.NoReplica && got != tc.want {
				t.Errorf("replica %d leads, want %d", got, tc.want)
			}
			must(t, all.Err)
			for _, r := range late {
				if !errors.Is(r.Err, core.ErrNotLeader) || r.BaseOffset != epoch.NoOffset {
					t.Errorf("what came late was answered %+v, want a refusal", r)
				}
			}
			if got := w.procs[w.record.Record.Leader].values(); !slices.Equal(got, []string{"acknowledged", "in flight"}) {
				t.Errorf("the new leader has %q", got)
			}
		})
	}
}

// A successor that never gets there costs half a second of writes, and no more.
func TestAppendsGoOnIfTheSuccessorDoesNotCatchUp(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	for _, p := range w.procs {
		must(t, p.start())
	}
	w.elect(0)
	w.run("all in sync", w.inSync(0, 1))
	leader := w.procs[0]
	w.procs[1].following = false // it is alive, and fetches no more
	must(t, leader.produceWith("not fetched", core.AcksOne).Err)
	w.switchover(1)
	w.run("appends to wait", func() bool { return leader.n.core.HoldsAppends(w.now) })
	w.fail = errors.New("no answer")
	r := leader.produceWith("late", core.AcksOne)
	w.run("appends to go on", func() bool { return r.Err == nil })
}

// What waited is appended before what comes later, whatever was first noticed: the time that
// is over, or the next request. A pipelining idempotent producer would be refused else.
func TestWhatWaitedForASuccessorIsAppendedFirst(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	for _, p := range w.procs {
		must(t, p.start())
	}
	w.elect(0)
	w.run("all in sync", w.inSync(0, 1))
	leader := w.procs[0]
	w.procs[1].following = false
	must(t, leader.produceWith("first", core.AcksOne).Err)
	w.switchover(1)
	w.run("appends to wait", func() bool { return leader.n.core.HoldsAppends(w.now) })
	w.fail = errors.New("no answer")
	held := leader.produceWith("held", core.AcksOne)
	w.now += time.Second // and nobody has ticked yet
	must(t, leader.produceWith("later", core.AcksOne).Err)
	must(t, held.Err)
	if got := leader.values(); !slices.Equal(got, []string{"first", "held", "later"}) {
		t.Errorf("the log has %q", got)
	}
}

// The API server is away: one attempt is enough.
func TestALeaderThatStopsAloneDoesNotWaitForTheAPIServer(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	w.fail = errors.New("no answer")
	p.n.Stop()
	for range 5 {
		w.step()
	}
	if !p.n.Released() {
		t.Error("it waits for the API server")
	}
}
