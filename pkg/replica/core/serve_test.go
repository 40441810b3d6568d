package core

import (
	"testing"
	"time"
)

// Observers count from when they saw the heartbeat, which may be long before its
// writer got the answer: a leader that counted from the answer would serve reads after
// another one was elected on an expired lease.
func TestLeaseIsCountedFromTheWriteNotFromItsAnswer(t *testing.T) {
	c := newCluster(2, 1)
	a := c.peers[0]
	mustStart(t, c, a)
	lease := a.core.opts.LeaseDuration
	sent := lease / 2
	a.core.Tick(sent)
	var write *WriteRecord
	for _, e := range a.core.Take() {
		if w, ok := e.(WriteRecord); ok {
			write = &w
		}
	}
	if write == nil {
		t.Fatal("no heartbeat was written")
	}
	c.commit(write.Next)
	a.core.Written(sent+lease/2, c.snapshot()) // the answer was slow
	for _, tc := range []struct {
		at   time.Duration
		want bool
	}{{sent + lease, true}, {sent + lease + 1, false}} {
		if got := a.core.MayServe(tc.at); got != tc.want {
			t.Errorf("%v after the heartbeat was sent the leader may serve: %t, want %t", tc.at-sent, got, tc.want)
		}
	}
}
