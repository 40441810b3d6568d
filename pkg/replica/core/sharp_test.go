package core

import (
	"flag"
	"testing"
)

var walkSearch = flag.Bool("walk.search", false, "look for new seeds by which the walks miss each guard")

// TestRandomWalksMissEveryGuard shows that the walks are sharp: with any one guard
// switched off, the walk of that seed breaks an invariant. Seeds mean something else
// after every change of the walks: -walk.search finds new ones.
func TestRandomWalksMissEveryGuard(t *testing.T) {
	for _, tc := range []struct {
		name  string
		guard Guard
		seed  uint64
	}{
		{"truncate by epoch", GuardTruncateByEpoch, 48},
		{"own floor", GuardOwnFloor, 5},
		{"maximal ISR", GuardMaximalISR, 206},
		{"epoch start", GuardEpochStart, 599},
		{"fetch epoch", GuardFetchEpoch, 1154},
		{"fetch session", GuardFetchSession, 10142},
		{"freeze below min ISR", GuardFreezeBelowMinISR, 282},
		{"diverging not counted", GuardDivergingNotCounted, 5},
		{"own session", GuardOwnSession, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seed, last, steps := tc.seed, tc.seed, 0
			if *walkSearch {
				seed, last = 1, 100_000
			}
			for ; seed <= last; seed++ {
				w := run(drawConfig(seed, tc.guard), false)
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
