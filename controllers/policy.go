package controllers

import (
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Decision is what a policy chain says about a destructive step.
type Decision struct {
	Allowed bool
	// Reason is a condition reason, Message says for a person what to wait for.
	Reason, Message string
}

// policy is one check; it returns a message if the step must not be taken.
type policy[T any] struct {
	name   string
	reason string
	check  func(T) string
}

// chain is a list of policies. All have to agree; the first that does not is named.
type chain[T any] []policy[T]

func (c chain[T]) judge(in T) Decision {
	for _, p := range c {
		if msg := p.check(in); msg != "" {
			return Decision{Reason: p.reason, Message: msg}
		}
	}
	return Decision{Allowed: true}
}

// podCase asks whether a pod may be deleted for that cause.
type podCase struct {
	*Observation
	ID    epoch.ReplicaID
	Cause PodDeletion
}

// claimCase asks whether the volume claim of a replica may be deleted.
type claimCase struct {
	*Observation
	ID epoch.ReplicaID
}

// podPolicies is what a pod's deletion has to pass. Read it as the specification.
var podPolicies = chain[podCase]{
	{"NoRecovery", v1alpha1.ReasonRecoveryRequired, func(c podCase) string { return frozen(c.Observation) }},
	{"EndedMeansEnded", v1alpha1.ReasonWaitingForReplicas, endedMeansEnded},
	{"LostMeansLost", v1alpha1.ReasonWaitingForReplicas, lostMeansLost},
	{"RemovedFromRecord", v1alpha1.ReasonWaitingForReplicas, removedFromRecord},
	{"NotAmidReassignment", v1alpha1.ReasonReassigning, notAmidReassignment},
	{"NewPodsWork", v1alpha1.ReasonRollingOut, newPodsWork},
	{"NotStarting", v1alpha1.ReasonWaitingForReplicas, notStarting},
	{"OthersInSync", v1alpha1.ReasonWaitingForReplicas, othersInSync},
	{"LeaderLast", v1alpha1.ReasonRollingOut, leaderLast},
}

// claimPolicies is what a volume claim's deletion has to pass.
var claimPolicies = chain[claimCase]{
	{"NoRecovery", v1alpha1.ReasonRecoveryRequired, func(c claimCase) string { return frozen(c.Observation) }},
	{"AskedFor", v1alpha1.ReasonComplete, func(c claimCase) string {
		if c.Partition.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != v1alpha1.DeleteVolume {
			return "volumes are retained"
		}
		return ""
	}},
	{"NotAssigned", v1alpha1.ReasonWaitingForReplicas, func(c claimCase) string {
		if _, ok := c.Record.Replica(c.ID); ok || slices.Contains(target(c.Partition), c.ID) {
			return "the replica is assigned"
		}
		return ""
	}},
	{"Released", v1alpha1.ReasonComplete, func(c claimCase) string {
		// The mark is set while the record still lists the replica as leaving. Without
		// it the volume's story is unknown, and it is kept (DESIGN.md, rule 7).
		if claim := c.Claims[c.ID]; claim == nil || claim.Annotations[v1alpha1.AnnotationReleased] != c.Record.TopicID.String() {
			return "the volume was not released by a scale-down of this partition"
		}
		return ""
	}},
	{"PodGone", v1alpha1.ReasonWaitingForReplicas, func(c claimCase) string {
		if c.Pods[c.ID] != nil {
			return "the replica's pod is still there"
		}
		return ""
	}},
}

// frozen is rule 7: while epochs are known to have gone back, nothing that still
// knows the newer ones may be lost, not even a pod that has ended.
func frozen(o *Observation) string {
	if o.RecordState != RecordPresent {
		return fmt.Sprintf("the partition record is %s", o.RecordState)
	}
	if o.Record.Recovery != nil {
		return "the partition record is frozen until it is recovered"
	}
	return ""
}

func endedMeansEnded(c podCase) string {
	if c.Cause == PodEnded && !podTerminal(c.Pods[c.ID]) {
		return "the pod has not ended"
	}
	return ""
}

func lostMeansLost(c podCase) string {
	if c.Cause != PodLost {
		return ""
	}
	return lostPolicies.judge(claimCase{Observation: c.Observation, ID: c.ID}).Message
}

func removedFromRecord(c podCase) string {
	if _, ok := c.Record.Replica(c.ID); c.Cause == PodRemoved && ok {
		return "the record still lists the replica"
	}
	return ""
}

// The rest is about rolls only.

func notAmidReassignment(c podCase) string {
	if c.Cause != PodOutdated || c.broken(c.ID) {
		return ""
	}
	for _, p := range c.Record.Replicas {
		if p.Adding || p.Removing {
			return fmt.Sprintf("replica %d is being added or removed", p.ID)
		}
	}
	return ""
}

// newPodsWork stops a roll at the first pod of the new kind that does not come up.
func newPodsWork(c podCase) string {
	if c.Cause != PodOutdated {
		return ""
	}
	for _, p := range c.Record.Replicas {
		pod := c.Pods[p.ID]
		switch {
		case p.ID == c.ID:
		case pod == nil || pod.DeletionTimestamp != nil:
			if !c.broken(c.ID) {
				return fmt.Sprintf("the pod of %s is on its way", c.Partition.ReplicaName(int32(p.ID)))
			}
		case !c.outdated(p.ID) && !podReady(pod):
			return fmt.Sprintf("%s is of the present spec and is not ready%s", pod.Name, because(podTrouble(pod)))
		}
	}
	return ""
}

// notStarting leaves a replica alone that recovers its log: a restart would only
// begin that again.
func notStarting(c podCase) string {
	if c.Cause != PodOutdated || podReady(c.Pods[c.ID]) || c.broken(c.ID) {
		return ""
	}
	if s := replicaContainer(c.Pods[c.ID]); s == nil || s.Started == nil || !*s.Started {
		return "it is starting"
	}
	return ""
}

// othersInSync keeps a roll from taking a replica away while another is missing.
func othersInSync(c podCase) string {
	if c.Cause != PodOutdated || c.broken(c.ID) {
		return ""
	}
	live := c.liveMembers()
	for _, p := range c.Record.Replicas {
		if p.ID != c.ID && !slices.Contains(live, p.ID) {
			return fmt.Sprintf("%s is not in sync", c.Partition.ReplicaName(int32(p.ID)))
		}
	}
	return ""
}

func leaderLast(c podCase) string {
	if c.Cause != PodOutdated || c.Record.Leader != c.ID {
		return ""
	}
	for _, p := range c.Record.Replicas {
		if pod := c.Pods[p.ID]; p.ID != c.ID && pod != nil && c.outdated(p.ID) {
			return fmt.Sprintf("it leads, and %s is to be replaced first", pod.Name)
		}
	}
	return ""
}

// broken reports whether a pod runs nothing, and cannot: deleting it costs nothing.
func (o *Observation) broken(id epoch.ReplicaID) bool {
	pod := o.Pods[id]
	return pod != nil && !running(pod) && podTrouble(pod).Reason != ""
}
