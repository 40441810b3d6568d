//go:build mutants

package sim

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

var compose = flag.Bool("sim.compose", false, "compose the scripts that no search finds anew, towards what each of their stages wants")

// stage is a part of a run that is too rare to be met by chance: some of a few moves, up
// to a number of them, until something is reached.
type stage struct {
	moves   []string
	most    int
	reached func(w *world) bool
}

var (
	send    = []string{"produce", "packet arrives", "retry"}
	fetch   = []string{"ask", "packet arrives"}
	starts  = []string{"start", "store at rest"}
	watches = []string{"watch", "store at rest"}
)

// compositions are the runs that no search finds, by the rule that is missed.
var compositions = []struct {
	guard  guard.Guard
	config Config
	stages []stage
}{
	// 0 leads, 1 holds its first record and asks for the next; 0 is to read its answer
	// later. 2, which holds nothing, is elected, and 0 follows it, while 1 hears of
	// nothing. Then 0 reads the answer.
	{guard.FetchedUpToRequestEpoch, Config{Seed: 1, Replicas: 3, MinISR: 1, SegmentBytes: 1 << 20, LagTime: 10e9, Lease: 3e9}, []stage{
		{starts, 6, func(w *world) bool { return w.leads(0) }},
		{starts, 12, func(w *world) bool { return w.leads(0) && w.at(1) != nil && w.at(2) != nil }},
		{watches, 12, func(w *world) bool { return w.knows(w.at(0)) && w.follows(1, 0) && w.follows(2, 0) }},
		{send, 6, func(w *world) bool { return w.ends(1, 0, 0) }},
		{fetch, 12, func(w *world) bool { return w.ends(1, 1, 0) }},
		{send, 8, func(w *world) bool { return w.ends(2, 1, 0) || w.ends(3, 1, 0) }},
		{fetch, 10, func(w *world) bool { return w.unread(w.packets) && w.at(2).mirror.end() == 0 }},
		{[]string{"answer read late"}, 3, func(w *world) bool { return w.unread(w.strays) }},
		{[]string{"elect", "store at rest", "watch"}, 6, func(w *world) bool { return w.leads(2) && w.unread(w.strays) && w.at(2).mirror.end() == 0 }},
		{[]string{"watch"}, 8, func(w *world) bool { return w.follows(0, 2) && w.unread(w.strays) }},
		{send, 10, func(w *world) bool { return w.sent() && w.at(2).mirror.end() == 1 && w.unread(w.strays) }},
		{send, 10, func(w *world) bool { return w.at(2).mirror.end() > 1 && w.unread(w.strays) }},
		{fetch, 20, func(w *world) bool {
			m := w.at(0).mirror
			return w.follows(0, 2) && m.end() > 1 && m.entries[0].epoch > 1 && w.unread(w.strays)
		}},
		{[]string{"stray packet arrives"}, 4, func(w *world) bool { return !w.unread(w.strays) }},
	}},
	// 0 registers as session 2, and leaves the ISR. It lives on, while a process with a new
	// volume comes in its place; the record is put back, and this one registers as session
	// 2, too. Recovery takes the first one's history. It joins again and is elected.
	{guard.StartOfSession, Config{Seed: 1, Replicas: 2, MinISR: 1, SegmentBytes: 1 << 20, LagTime: 2e9, Lease: 3e9, Faults: Faults{Zombies: true, Record: true}}, []stage{
		{starts, 6, func(w *world) bool { return w.leads(0) }},
		{starts, 6, func(w *world) bool { return w.at(1) != nil && w.leads(0) }},
		{[]string{"elect", "store at rest", "watch"}, 8, func(w *world) bool { return w.leads(1) && w.follows(0, 1) }},
		{[]string{"time", "store at rest"}, 10, func(w *world) bool { return slices.Equal(w.store.current().Record.ISR, []epoch.ReplicaID{1}) }},
		{watches, 8, func(w *world) bool { return w.knows(w.at(0)) && w.knows(w.at(1)) }},
		{[]string{"replica replaced"}, 3, func(w *world) bool { return w.zombie(0) != nil }},
		{[]string{"restore record"}, 2, func(w *world) bool { return w.store.current().Record.PartitionEpoch == 1 }},
		{starts, 6, func(w *world) bool {
			return w.leads(0) && w.at(0).node.Identity().Session == w.zombie(0).node.Identity().Session
		}},
		{[]string{"time", "store at rest"}, 12, func(w *world) bool {
			return w.store.current().Record.Recovery != nil && w.at(0) != nil && w.zombie(0) != nil
		}},
		{[]string{"recover", "store at rest", "watch", "time"}, 30, func(w *world) bool {
			r := w.store.current().Record
			p, _ := r.Replica(0)
			return r.PartitionEpoch > 1000 && w.at(0) != nil && w.zombie(0) != nil && p.StartID == w.zombie(0).startID && !r.InSync(0)
		}},
		{[]string{"elect", "store at rest", "watch"}, 16, func(w *world) bool {
			return w.leads(1) && w.knows(w.at(1)) && w.knows(w.at(0)) && w.knows(w.zombie(0))
		}},
		{[]string{"ask", "packet arrives", "store at rest", "time"}, 40, func(w *world) bool { return w.store.current().Record.InSync(0) && w.at(0) != nil && w.zombie(0) != nil }},
		{[]string{"elect", "store at rest"}, 8, func(w *world) bool {
			return w.store.current().Record.Leader == 0 && w.at(0) != nil && w.zombie(0) != nil
		}},
		{[]string{"watch"}, 20, func(*world) bool { return false }},
	}},
}

// TestCompose writes the scripts of the compositions anew.
func TestCompose(t *testing.T) {
	if !*compose {
		t.Skip("this writes scripts, which TestMutants runs; only with -sim.compose")
	}
	for _, tc := range compositions {
		t.Run(tc.guard.String(), func(t *testing.T) {
			for seed := range uint64(12) {
				if script := composed(t, tc.guard, tc.config, tc.stages, seed); script != "" {
					if err := os.WriteFile(scriptOf(tc.guard), []byte(script), 0o600); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
			t.Error("in vain")
		})
	}
}

// composed is a shrunk run through the stages that only the lack of a rule explains.
func composed(t *testing.T, g guard.Guard, c Config, stages []stage, seed uint64) string {
	t.Helper()
	restore := guard.SwitchOff(g)
	list, reached := towards(c, stages, rand.New(rand.NewPCG(seed, 9)))
	r := Replay(c, list, false)
	if r.Failure != nil {
		list = Shrink(c, list, *r.Failure, 3000)
		r = Replay(c, list, false)
	}
	restore()
	with := Replay(c, list, false).Failure
	t.Logf("seed %d: %d stages of %d, %d steps: %v; with all rules %v", seed, reached, len(stages), len(list), r.Failure, with)
	if r.Failure == nil || reached < len(stages) || with != nil {
		return ""
	}
	script, err := Script(c, list, "Without the rule "+g.String()+" ("+guard.Rules[g].Source+"):\n"+strings.SplitN(r.Failure.Error(), "\n", 2)[0]+"\nComposed, by TestCompose.")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// towards goes through stages, and returns the steps as far as it got.
func towards(c Config, stages []stage, r *rand.Rand) (steps []Step, reached int) {
	for reached, s := range stages {
		found := false
		for try := 0; try < 4000 && !found; try++ {
			w, more := newWorld(c, false), slices.Clone(steps)
			for _, done := range steps {
				w.do(done)
			}
			for n := 0; n < s.most && !found && w.failure == nil; n++ {
				name := s.moves[r.IntN(len(s.moves))]
				next := Step{Move: uint8(slices.IndexFunc(moves, func(m move) bool { return m.name == name })), Seed: r.Uint64()}
				w.do(next)
				more, found = append(more, next), w.failure != nil || s.reached(w)
			}
			if found {
				steps = more
			}
		}
		if !found {
			return steps, reached
		}
	}
	return steps, len(stages)
}

// at is the registered process of a replica, nil if there is none.
func (w *world) at(id epoch.ReplicaID) *process {
	if p := w.hosts[id].process; p != nil && p.node != nil {
		return p
	}
	return nil
}

// zombie is a process of a replica that has lost its volume to another.
func (w *world) zombie(id epoch.ReplicaID) *process {
	for _, p := range w.procs {
		if p.id == id && p.zombie && p.node != nil {
			return p
		}
	}
	return nil
}

// knows reports that a process has acted on the record as it is.
func (w *world) knows(p *process) bool {
	return p != nil && p.node.Core().Record().PartitionEpoch == w.store.current().Record.PartitionEpoch
}

func (w *world) leads(id epoch.ReplicaID) bool {
	p := w.at(id)
	return p != nil && p.node.Core().Role() == core.Leader
}

func (w *world) follows(id, leader epoch.ReplicaID) bool {
	p := w.at(id)
	return p != nil && p.node.Core().Role() == core.Follower && p.following == leader
}

// ends reports that the three logs end there, and that nothing more is on its way.
func (w *world) ends(a, b, c epoch.Offset) bool {
	return w.sent() && w.at(0).mirror.end() == a && w.at(1).mirror.end() == b && w.at(2).mirror.end() == c
}

func (w *world) sent() bool {
	return !slices.ContainsFunc(w.packets, func(p packet) bool { _, ok := p.(*producePacket); return ok })
}

// unread reports an answer of 0 to what 1 asks now, in the first epoch, with more to come
// than 1 has, that 0 has not read yet.
func (w *world) unread(in []packet) bool {
	return w.follows(1, 0) && w.at(1).mirror.end() == 1 && w.at(1).awaiting && slices.ContainsFunc(in, func(p packet) bool {
		a, ok := p.(*answerPacket)
		return ok && a.read != nil && a.to == w.at(1) && a.from == w.at(0) && a.query.Offset == 1 && a.end > 1
	})
}
