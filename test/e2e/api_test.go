//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// DESIGN.md rule 8: an outage of the API server stops nothing that was working, however long it lasts.
func TestOutageOfTheAPIServerStopsNoWrites(t *testing.T) {
	const lease = 10 * time.Second // the default leaseDurationSeconds
	tests := []struct{ name, down, up string }{
		{name: "refused", down: "stop-api", up: "start-api"},
		{name: "hanging", down: "pause-api", up: "resume-api"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := newPartition(t, "outage-"+tc.name)
			l := startLoad(t, p)
			before := p.awaitInSync(t)
			up := false
			t.Cleanup(func() {
				if !up {
					t.Log(output(labScript, tc.up))
				}
			})
			at := time.Now()
			lab(t, tc.down)
			// records sent after the leader's lease would have expired are acknowledged, the API server still being away
			l.await(t, at.Add(lease+5*time.Second))
			l.report(t, "API server "+tc.name, at)
			lab(t, tc.up)
			up = true
			back := time.Now()
			l.await(t, back.Add(lease)) // and while everybody catches up with what they missed
			l.report(t, "API server back", back)
			after := p.awaitInSync(t)
			t.Logf("leader %s in epoch %d before, %s in epoch %d after", before.Leader, before.LeaderEpoch, after.Leader, after.LeaderEpoch)
			l.finish(t)
		})
	}
}

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
