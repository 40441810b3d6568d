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

// behind names, for a rule whose place another one takes where it is missing, that other
// one: the harm shows only with both taken away, and with neither of them alone.
var behind = map[guard.Guard]guard.Guard{
	// A log that a power cut has shortened ends before what was witnessed.
	guard.WitnessOfMachine: guard.WitnessedBatchThere,
	// What a failed sync may have dropped is written again before it counts.
	guard.ErrorVoidsPromise: guard.RewriteAfterError,
	// The record that was acted upon is kept as well as the epoch cache.
	guard.EpochDurable: guard.PersistBeforeActing,
}

// leanings are the shapes in which a search finds what it takes several faults to see.
var leanings = map[guard.Guard]func(*Config){
	guard.RewriteAfterError: synced(Faults{Disk: true, Machines: true}),
	guard.ErrorVoidsPromise: synced(Faults{Disk: true, Machines: true}),
	guard.CutVoidsPromise:   synced(Faults{Rot: true, Machines: true}),
	guard.WitnessOfMachine:  func(c *Config) { c.EveryBatch, c.Faults.Machines = false, true },
	// A process lives on beside the one that came in its place, and holds more.
	guard.FetchSession:         func(c *Config) { c.Replicas, c.MinISR, c.Faults = 3, 2, Faults{Zombies: true} },
	guard.StaleServing:         quiet,
	guard.UndecidedUntilMoved:  quiet,
	guard.FetchOlderEpoch:      quiet,
	guard.FetchNewerEpoch:      quiet,
	guard.NeverBelowMinISR:     func(c *Config) { c.Replicas, c.MinISR, c.EveryBatch, c.Faults = 3, 2, false, Faults{Machines: true} },
	guard.JoinWithFetchSession: func(c *Config) { c.Replicas, c.MinISR, c.Faults = 2, 1, Faults{Zombies: true, Machines: true} },
	guard.DropKeepsMinISR:      func(c *Config) { c.Faults = Faults{Assign: true, Machines: true, Volumes: true} },
	guard.WitnessOfStart:       func(c *Config) { c.EveryBatch, c.Faults = false, Faults{Volumes: true} },

	// Of three, the third leads without what the other two hold.
	guard.FetchedUpToRequestEpoch: func(c *Config) { c.Replicas, c.MinISR, c.Faults = 3, 1, Faults{} },

	guard.OneHistory: put, guard.FrozenRecordIdle: put, guard.CutOtherHistory: put, guard.StartOfSession: put,
	guard.MarkRegression: put, guard.RecoveryHearsAnew: put, guard.RecoveryStrikesOthers: put, guard.EpochDurable: put,
}

// put is a shape in which the record is put back, and not much else happens.
func put(c *Config) {
	c.Faults = Faults{Record: true, Midway: c.Faults.Midway, Zombies: c.Faults.Zombies}
}

// quiet is one of three replicas in which disks, machines and the record are sound.
func quiet(c *Config) { c.Replicas, c.MinISR, c.Faults = 3, 1+c.MinISR%2, Faults{} }

// synced is one in which every batch is.
func synced(f Faults) func(*Config) {
	return func(c *Config) { c.EveryBatch, c.Faults = true, f }
}

// without takes a rule away, and what stands behind it.
func without(g guard.Guard) (restore func()) {
	one := guard.SwitchOff(g)
	if h, ok := behind[g]; ok {
		other := guard.SwitchOff(h)
		return func() { one(); other() }
	}
	return one
}

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
			and := ""
			if h, ok := behind[g]; ok {
				and = fmt.Sprintf(" (with %s taken away as well)", h)
				for _, alone := range []guard.Guard{g, h} {
					restore := guard.SwitchOff(alone)
					if r := Replay(c, list, false); r.Failure != nil {
						t.Errorf("without %s alone: %s", alone, r.Failure)
					}
					restore()
				}
			}
			defer without(g)()
			r := Replay(c, list, false)
			if r.Failure == nil {
				t.Fatalf("nothing misses it any more; if the simulator has changed, find another run: go test -tags mutants ./internal/sim -run Mutants -sim.search 20000 -sim.guard %s", g)
			}
			t.Logf("after %d steps%s: %.200s", r.Made, and, r.Failure)
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
		c := draw(s, leanings[g])
		restore := without(g)
		r := Run(c, *steps)
		if r.Failure == nil || r.Failure.Invariant == "liveness" { // what stands still shows less than what is lost
			restore()
			continue
		}
		list := Shrink(c, Steps(c, r.Made), *r.Failure, 2000)
		broken := Replay(c, list, false)
		restore()
		if why := explained(t, c, list, g); why != "" {
			t.Log(why)
			continue
		}
		what := fmt.Sprintf("%s (%s)", g, guard.Rules[g].Source)
		if h, ok := behind[g]; ok {
			what += fmt.Sprintf(", and %s, which stands behind it", h)
		}
		text, err := Script(c, list, fmt.Sprintf("Without the rule %s:\n%s", what, strings.SplitN(broken.Failure.Error(), "\n", 2)[0]))
		if err == nil {
			err = os.WriteFile(scriptOf(g), []byte(text), 0o600)
		}
		return fmt.Sprintf("seed %d, %d steps: %.150s (%v)", s, len(list), broken.Failure, orOK(err))
	}
	return "nothing misses it"
}

// explained says why a run is no witness for a rule: with all rules in force it breaks an
// invariant, too, or what stands behind the rule explains it alone.
func explained(t *testing.T, c Config, list []Step, g guard.Guard) string {
	t.Helper()
	if r := Replay(c, list, false); r.Failure != nil {
		t.Errorf("these steps of seed %d break an invariant with all rules in force: %s\n%s", c.Seed, r.Failure, strings.Join(Replay(c, list, true).Trace, "\n"))
		return "all rules in force"
	}
	if h, ok := behind[g]; ok {
		for _, alone := range []guard.Guard{g, h} {
			restore := guard.SwitchOff(alone)
			r := Replay(c, list, false)
			restore()
			if r.Failure != nil {
				return fmt.Sprintf("seed %d: without %s alone: %.150s", c.Seed, alone, r.Failure)
			}
		}
	}
	return ""
}
