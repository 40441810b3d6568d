package sim

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Changes of the record are judged here.

// recordChanged judges a change of the record (I9, I10).
func (o *oracle) recordChanged(old, r epoch.Record) {
	w := o.w
	grown := r.PartitionEpoch - old.PartitionEpoch
	recovers := old.Recovery != nil && r.Recovery == nil
	switch {
	case recovers:
		if r.LeaderEpoch <= old.LeaderEpoch || r.PartitionEpoch <= old.PartitionEpoch {
			w.fail("I9", "a recovery from %d/%d to %d/%d does not raise both epochs", old.PartitionEpoch, old.LeaderEpoch, r.PartitionEpoch, r.LeaderEpoch)
		}
	case grown != 0 && grown != 1:
		w.fail("I9", "partition epoch %d after %d", r.PartitionEpoch, old.PartitionEpoch)
	case grown == 0 && (r.LastChange() != old.LastChange() || r.LeaderEpoch != old.LeaderEpoch || r.Leader != old.Leader || !slices.Equal(r.ISR, old.ISR) || !slices.Equal(r.Replicas, old.Replicas)):
		w.fail("I9", "the record changed without a new partition epoch")
	case r.LeaderEpoch < old.LeaderEpoch || r.LeaderEpoch > old.LeaderEpoch+1:
		w.fail("I9", "leader epoch %d after %d", r.LeaderEpoch, old.LeaderEpoch)
	case r.LeaderEpoch == old.LeaderEpoch && r.Leader != old.Leader && r.Leader != epoch.NoReplica:
		w.fail("I7", "leader %d after %d in the same epoch", r.Leader, old.Leader)
	case old.Recovery != nil && grown != 0:
		w.fail("R7", "the record changed while it waits for recovery")
	}
	o.recordShape(r)
	o.joins(old, r)
	o.fewerCopies(r)
	if named, ok := o.wished[r.LastChange().ID]; ok && r.LastChange() != old.LastChange() && named != old.LeaderEpoch {
		w.fail("R6", "an unclean election ends leader epoch %d, and the user asked to end %d", old.LeaderEpoch, named)
	}
	if u := r.UncleanElection; u != nil && (old.UncleanElection == nil || *old.UncleanElection != *u) {
		o.unclean++
	}
}

// fewerCopies: a reassignment may want fewer copies of what is committed.
func (o *oracle) fewerCopies(r epoch.Record) {
	staying := 0
	for _, p := range r.Replicas {
		if !p.Removing {
			staying++
		}
	}
	for i := range o.committed {
		o.committed[i].minISR = min(o.committed[i].minISR, max(1, min(r.WantedMinISR, staying)))
	}
}

// joins judges who comes into the ISR: nobody who is about to go, since acks=all would
// wait for it (KIP-841), unless the user asked for it to lead.
func (o *oracle) joins(old, r epoch.Record) {
	if old.Recovery != nil || r.UncleanElection != nil && r.UncleanElection.LeaderEpoch == r.LeaderEpoch && r.LeaderEpoch > old.LeaderEpoch {
		return
	}
	for _, id := range r.ISR {
		if p, ok := old.Replica(id); ok && !old.InSync(id) && (p.Stopping || p.Removing || p.Gone) {
			o.w.fail("KIP-841", "replica %d joins the ISR although it is about to go", id)
		}
	}
}

// drops judges a step of a reassignment by what the operator believes: a replica that is
// at work and in sync stays until nobody is still to join in its stead, so that no
// replacement begins with fewer copies than before.
func (o *oracle) drops(old, r epoch.Record, live []epoch.ReplicaID) {
	for _, p := range old.Replicas {
		if _, stays := r.Replica(p.ID); stays || !old.InSync(p.ID) || !slices.Contains(live, p.ID) {
			continue
		}
		for _, q := range r.Replicas {
			if q.Adding && !q.Removing {
				o.w.fail("copies", "replica %d, at work and in sync, is dropped while replica %d has not joined", p.ID, q.ID)
			}
		}
	}
}

func (o *oracle) recordShape(r epoch.Record) {
	w := o.w
	if r.Leader != epoch.NoReplica && !r.InSync(r.Leader) {
		w.fail("I10", "leader %d is not in the ISR %v", r.Leader, r.ISR)
	}
	if !slices.IsSorted(r.ISR) || len(slices.Compact(slices.Clone(r.ISR))) != len(r.ISR) {
		w.fail("I10", "ISR %v is not a sorted set", r.ISR)
	}
	if p, _ := r.Replica(r.Leader); r.Leader != epoch.NoReplica && (p.Session != r.LeaderSession || p.Session == epoch.NoSession) {
		w.fail("R2", "the leader's session is %d, that of replica %d is %d", r.LeaderSession, r.Leader, p.Session)
	}
	for _, id := range r.ISR {
		if p, ok := r.Replica(id); !ok || p.Adding {
			w.fail("I10", "ISR member %d is not assigned, or being added", id)
		}
	}
}
