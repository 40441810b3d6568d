//go:build mutants

package core

import (
	"flag"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
)

var walkSearch = flag.Bool("walk.search", false, "look for new seeds by which the walks miss each guard")

// TestRandomWalksMissEveryGuard shows that the walks are sharp: with any one guard
// switched off, the walk of that seed breaks an invariant. Seeds mean something else
// after every change of the walks: -walk.search finds new ones.
func TestRandomWalksMissEveryGuard(t *testing.T) {
	for _, tc := range []struct {
		name  string
		guard guard.Guard
		seed  uint64
	}{
		{"truncate by epoch", guard.TruncateByEpoch, 27},
		{"own floor", guard.OwnFloor, 8},
		{"maximal ISR", guard.MaximalISR, 234},
		{"epoch start", guard.JoinAtEpochStart, 523},
		{"fetch epoch", guard.FetchOlderEpoch, 19724},
		{"fetch session", guard.FetchSession, 3816},
		{"freeze below min ISR", guard.FreezeBelowMinISR, 123},
		{"diverging not counted", guard.DivergingNotCounted, 8},
		{"own session", guard.OwnSession, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer guard.SwitchOff(tc.guard)()
			seed, last, steps := tc.seed, tc.seed, 0
			if *walkSearch {
				seed, last = 1, 100_000
			}
			for ; seed <= last; seed++ {
				w := run(drawConfig(seed), false)
				steps += w.steps
				if w.failed != "" {
					t.Logf("seed %d, step %d, %d steps in all: %.160s", seed, w.steps, steps, w.failed)
					return
				}
			}
			t.Errorf("seed %d breaks nothing without the guard; if the walks have changed, find another one with -walk.search", tc.seed)
		})
	}
}
