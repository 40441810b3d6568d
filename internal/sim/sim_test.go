package sim

import (
	"flag"
	"testing"
	"time"
)

var (
	seed  = flag.Uint64("sim.seed", 0, "the one seed to run; a failure is shrunk and told step by step")
	first = flag.Uint64("sim.first", 1, "the first seed")
	seeds = flag.Int("sim.seeds", 150, "how many seeds to run")
	steps = flag.Int("sim.steps", 600, "how many steps a run has, at most")
)

// TestSimulation runs seeds until one breaks an invariant. make sim runs more of them.
func TestSimulation(t *testing.T) {
	from, n := *first, *seeds
	if *seed != 0 {
		from, n = *seed, 1
	}
	begun := time.Now()
	made, hopeless, idle := 0, 0, 0
	for s := from; s < from+uint64(n); s++ {
		r := Run(Draw(s), *steps)
		made += r.Made
		if r.Hopeless {
			hopeless++
		}
		if r.Committed == 0 {
			idle++
		}
		if r.Failure != nil {
			t.Fatalf("seed %d, step %d: %s\n\ngo test ./internal/sim -run Simulation -sim.seed %d -sim.steps %d\n\n%s",
				s, r.Made, r.Failure, s, *steps, Explain(Draw(s), r.Made, *r.Failure, 3000))
		}
	}
	t.Logf("%d seeds, %d steps, %.0f steps per second; %d seeds ended with nobody left who might lead, %d committed nothing",
		n, made, float64(made)/time.Since(begun).Seconds(), hopeless, idle)
}
