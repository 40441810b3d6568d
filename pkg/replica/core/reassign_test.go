package core

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// assignTo makes one step of the operator's towards an assignment.
func assignTo(t *testing.T, c *cluster, wanted int, live []epoch.ReplicaID, target ...epoch.ReplicaID) {
	t.Helper()
	r, err := epoch.Assign(c.record, epoch.Assignment{Target: target, WantedMinISR: wanted, Live: live, Change: c.changeID()})
	if err != nil {
		t.Fatalf("assign %v: %v", target, err)
	}
	c.commit(r)
	c.see()
}

func mustStart(t *testing.T, c *cluster, p *peer) {
	t.Helper()
	if err := c.start(p); err != nil {
		t.Fatal(err)
	}
	c.see()
}

// fetchRounds lets a follower fetch while time passes.
func fetchRounds(c *cluster, p *peer, rounds int) {
	for range rounds {
		c.now += 100 * time.Millisecond
		if q, a, err := c.ask(p); err == nil {
			c.deliver(p, heldResponse{q, a})
		}
		c.tick()
	}
}

// A joining replica raises the effective min ISR. Of two replicas with min ISR 3 in
// the spec, one is dead: the new one must get in beside it.
func TestNewReplicaJoinsBesideADeadOneThatMinISRNeeds(t *testing.T) {
	c := newCluster(3, 3)
	c.record = epoch.New(epoch.UUID{9}, []epoch.ReplicaID{0, 1}, 3, c.changeID())
	a, b, n := c.peers[0], c.peers[1], c.peers[2]
	mustStart(t, c, a)
	mustStart(t, c, b)
	fetchRounds(c, b, 3)
	c.stop(b)
	c.now += 2 * time.Second // A knows that B is gone
	c.tick()
	assignTo(t, c, 3, []epoch.ReplicaID{0}, 0, 2)
	mustStart(t, c, n)
	fetchRounds(c, n, 30)
	if want := []epoch.ReplicaID{0, 1, 2}; !slices.Equal(c.record.ISR, want) {
		t.Fatalf("ISR %v, want %v: the new replica has caught up", c.record.ISR, want)
	}
	assignTo(t, c, 3, []epoch.ReplicaID{0, 2}, 0, 2)
	if want := []epoch.ReplicaID{0, 2}; !slices.Equal(c.record.ISR, want) || c.record.MinISR != 2 {
		t.Errorf("ISR %v, min ISR %d; want %v, 2: the dead replica is replaced", c.record.ISR, c.record.MinISR, want)
	}
}
