package controllers

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A replica whose volume is lost with its node is made anew on another one: the pod that
// can never run goes, then the claim of the lost volume, and the next pod gets a new volume,
// which the leader fills. The copy that is given up must not be needed: the replica is out of
// the ISR, and what remains has all that was committed, on as many live replicas as a write
// needs. An old process that runs on behind a cut network is of an older session, and no
// second pod ever gets its volume.

// planReplacements deletes the claim, and where nobody else does the pod, of each replica
// that is lost with its node.
func planReplacements(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		why := o.lost(q.ID)
		if why == "" {
			if h, ok := o.Homes[q.ID]; ok && h.Unreachable {
				p.recheck(o.replacementWait() - h.Silence)
			}
			continue
		}
		name := o.Partition.ReplicaName(int32(q.ID))
		if d := lostPolicies.judge(claimCase{Observation: o, ID: q.ID}); !d.Allowed {
			p.note(metav1.ConditionTrue, d.Reason, "%s is lost (%s) and is not made anew yet: %s", name, why, d.Message)
			continue
		}
		p.note(metav1.ConditionTrue, v1alpha1.ReasonReplacing, "%s is lost (%s) and is made anew on another node", name, why)
		if pod := o.Pods[q.ID]; pod != nil && pod.Spec.NodeName == o.Homes[q.ID].Node {
			// The kubelet that would end it is gone.
			p.add(DeletePod{ID: q.ID, Name: pod.Name, UID: pod.UID, Cause: PodLost, Message: why})
		}
		if c := o.Claims[q.ID]; c.DeletionTimestamp == nil {
			p.add(DeleteClaim{ID: q.ID, Name: c.Name, UID: c.UID, Lost: why})
		}
	}
}

// lost says why a replica's volume will not be back, "" if it may be.
func (o *Observation) lost(id epoch.ReplicaID) string {
	h, ok := o.Homes[id]
	switch {
	case !ok || o.Claims[id] == nil:
		return ""
	case h.Gone != "":
		return h.Gone
	case h.Unreachable && o.replacementWait() > 0 && h.Silence >= o.replacementWait():
		return fmt.Sprintf("node %s has been unreachable for %s", h.Node, o.replacementWait())
	}
	return ""
}

// replacementWait is for how long a node may be unreachable, 0 for as long as it likes.
func (o *Observation) replacementWait() time.Duration {
	if s := o.Partition.Spec.Replacement.AfterSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// lostPolicies is what giving up a lost copy has to pass.
var lostPolicies = chain[claimCase]{
	{"NoRecovery", v1alpha1.ReasonRecoveryRequired, func(c claimCase) string { return frozen(c.Observation) }},
	{"Lost", v1alpha1.ReasonWaitingForReplicas, func(c claimCase) string {
		if c.lost(c.ID) == "" {
			return "its node may come back"
		}
		return ""
	}},
	{"NotInSync", v1alpha1.ReasonWaitingForReplicas, func(c claimCase) string {
		if c.Record.InSync(c.ID) {
			return fmt.Sprintf("it is in the ISR %v, and its copy may be needed; if it is lost for good, add replicas or lower spec.minInSyncReplicas, so that the leader can take it out", c.Record.ISR)
		}
		return ""
	}},
	{"OthersInSync", v1alpha1.ReasonWaitingForReplicas, func(c claimCase) string {
		if live := c.liveMembers(); len(live) < max(c.Record.MinISR, 1) || slices.Contains(live, c.ID) {
			return fmt.Sprintf("%d replicas are live and in sync, and %d are needed", len(live), max(c.Record.MinISR, 1))
		}
		return ""
	}},
}
