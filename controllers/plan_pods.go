package controllers

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// planPods makes missing pods, clears away ended and surplus ones, and replaces
// outdated ones, at most one at a time.
func planPods(o *Observation, p *Plan) {
	planTrouble(o, p)
	for _, q := range o.hosted().Replicas {
		pod := o.Pods[q.ID]
		switch {
		case pod == nil:
			// Not while a name is taken: a foreign ServiceAccount, say, would decide what
			// the pod may do.
			if len(o.Foreign) == 0 {
				p.add(CreatePod{ID: q.ID})
				p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForReplicas, "making the pod of %s", o.Partition.ReplicaName(int32(q.ID)))
			}
		case pod.DeletionTimestamp != nil:
			p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForReplicas, "the pod %s is ending", pod.Name)
		case podTerminal(pod):
			planDeletion(o, p, pod, q.ID, PodEnded, fmt.Sprintf("the pod is %s and will not run again", pod.Status.Phase))
		}
	}
	for _, id := range sortedIDs(o.Pods) {
		if _, ok := o.Record.Replica(id); !ok && o.Pods[id].DeletionTimestamp == nil {
			planDeletion(o, p, o.Pods[id], id, PodRemoved, "the replica was removed")
		}
	}
	planRoll(o, p)
	for _, q := range o.Record.Replicas {
		if pod := o.Pods[q.ID]; pod != nil && !podReady(pod) {
			p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForReplicas, "the pod %s is not ready yet%s", pod.Name, o.tellHidden())
		}
	}
}

// planRoll picks one outdated pod: unready ones first, the leader last.
func planRoll(o *Observation, p *Plan) {
	var outdated []epoch.ReplicaID
	for _, q := range o.Record.Replicas {
		if pod := o.Pods[q.ID]; pod != nil && pod.DeletionTimestamp == nil && !podTerminal(pod) && o.outdated(q.ID) {
			outdated = append(outdated, q.ID)
		}
	}
	if len(outdated) == 0 {
		return
	}
	slices.SortStableFunc(outdated, func(a, b epoch.ReplicaID) int { return cmp.Compare(o.rollRank(a), o.rollRank(b)) })
	id := outdated[0]
	planDeletion(o, p, o.Pods[id], id, PodOutdated, "the pod is to be replaced by one of the present spec")
	p.note(metav1.ConditionTrue, v1alpha1.ReasonRollingOut, "replacing pods by ones of the present spec: %d to go, %s next", len(outdated), o.Pods[id].Name)
}

func (o *Observation) rollRank(id epoch.ReplicaID) int {
	switch {
	case !podReady(o.Pods[id]) && o.Record.Leader != id:
		return 0
	case o.Record.Leader != id:
		return 1
	}
	return 2
}

func (o *Observation) outdated(id epoch.ReplicaID) bool {
	want, ok := o.Desired.Pods[id]
	return ok && o.Pods[id].Annotations[v1alpha1.AnnotationTemplateHash] != want.Annotations[v1alpha1.AnnotationTemplateHash]
}

// planDeletion plans a deletion if the policy chain allows it, or notes why not.
func planDeletion(o *Observation, p *Plan, pod *corev1.Pod, id epoch.ReplicaID, cause PodDeletion, message string) {
	if d := podPolicies.judge(podCase{Observation: o, ID: id, Cause: cause}); !d.Allowed {
		p.note(metav1.ConditionTrue, d.Reason, "the pod %s stays for now: %s", pod.Name, d.Message)
		return
	}
	p.add(DeletePod{ID: id, Name: pod.Name, UID: pod.UID, Cause: cause, Message: message})
}

// planClaims deletes the claims of removed replicas where the user asked for that.
func planClaims(o *Observation, p *Plan) {
	for _, id := range sortedIDs(o.Claims) {
		c := o.Claims[id]
		if c.DeletionTimestamp != nil {
			continue
		}
		if d := claimPolicies.judge(claimCase{Observation: o, ID: id}); d.Allowed {
			p.add(DeleteClaim{ID: id, Name: c.Name, UID: c.UID})
		}
	}
}

func sortedIDs[T any](m map[epoch.ReplicaID]T) []epoch.ReplicaID {
	ids := make([]epoch.ReplicaID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// tellHidden says that a lost node would not be noticed.
func (o *Observation) tellHidden() string {
	if o.HomesHidden == "" {
		return ""
	}
	return "; whether its node is lost cannot be told, and it is not replaced by itself: " + o.HomesHidden
}
