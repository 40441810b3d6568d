package epoch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// The completion rules of a reassignment (protocol.md 1.18), step by step: what the
// next step is, for a record of replicas 0, 1 and 2 that all are in sync.
func TestAssignSteps(t *testing.T) {
	replaceTwo := Assignment{Target: []ReplicaID{0, 1, 3}, WantedMinISR: 2, Live: []ReplicaID{0, 1, 2, 3}, Change: "a", Now: time.Unix(1, 0)}
	marked := func(t *testing.T) Record {
		r := mustAssign(t, registered(t, 3, 2), replaceTwo)
		return mustRegister(t, r, 3, 1, "first")
	}
	joined := func(t *testing.T) Record {
		r := marked(t)
		n, err := ChangeISR(r, isrChange(r, 0, 1, 2, 3))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tc := range []struct {
		name    string
		record  func(*testing.T) Record
		live    []ReplicaID
		change  func(*Record)
		refuse  RefusalReason
		dropped ReplicaID
	}{
		{"who leaves stays until who comes is in the ISR", marked, []ReplicaID{0, 1, 2, 3}, nil, RefusedNotCaughtUp, 0},
		{"then it goes, with a new leader epoch", joined, []ReplicaID{0, 1, 2, 3}, nil, "", 2},
		{"a dead one goes before", marked, []ReplicaID{0, 1, 3}, nil, "", 2},
		{"one that is out of sync goes before", marked, []ReplicaID{0, 1, 2, 3}, func(r *Record) { r.ISR = []ReplicaID{0, 1} }, "", 2},
		{"nobody goes while too few that stay are live", joined, []ReplicaID{0, 2}, nil, RefusedBelowMinISR, 0},
		{"one that neither comes nor goes is not waited for (KAFKA-19975)", joined, []ReplicaID{0, 2, 3}, func(r *Record) { r.ISR = []ReplicaID{0, 2, 3} }, "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.record(t)
			if tc.change != nil {
				tc.change(&r)
			}
			a := replaceTwo
			a.Live = tc.live
			n, err := Assign(r, a)
			if tc.refuse != "" {
				wantRefusal(t, err, tc.refuse)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := n.Replica(tc.dropped); ok || n.InSync(tc.dropped) || n.LeaderEpoch != r.LeaderEpoch+1 {
				t.Errorf("replicas %v, ISR %v, leader epoch %d (was %d); want replica %d gone from both, in a new epoch", n.ids(), n.ISR, n.LeaderEpoch, r.LeaderEpoch, tc.dropped)
			}
		})
	}
}

func TestAReassignmentCanBeCalledOff(t *testing.T) {
	r := registered(t, 3, 2)
	away := Assignment{Target: []ReplicaID{0, 1, 3}, WantedMinISR: 2, Live: []ReplicaID{0, 1, 2}, Change: "a"}
	back := Assignment{Target: []ReplicaID{0, 1, 2}, WantedMinISR: 2, Live: []ReplicaID{0, 1, 2}, Change: "b"}
	r = mustAssign(t, mustAssign(t, mustAssign(t, r, away), back), back)
	if !slices.Equal(r.ids(), []ReplicaID{0, 1, 2}) || !slices.Equal(r.ISR, []ReplicaID{0, 1, 2}) || r.Replicas[2].Removing {
		t.Errorf("replicas %+v, ISR %v; want all as before", r.Replicas, r.ISR)
	}
	if _, err := Assign(r, back); !errors.Is(err, ErrNoChange) {
		t.Errorf("one more step: %v, want ErrNoChange", err)
	}
}
