package core

import (
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A replica that was dropped and is wanted again starts from nothing: the process
// that still runs must register anew, or it would be refused for ever.
func TestReplicaAddedAgainRegistersAnew(t *testing.T) {
	c := newCluster(3, 2)
	for _, p := range c.peers {
		mustStart(t, c, p)
	}
	all, rest := []epoch.ReplicaID{0, 1, 2}, []epoch.ReplicaID{0, 1}
	assignTo(t, c, 2, all, rest...) // marks
	assignTo(t, c, 2, all, rest...) // drops
	if _, listed := c.record.Replica(2); listed {
		t.Fatalf("replica 2 is still assigned: %+v", c.record.Replicas)
	}
	r, err := epoch.Assign(c.record, epoch.Assignment{Target: all, WantedMinISR: 2, Live: all, Change: c.changeID()})
	if err != nil {
		t.Fatal(err)
	}
	c.commit(r)
	old := c.peers[2]
	old.core.Observe(c.now, c.snapshot(), FromWatch)
	exits := slices.ContainsFunc(old.core.Take(), func(e Effect) bool { _, ok := e.(Exit); return ok })
	if !exits {
		t.Errorf("the process of session %d goes on as %s; no leader will ever serve it", old.core.me.Session, old.core.Role())
	}
}
