package epoch

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// Assignment is the wish for another set of replicas or another min ISR.
type Assignment struct {
	// Target is the wanted set of replica ids.
	Target []ReplicaID
	// WantedMinISR is spec.minInSyncReplicas.
	WantedMinISR int
	// Live are the replicas that the caller knows to be at work and caught up.
	Live   []ReplicaID
	Change ChangeID
	Now    time.Time
}

// Assign makes one step towards the target; call it with each new record until it
// answers ErrNoChange. New ids come in as Adding and leave that by joining the ISR.
// Ids to drop are marked Removing at once, and dropped one by one, dead and
// out-of-sync ones first, only while enough live members of the ISR stay: assignment,
// ISR and effective min ISR change together, and the leader epoch grows, so that no
// fetch of the dropped replica counts any more (protocol.md 1.18). One that is at work
// and in sync stays until every replica that takes part in its stead has joined the ISR:
// otherwise a replacement would begin with fewer copies than before.
func Assign(r Record, a Assignment) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	if len(a.Target) == 0 || a.WantedMinISR < 1 {
		return r, refuse(RefusedInvalid, "an assignment needs at least one replica and a min ISR of at least 1")
	}
	if n, changed := r.adopt(a); changed {
		return n.next(a.Change), nil
	}
	return r.dropOne(a)
}

// adopt takes over what needs no waiting: new ids, marks, the wanted min ISR.
func (r Record) adopt(a Assignment) (Record, bool) {
	n := r.Clone()
	changed := n.WantedMinISR != a.WantedMinISR
	n.WantedMinISR = a.WantedMinISR
	for i := range n.Replicas {
		removing := !slices.Contains(a.Target, n.Replicas[i].ID)
		changed = changed || removing != n.Replicas[i].Removing
		n.Replicas[i].Removing = removing
	}
	for _, id := range a.Target {
		if _, ok := n.Replica(id); !ok {
			n.Replicas = append(n.Replicas, Replica{ID: id, Adding: true, LastEpoch: NoEpoch})
			changed = true
		}
	}
	slices.SortFunc(n.Replicas, func(x, y Replica) int { return int(x.ID) - int(y.ID) })
	return n, changed
}

func (r Record) dropOne(a Assignment) (Record, error) {
	victim, ok := r.victim(a.Live)
	if !ok {
		return r, ErrNoChange
	}
	if late, ok := r.firstAdding(a.Target); ok && slices.Contains(a.Live, victim) && r.InSync(victim) && !guard.Off(guard.DropAfterJoin) {
		return r, refuse(RefusedNotCaughtUp, "replica %d stays until replica %d, which is being added, is in the ISR", victim, late)
	}
	staying := 0
	for _, id := range r.ISR {
		if slices.Contains(a.Target, id) && slices.Contains(a.Live, id) {
			staying++
		}
	}
	if need := min(a.WantedMinISR, len(a.Target)); staying < need && !guard.Off(guard.DropKeepsMinISR) {
		return r, refuse(RefusedBelowMinISR, "replica %d stays until %d live members of the ISR remain without it; there are %d", victim, need, staying)
	}
	n := r.Clone()
	n.Replicas = slices.DeleteFunc(n.Replicas, func(p Replica) bool { return p.ID == victim })
	n.ISR = slices.DeleteFunc(n.ISR, func(id ReplicaID) bool { return id == victim })
	leader := n.Leader
	if leader == victim || leader == NoReplica {
		live := slices.DeleteFunc(slices.Clone(a.Live), func(id ReplicaID) bool { return id == victim })
		if leader, ok = n.candidate(live); !ok {
			return r, refuse(RefusedNoCandidate, "replica %d leads and no live member of the ISR can take over", victim)
		}
	}
	if leader != r.Leader || !guard.Off(guard.NewEpochWithDrop) {
		n.enthrone(leader, ReasonRemoved, a.Now)
	}
	return n.next(a.Change), nil
}

// firstAdding is a replica of the target that has not been in the ISR yet.
func (r Record) firstAdding(target []ReplicaID) (ReplicaID, bool) {
	for _, p := range r.Replicas {
		if p.Adding && slices.Contains(target, p.ID) {
			return p.ID, true
		}
	}
	return NoReplica, false
}

// victim is the next replica to drop: dead or out of sync first, then the highest id.
func (r Record) victim(live []ReplicaID) (ReplicaID, bool) {
	var removing []Replica
	for _, p := range r.Replicas {
		if p.Removing {
			removing = append(removing, p)
		}
	}
	if len(removing) == 0 {
		return NoReplica, false
	}
	useful := func(p Replica) int {
		n := 0
		if slices.Contains(live, p.ID) {
			n++
		}
		if r.InSync(p.ID) {
			n += 2
		}
		if r.Leader == p.ID {
			n += 4
		}
		return n
	}
	return slices.MinFunc(removing, func(p, q Replica) int {
		if d := useful(p) - useful(q); d != 0 {
			return d
		}
		return int(q.ID) - int(p.ID)
	}).ID, true
}
