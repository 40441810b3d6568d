package controllers

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// planAssignment makes the next step from the record's assignment and min ISR to
// the spec's. Whether a step is allowed is for the rules of package epoch to say.
func planAssignment(o *Observation, p *Plan) {
	if o.Record.Recovery != nil {
		return // planRecovery has noted it
	}
	a := Assign{Target: target(o.Partition), MinISR: o.Partition.EffectiveMinInSyncReplicas(), Live: o.live(), At: o.Record.PartitionEpoch}
	_, err := epoch.Assign(o.Record, epoch.Assignment{Target: a.Target, WantedMinISR: a.MinISR, Live: a.Live})
	var refusal *epoch.Refusal
	switch {
	case err == nil:
		p.add(a)
		p.note(metav1.ConditionTrue, v1alpha1.ReasonReassigning, "changing the assignment from %v to %v", assigned(o.Record), a.Target)
	case errors.As(err, &refusal):
		planTrouble(o, p) // which is why, as a rule
		p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForReplicas, "the assignment cannot be changed yet: %s", refusal.Message)
	case errors.Is(err, epoch.ErrNoChange):
		planTrouble(o, p)
		noteAdding(o, p)
	}
}

func noteAdding(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		if q.Adding {
			p.note(metav1.ConditionTrue, v1alpha1.ReasonReassigning, "%s was added and is not in sync yet%s",
				o.Partition.ReplicaName(int32(q.ID)), o.tellCopying(q.ID))
			return
		}
	}
}

func because(t trouble) string {
	if t.Message == "" {
		return ""
	}
	return ": " + t.Message
}

func assigned(r epoch.Record) []epoch.ReplicaID {
	ids := make([]epoch.ReplicaID, len(r.Replicas))
	for i, p := range r.Replicas {
		ids[i] = p.ID
	}
	return ids
}
