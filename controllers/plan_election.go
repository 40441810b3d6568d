package controllers

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	// firstLeaderWait is how long a new partition waits for the rest of its replicas
	// before it gets a leader.
	firstLeaderWait = 5 * time.Second
	// handOverWait is how long a leader whose pod is being deleted may take to hand
	// over by itself, which it does in milliseconds.
	handOverWait = 2 * time.Second
	// electionRecheck follows an election that did not come about.
	electionRecheck = time.Second
)

// planElection asks for an election when one is due. Safety does not hang on any of
// its judgements: see DESIGN.md, rule 1.
func planElection(o *Observation, p *Plan) {
	r := o.Record
	if r.Recovery != nil {
		planRecovery(o, p)
		return
	}
	if r.Leader == epoch.NoReplica {
		planVacancy(o, p)
		return
	}
	leader, ok := r.Replica(r.Leader)
	if !ok {
		return
	}
	pod := o.Pods[leader.ID]
	if why, ended := processEnded(leader, pod); ended {
		elect(o, p, epoch.ReasonProcessDied, leader.ID, why)
		return
	}
	if pod != nil && pod.DeletionTimestamp != nil {
		if seen := o.Deleting[pod.UID]; seen >= handOverWait {
			elect(o, p, epoch.ReasonPodTerminating, leader.ID, "its pod is being deleted and it has not handed over")
			return
		}
		p.recheck(handOverWait - o.Deleting[pod.UID])
	}
	if leaderAsks(r) && len(o.electable(leader.ID)) > 0 {
		elect(o, p, epoch.ReasonLeaderStuck, leader.ID, "it gets too few fetches to commit anything, and asks for another leader")
		return
	}
	if o.leaseExpired() {
		elect(o, p, epoch.ReasonLeaseExpired, leader.ID, o.leaderLost())
		return
	}
	// A leader that is well is not waited for: should it miss a heartbeat, expiry tells.
	if o.Silence >= r.Heartbeat.Duration/2 {
		p.recheck(o.leaseDuration() - o.Silence)
	}
}

// leaderAsks reports that the leader's own session asks to be replaced, since too few
// members of the ISR fetch from it. If they are down there is nobody to elect; if it is
// the leader that is cut off from them, another member may do better.
func leaderAsks(r epoch.Record) bool {
	return r.Switchover.Isolated() && r.Switchover.Session == r.LeaderSession
}

// planVacancy fills a leadership that nobody holds. Mostly there is nothing to do:
// a replica that registers while nobody leads elects itself in the same change.
func planVacancy(o *Observation, p *Plan) {
	r := o.Record
	registered := 0
	for _, q := range r.Replicas {
		if q.Session != epoch.NoSession {
			registered++
		}
	}
	switch {
	case registered == 0:
	case r.LeaderEpoch > 0:
		elect(o, p, epoch.ReasonProcessDied, epoch.NoReplica, "nobody leads")
	case registered == len(r.Replicas) || o.FirstRegistered >= firstLeaderWait:
		elect(o, p, epoch.ReasonFirstLeader, epoch.NoReplica, "the partition is new")
	default:
		p.recheck(firstLeaderWait - o.FirstRegistered)
	}
}

// elect plans an election, or the wait for a candidate.
func elect(o *Observation, p *Plan, reason epoch.ElectionReason, except epoch.ReplicaID, why string) {
	live := o.electable(except)
	if len(live) == 0 && lastKnownMayLead(o) {
		reason, live = epoch.ReasonLastKnownLeader, o.runningIDs()
	}
	named := epoch.NoReplica
	if q, _ := o.uncleanRequest(); len(live) == 0 && o.uncleanAsked() {
		reason, live, named = epoch.ReasonUnclean, q.Live, q.Replica
	}
	if len(live) == 0 {
		p.recheck(recordRecheck)
		return
	}
	message := why
	if except != epoch.NoReplica {
		message = fmt.Sprintf("%s led: %s", o.Partition.ReplicaName(int32(except)), why)
	}
	// Should the record refuse or have moved on, it is looked at again.
	p.recheck(electionRecheck)
	p.add(Elect{Reason: reason, Message: message, Judged: leadershipOf(o.Record), Live: live, Replica: named})
}

// lastKnownMayLead tells whether the user allowed an unclean election of the last
// leader, and it could be held (KIP-966).
func lastKnownMayLead(o *Observation) bool {
	r := o.Record
	return o.Partition.Spec.LeaderElection.Unclean == v1alpha1.UncleanLastKnownLeader &&
		r.Leader == epoch.NoReplica && len(r.ISR) == 0 && running(o.Pods[r.LastLeader.ID])
}

func (o *Observation) runningIDs() []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	for _, p := range o.Record.Replicas {
		if running(o.Pods[p.ID]) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
