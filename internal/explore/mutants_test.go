//go:build mutants

package explore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
)

var rewrite = flag.Bool("rewrite", false, "write the shortest traces to testdata")

// Each rule that guards against a failure known from Kafka's history, taken away: the
// explorer must find the failure, by a shortest way, which testdata shows as a table.
var findings = []struct {
	file   string
	off    []guard.Guard
	config Config
	want   Invariant
}{
	{"kip101-loss", []guard.Guard{guard.TruncateByEpoch},
		Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 1, Changes: 2, Crashes: 1, OnlyElections: true, Watch: []Invariant{Complete}}, Complete},
	{"kip101-divergence", []guard.Guard{guard.TruncateByEpoch, guard.StrikeOtherDirectory},
		Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 1, Changes: 3, MachineCrashes: 2, OnlyElections: true, Watch: []Invariant{Divergence}}, Divergence},
	{"kip279", []guard.Guard{guard.OwnFloor}, Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 2}, Converges},
	{"kip320-zombie-leader", []guard.Guard{guard.FetchNewerEpoch},
		Config{Replicas: 3, MinISR: 2, Records: 1, Elections: 3, Changes: 3, OnlyElections: true}, Members},
	{"kip320-old-follower", []guard.Guard{guard.FetchOlderEpoch},
		Config{Replicas: 3, MinISR: 2, Records: 1, Elections: 2, Changes: 2, OnlyElections: true, SkipNothing: true}, Members},
	{"kip497", []guard.Guard{guard.MaximalISR}, Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 3, Watch: []Invariant{Complete}}, Complete},
	{"kafka7128", []guard.Guard{guard.JoinAtEpochStart}, Config{Replicas: 3, MinISR: 1, Records: 1, Elections: 1, Changes: 3}, Members},
	{"kip966-nobody-may-lead", []guard.Guard{guard.NeverBelowMinISR}, Config{Replicas: 3, MinISR: 2, Records: 1, Elections: 1, Changes: 3, MachineCrashes: 1}, Electable},
	{"kip966-last-one-standing", []guard.Guard{guard.FreezeBelowMinISR}, Config{Replicas: 2, MinISR: 2, Records: 1, Elections: 1, Changes: 3, MachineCrashes: 2}, Durable},
	{"kip966-unclean-restart", []guard.Guard{guard.StrikeOtherDirectory},
		Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 3, MachineCrashes: 1, Watch: []Invariant{Complete}}, Complete},
	{"kip903-other-process", []guard.Guard{guard.JoinWithFetchSession}, Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 4, Crashes: 1}, Incarnation},
	{"kip903-empty-member", []guard.Guard{guard.JoinWithFetchSession, guard.PositionVoidWithDirectory},
		Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 4, MachineCrashes: 1, Watch: []Invariant{Members}}, Members},
	{"kafka13141", []guard.Guard{guard.DivergingNotCounted}, Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 2}, Members},
	{"kafka14704", []guard.Guard{guard.DivergingKeepsHighWatermark}, Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 2, Changes: 2}, BelowHighWatermark},
	{"rule4-undecided", []guard.Guard{guard.UndecidedUntilMoved}, Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 0, Changes: 3, UndecidedWrites: true}, Members},
	{"old-answer", []guard.Guard{guard.ResponseLastEpoch},
		Config{Replicas: 2, MinISR: 1, Records: 2, Elections: 3, Changes: 3, OnlyElections: true, Fetching: Disordered, SkipNothing: true}, Members},
	{"kafka18991", []guard.Guard{guard.ResponseOffset},
		Config{Replicas: 2, MinISR: 1, Records: 3, Elections: 2, Changes: 2, OnlyElections: true, Fetching: Disordered, Watch: []Invariant{Divergence}}, Divergence},
	{"follower-not-synced", []guard.Guard{guard.FollowerFlushesFirst}, Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 2, MachineCrashes: 1, EveryBatch: true}, Members},
	{"leader-not-synced", []guard.Guard{guard.LeaderFlushesFirst}, Config{Replicas: 2, MinISR: 1, Records: 1, Elections: 1, Changes: 2, MachineCrashes: 1, EveryBatch: true}, Members},
}

func TestWithoutARuleItsFailureIsFound(t *testing.T) {
	for _, tc := range findings {
		t.Run(tc.file, func(t *testing.T) {
			for _, g := range tc.off {
				defer guard.SwitchOff(g)()
			}
			r, err := Explore(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.Violation == "" || r.Broken != tc.want {
				t.Fatalf("without %v: %v\n%s", tc.off, r, r.Trace)
			}
			compare(t, filepath.Join("testdata", tc.file+".md"), story(tc.file, tc.off, tc.config, r))
		})
	}
}

// With the rules in force, the bounds in which the failures are found hold none.
func TestWithAllRulesTheSameBoundsAreSafe(t *testing.T) {
	for _, tc := range findings {
		t.Run(tc.file, func(t *testing.T) {
			tc.config.MaxStates = 150_000
			r, err := Explore(tc.config)
			if err != nil || r.Violation != "" {
				t.Fatalf("%v %v\n%s", err, r, r.Trace)
			}
			t.Log(r)
		})
	}
}

func story(name string, off []guard.Guard, c Config, r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: a shortest way to the failure, %d steps\n\n", name, r.Length)
	for _, g := range off {
		rule := guard.Rules[g]
		fmt.Fprintf(&b, "Without the rule %s (%s): %s.\n", rule.Name, rule.Source, rule.Harm)
	}
	fmt.Fprintf(&b, "Bounds: %v.\n\n%s", c, r.Trace)
	return b.String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("the way to the failure is another one than in %s (run with -rewrite and look at the change): %v\n%s", file, err, got)
	}
}
