//go:build mutants

package sim

import (
	"flag"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
)

var (
	search = flag.Int("sim.search", 0, "how many seeds to search for one that misses a guard")
	only   = flag.String("sim.guard", "", "the one guard to look at")
)

// TestMutants takes every rule away in turn and wants a run that breaks an invariant.
func TestMutants(t *testing.T) {
	for g := range guard.Rules {
		g := guard.Guard(g)
		if *only != "" && g.String() != *only {
			continue
		}
		t.Run(g.String(), func(t *testing.T) {
			defer guard.SwitchOff(g)()
			for s := *first; s < *first+uint64(*search); s++ {
				r := Run(Draw(s), *steps)
				if r.Failure != nil {
					t.Logf("seed %d, step %d: %.150s", s, r.Made, r.Failure)
					if *only != "" {
						story, kept := Explain(Draw(s), r.Made, *r.Failure, 3000)
						t.Logf("%s\n%s", story, kept)
					}
					return
				}
			}
			t.Errorf("nothing misses it")
		})
	}
}
