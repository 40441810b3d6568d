//go:build mutants

package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
)

var (
	search = flag.Int("sim.search", 0, "how many seeds to search for a run that misses a rule, and to keep, shrunk, as the rule's script")
	only   = flag.String("sim.guard", "", "the one rule to search for; all that have no script yet if empty")
)

func scriptOf(g guard.Guard) string { return filepath.Join("testdata", "mutants", g.String()+".txt") }

// TestMutants takes every rule that has a script away in turn: the script's run must
// break an invariant then, and none with all rules in force. Rules without a script are
// missed by other tests; internal/guard lists them all.
func TestMutants(t *testing.T) {
	if *search > 0 {
		searchMutants(t)
		return
	}
	for g := range guard.Rules {
		g := guard.Guard(g)
		if _, err := os.Stat(scriptOf(g)); err != nil {
			continue
		}
		t.Run(g.String(), func(t *testing.T) {
			c, list := readScript(t, scriptOf(g))
			if r := Replay(c, list, false); r.Failure != nil {
				t.Fatalf("with all rules in force: %s", r.Failure)
			}
			defer guard.SwitchOff(g)()
			r := Replay(c, list, false)
			if r.Failure == nil {
				t.Fatalf("nothing misses it any more; if the simulator has changed, find another run: go test -tags mutants ./internal/sim -run Mutants -sim.search 20000 -sim.guard %s", g)
			}
			t.Logf("after %d steps: %.200s", r.Made, r.Failure)
		})
	}
}

func searchMutants(t *testing.T) {
	for g := range guard.Rules {
		g := guard.Guard(g)
		_, err := os.Stat(scriptOf(g))
		if *only == "" && err != nil || *only == g.String() {
			t.Run(g.String(), func(t *testing.T) { t.Log(searchMutant(t, g)) })
		}
	}
}

// searchMutant keeps the first run found that only the lack of the rule explains.
func searchMutant(t *testing.T, g guard.Guard) string {
	for s := *first; s < *first+uint64(*search); s++ {
		restore := guard.SwitchOff(g)
		r := Run(Draw(s), *steps)
		if r.Failure == nil {
			restore()
			continue
		}
		if r.Failure.Invariant == "liveness" {
			restore() // what stands still shows less than what is lost
			continue
		}
		list := Shrink(Draw(s), Steps(Draw(s), r.Made), *r.Failure, 2000)
		without := Replay(Draw(s), list, false)
		restore()
		if with := Replay(Draw(s), list, false); with.Failure != nil {
			t.Errorf("these steps of seed %d break an invariant with all rules in force: %s\n%s", s, with.Failure, strings.Join(Replay(Draw(s), list, true).Trace, "\n"))
			return ""
		}
		text, err := Script(Draw(s), list, fmt.Sprintf("Without the rule %s (%s):\n%s", g, guard.Rules[g].Source, strings.SplitN(without.Failure.Error(), "\n", 2)[0]))
		if err == nil {
			err = os.WriteFile(scriptOf(g), []byte(text), 0o600)
		}
		return fmt.Sprintf("seed %d, %d steps: %.150s (%v)", s, len(list), without.Failure, orOK(err))
	}
	return "nothing misses it"
}
