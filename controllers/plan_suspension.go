package controllers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A partition can be made to rest in two ways. Paused, the operator changes no object:
// pods run as they are, and only the leadership is still looked after, since replication
// needs that. Suspended, no pod runs, and the volumes are kept.

// suspendPatience is for how long the leader's pod waits for the others to have ended; by
// then the kubelet has killed them, if there is one.
const suspendPatience = 2 * stopSeconds * time.Second

func (o *Observation) paused() bool {
	on, _ := o.Partition.Paused()
	return on
}

// notePaused is the plan's last word while the operator keeps its hands off.
func notePaused(p *Plan) {
	p.note(metav1.ConditionFalse, v1alpha1.ReasonPaused, "paused by the annotation %s: pods, volumes and services stay as they are, leaders are still elected; remove the annotation to go on",
		v1alpha1.AnnotationPaused)
}

// planSuspension ends the followers first, then the leader, which has everything: the next
// start goes on from there, in a new epoch.
func planSuspension(o *Observation, p *Plan) {
	waiting := false
	for _, id := range sortedIDs(o.Pods) {
		pod := o.Pods[id]
		switch {
		case pod.DeletionTimestamp != nil:
			waiting = waiting || o.Deleting[pod.UID] < suspendPatience
		case id != o.Record.Leader:
			planDeletion(o, p, pod, id, PodSuspended, "the partition is suspended")
			waiting = true
		}
	}
	leader := o.Pods[o.Record.Leader]
	if leader != nil && leader.DeletionTimestamp == nil && !waiting {
		planDeletion(o, p, leader, o.Record.Leader, PodSuspended, "the partition is suspended")
	}
	if n := len(o.Pods); n > 0 {
		p.recheck(suspendPatience)
		p.note(metav1.ConditionTrue, v1alpha1.ReasonSuspending, "%d pods are still to end", n)
		return
	}
	p.note(metav1.ConditionFalse, v1alpha1.ReasonSuspended, "%s", tellSuspended(o.Record))
}

func tellSuspended(r epoch.Record) string {
	return fmt.Sprintf("suspended: no pod runs, and the volumes of replicas %v are kept; set spec.suspend to false to go on", assigned(r))
}
