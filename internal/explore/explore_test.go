package explore

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// Small enough for every test run; README.md has the figures of the large ones.
var smallBounds = []struct {
	config Config
	states int // at least so many, or something is not tried any more
}{
	{Config{Replicas: 1, MinISR: 1, Records: 3, Elections: 3, Changes: 6, Crashes: 2, MachineCrashes: 2}, 1000},
	{Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 3}, 40_000},
	{Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 3, Crashes: 1, MachineCrashes: 1, Fetching: LateAnswers}, 40_000},
	{Config{Replicas: 2, MinISR: 2, Records: 1, Elections: 1, Changes: 3, MachineCrashes: 1, UndecidedWrites: true}, 10_000},
	{Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 2, Fetching: Disordered, UndecidedWrites: true, SkipNothing: true}, 10_000},
	{Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 2, MachineCrashes: 1, EveryBatch: true, StaleCheckpoint: true}, 5_000},
	{Config{Replicas: 3, MinISR: 2, Records: 1, Elections: 0, Changes: 2}, 10_000},
	{Config{Replicas: 3, MinISR: 2, Records: 1, Elections: 2, Changes: 2, OnlyElections: true, SkipNothing: true}, 10_000},
}

func TestNoStateWithinTheBoundsBreaksAnInvariant(t *testing.T) {
	for _, tc := range smallBounds {
		t.Run(strings.ReplaceAll(tc.config.String(), " ", "_"), func(t *testing.T) {
			r, err := Explore(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.Violation != "" {
				t.Fatalf("%v is broken:\n%s", r.Broken, r.Trace)
			}
			if !r.Exhausted || r.States < tc.states {
				t.Errorf("visited %d states, exhausted %t; want all, at least %d", r.States, r.Exhausted, tc.states)
			}
		})
	}
}

// What makes the search finite is that many states of a replica are taken for one. That
// must not lose anything: the states merged answer every event alike.
func TestMergedReplicasBehaveAlike(t *testing.T) {
	for _, c := range []Config{
		{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 3, Crashes: 1, MachineCrashes: 1, Fetching: LateAnswers, UndecidedWrites: true, MaxStates: 40_000},
		{Replicas: 3, MinISR: 2, Records: 1, Elections: 2, Changes: 3, MachineCrashes: 1, MaxStates: 40_000},
		{Replicas: 2, MinISR: 2, Records: 2, Elections: 2, Changes: 3, Crashes: 1, EveryBatch: true, MaxStates: 40_000},
	} {
		t.Run(strings.ReplaceAll(c.String(), " ", "_"), func(t *testing.T) {
			x := newExplorer(c)
			merged := map[uint32][]replicaInfo{}
			x.tables.merged = func(known uint32, r replicaInfo) {
				if len(merged[known]) < 4 {
					merged[known] = append(merged[known], r)
				}
			}
			first, err := x.first()
			if err != nil {
				t.Fatal(err)
			}
			x.search(first)
			x.tables.merged = nil
			checked := 0
			for e, n := range x.outcomes {
				for _, twin := range merged[e.replica()] {
					got, want := x.workAt(twin, e), x.known[n]
					if got.flaw, want.flaw = 0, 0; got != want {
						t.Fatalf("event %d with %d: two replicas that are taken for one, %v and %v, go on differently: %+v and %+v", e.kind(), e.arg(),
							twin.replica.log, x.tables.replicas.things[e.replica()].replica.log, got, want)
					}
					checked++
				}
			}
			if t.Logf("%d pairs compared", checked); checked < 10_000 {
				t.Errorf("only %d pairs were compared", checked)
			}
		})
	}
}

func TestExploreTwiceIsTheSame(t *testing.T) {
	c := Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 3, Crashes: 1}
	a, err := Explore(c)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Explore(c)
	if a.States != b.States || a.Steps != b.Steps || a.Depth != b.Depth || a.Events != b.Events {
		t.Errorf("%v and %v differ", a, b)
	}
}

func TestBoundsThatCannotBeExploredAreRefused(t *testing.T) {
	for _, tc := range []struct {
		config Config
		want   string
	}{
		{Config{}, "1 to 3"},
		{Config{Replicas: 4, MinISR: 1}, "1 to 3"},
		{Config{Replicas: 2, MinISR: 3}, "min ISR"},
		{Config{Replicas: 2, MinISR: 1, Records: 5}, "up to 4"},
		{Config{Replicas: 2, MinISR: 1, Crashes: -1}, "between 0 and 60"},
		{Config{Replicas: 2, MinISR: 1, Changes: 61}, "between 0 and 60"},
	} {
		if _, err := Explore(tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want one with %q", tc.config, err, tc.want)
		}
	}
}

func TestSearchEndsAtTheBoundOfStates(t *testing.T) {
	r, err := Explore(Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 4, MaxStates: 1000})
	if err != nil || r.Exhausted || r.States < 1000 || r.States > 1100 {
		t.Errorf("%v, %v: want a little over 1000 states, not exhausted", r, err)
	}
}

// A world is hashed as memory, so that memory must hold nothing else.
func TestWorldHasNoGaps(t *testing.T) {
	var w world
	fields := unsafe.Sizeof(w.record) + unsafe.Sizeof(w.older) + unsafe.Sizeof(w.replicas) + unsafe.Sizeof(w.writes) + unsafe.Sizeof(w.orphans) +
		unsafe.Sizeof(w.messages) + unsafe.Sizeof(w.fate) + unsafe.Sizeof(w.committed) + unsafe.Sizeof(w.by) + unsafe.Sizeof(w.records) +
		unsafe.Sizeof(w.crashes) + unsafe.Sizeof(w.machine) + unsafe.Sizeof(w.ncommitted) + unsafe.Sizeof(w.lost) + unsafe.Sizeof(w.pad)
	if worldSize != fields || worldSize%8 != 0 {
		t.Errorf("a world has %d bytes, its fields have %d; want the same, a multiple of 8", worldSize, fields)
	}
}

func TestSeenKeepsWhatWasAdded(t *testing.T) {
	s := newSeen()
	for round, want := range []bool{true, false} {
		for i := range uint64(200_000) {
			if got := s.add(i*0x9e3779b97f4a7c15 | 1<<63); got != want {
				t.Fatalf("round %d, hash %d: new %t, want %t", round, i, got, want)
			}
		}
	}
}

func TestPathLeadsBack(t *testing.T) {
	p := &path{}
	p.add(link{})
	for i := range uint32(chunk + 10) {
		p.add(link{from: i, act: action(i)})
	}
	way := p.to(chunk + 5)
	if len(way) != chunk+5 || way[0] != 0 || way[chunk] != chunk {
		t.Errorf("the way has %d steps, %v…; want %d, in order", len(way), way[:3], chunk+5)
	}
}

func TestActionsSayWhatHappens(t *testing.T) {
	for a, want := range map[action]string{
		act(lose, 0, 2): "A loses sight of C", act(machineDies, 1, 3): "machine of B dies, log cut to 3", act(produce, 2, 0): "C appends",
		act(elect, 1, 0): "operator elects B", act(fetchLost, 0, 0): "A fetches, answer lost",
	} {
		if got := fmt.Sprint(a); got != want {
			t.Errorf("%#x: %q, want %q", uint32(a), got, want)
		}
	}
}
