package controllers

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// planRecovery goes on after a regression, once the user has asked for it and every
// replica that may know the newest record has reported (DESIGN.md rule 7).
func planRecovery(o *Observation, p *Plan) {
	if !o.recoveryAsked() {
		p.note(metav1.ConditionFalse, v1alpha1.ReasonRecoveryRequired, "%s", o.tellRecovery())
		return
	}
	switch {
	case o.Round == "" || o.Record.Recovery.Round != o.Round:
		p.add(AskReports{PartitionEpoch: o.Record.PartitionEpoch})
	case len(o.Record.Awaited()) == 0:
		p.add(Recover{PartitionEpoch: o.Record.PartitionEpoch})
		// Should the record refuse, as when nobody remembers one, it is looked at again.
		p.recheck(recordRecheck)
	}
	p.note(metav1.ConditionTrue, v1alpha1.ReasonRecovering, "%s", o.tellRecovery())
}

// recoveryAsked reports that the user asked for the recovery of this very record.
func (o *Observation) recoveryAsked() bool {
	if o.adopting() {
		return true
	}
	at, ok, _ := o.Partition.RecoverRequest()
	return ok && at == int64(o.Record.PartitionEpoch)
}

// tellRecovery is the whole story for the user: what happened, who knows what, what is
// waited for, and how to ask.
func (o *Observation) tellRecovery() string {
	r := o.Record
	v := r.Recovery
	var b strings.Builder
	switch {
	case o.adopting():
		fmt.Fprintf(&b, "adopting the log of topic id %s", r.TopicID)
	case v.Remade:
		b.WriteString("the Lease was made anew")
	default:
		fmt.Fprintf(&b, "epochs went backwards: the record is at partition epoch %d and leader epoch %d", r.PartitionEpoch, r.LeaderEpoch)
	}
	fmt.Fprintf(&b, "; the highest known are %d and %d", v.PartitionEpoch, v.LeaderEpoch)
	for _, w := range v.Reports {
		name := o.Partition.ReplicaName(int32(w.ID))
		if w.Known == (epoch.Change{}) {
			fmt.Fprintf(&b, "; %s remembers no record", name)
		} else {
			fmt.Fprintf(&b, "; %s knows %d", name, w.Known.PartitionEpoch)
		}
	}
	if v.Newest != nil {
		fmt.Fprintf(&b, "; recovery would go on from %d with the ISR %v", v.Newest.PartitionEpoch, v.Newest.ISR)
	}
	if waiting := r.Awaited(); len(waiting) > 0 {
		fmt.Fprintf(&b, "; waiting for the reports of replicas %v%s", waiting, o.awaitedTrouble())
	}
	if len(r.Awaited()) == 0 && v.Remade && v.Newest == nil {
		fmt.Fprintf(&b, "; so there is nothing to go on from: put a volume back that remembers it, or make the ReplicatedPartition anew (its volumes stay unless whenDeleted is Delete), with the annotation %s=%s to begin an empty log or with the topic id of the log that is wanted; logs of other topic ids that the volumes held are under quarantine/ there",
			v1alpha1.AnnotationAdopt, v1alpha1.AdoptNone)
	}
	if !o.recoveryAsked() {
		fmt.Fprintf(&b, "; nothing changes until recovery is asked for by the annotation %s=%d", v1alpha1.AnnotationRecover, r.PartitionEpoch)
	}
	return b.String()
}

// awaitedTrouble says why a replica that is waited for cannot report.
func (o *Observation) awaitedTrouble() string {
	if why := o.noNewPods(); why != "" {
		for _, id := range o.Record.Awaited() {
			if o.Pods[id] == nil {
				return fmt.Sprintf(" (the pod %s is not there, and is not made: %s)", o.Partition.ReplicaName(int32(id)), why)
			}
		}
	}
	for _, id := range o.Record.Awaited() {
		pod := o.Pods[id]
		name := o.Partition.ReplicaName(int32(id))
		switch {
		case pod == nil:
			return fmt.Sprintf(" (the pod %s is not there)", name)
		case podTerminal(pod):
			return fmt.Sprintf(" (the pod %s is %s: delete it, and it will be made again)", name, pod.Status.Phase)
		case podTrouble(pod).Reason != "":
			return fmt.Sprintf(" (%s: %s)", podTrouble(pod).Reason, podTrouble(pod).Message)
		}
	}
	return ""
}

// noNewPods says why no pod is made that is missing, "" if nothing keeps the operator from it.
func (o *Observation) noNewPods() string {
	switch {
	case o.paused():
		return "the partition is paused, remove the annotation " + v1alpha1.AnnotationPaused
	case o.Partition.Spec.Suspend:
		return "the partition is suspended, set spec.suspend to false"
	case len(o.Foreign) > 0:
		return "these are in the way, not ours and left alone: " + strings.Join(o.Foreign, ", ")
	}
	return ""
}

// planRemake makes a lost record anew, frozen, for the replicas to report to, if the
// user asked for recovery at the partition epoch that the status showed last.
func planRemake(o *Observation, p *Plan) {
	p.recheck(recordRecheck)
	at, ok, _ := o.Partition.RecoverRequest()
	if ok && at == o.Partition.Status.PartitionEpoch {
		p.add(RemakeRecord{PartitionEpoch: at})
		p.note(metav1.ConditionTrue, v1alpha1.ReasonRecovering, "making the Lease %s anew, for the replicas to report what they know", o.Partition.LeaseName())
		return
	}
	p.note(metav1.ConditionFalse, v1alpha1.ReasonRecordMissing,
		"the Lease %s with the partition record is gone; it is not made anew by itself, since that would start the epochs over: restore it from a backup, or let the replicas say what they know by the annotation %s=%d, or delete the ReplicatedPartition and adopt its volumes",
		o.Partition.LeaseName(), v1alpha1.AnnotationRecover, o.Partition.Status.PartitionEpoch)
}

// planRequests tells of requests that cannot be read.
func planRequests(o *Observation, p *Plan) {
	_, err := adoptRequest(o.Partition)
	if err == nil {
		_, _, err = o.Partition.RecoverRequest()
	}
	if err == nil {
		_, _, err = o.Partition.UncleanElectionRequest()
	}
	if err == nil {
		_, _, err = o.Partition.PromoteRequest()
	}
	if err == nil {
		_, err = o.Partition.Paused()
	}
	if err != nil {
		p.note(metav1.ConditionFalse, v1alpha1.ReasonRequestInvalid, "%s", err)
	}
}

// hosted is the record with the replicas that are to have pods: the assigned ones,
// and, while recovery waits for their reports, those of newer records.
func (o *Observation) hosted() epoch.Record {
	r := o.Record
	if r.Recovery == nil {
		return r
	}
	r = r.Clone()
	for _, id := range r.Recovery.Assigned {
		if _, ok := r.Replica(id); !ok {
			r.Replicas = append(r.Replicas, epoch.Replica{ID: id, LastEpoch: epoch.NoEpoch})
		}
	}
	return r
}
