package controllers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// preferredWait is for how long the preferred leader must have been fit to lead before it
// is given the leadership back: one that comes and goes would cost an election each time.
const preferredWait = 10 * time.Second

// The reasons of switchovers, as the record has them.
const (
	switchoverPromote   = "Promote"
	switchoverPreferred = "PreferredLeader"
)

// planSwitchover brings the leadership where the user wants it, while the present leader
// is well: it hands over by itself, once the other has all that it has.
func planSwitchover(o *Observation, p *Plan) {
	if o.Record.Recovery != nil || o.Record.Leader == epoch.NoReplica || o.leaderLost() != "" {
		return
	}
	to, reason := o.wantedLeader(p)
	if s := o.switchover(); s != nil && (to == epoch.NoReplica || s.To == nil || *s.To != to) {
		p.add(Withdraw{Judged: leadershipOf(o.Record)})
		return
	}
	if to == epoch.NoReplica {
		return
	}
	name := o.Partition.ReplicaName(int32(to))
	_, err := epoch.RequestSwitchover(o.Record, epoch.SwitchoverRequest{To: to, Reason: reason})
	var refusal *epoch.Refusal
	switch {
	case errors.As(err, &refusal):
		// Of the preferred leader that is no news: it leads as soon as it can.
		if reason == switchoverPromote {
			p.note(metav1.ConditionFalse, v1alpha1.ReasonSwitchoverRefused, "%s cannot lead now: %s; the annotation %s is tried again when that changes, and does nothing once it is removed",
				name, refusal.Message, v1alpha1.AnnotationPromote)
		}
		if o.switchover() != nil {
			p.add(Withdraw{Judged: leadershipOf(o.Record)})
		}
		return
	case err == nil:
		p.add(Switchover{To: to, Reason: reason, Judged: leadershipOf(o.Record)})
	}
	p.note(metav1.ConditionTrue, v1alpha1.ReasonSwitchingOver, "%s hands over to %s", o.Partition.ReplicaName(int32(o.Record.Leader)), name)
}

// switchover is what the leader's present session was asked for by an operator, or nil.
func (o *Observation) switchover() *epoch.Switchover {
	s := o.Record.Switchover
	if s == nil || s.Session != o.Record.LeaderSession || s.Reason != switchoverPromote && s.Reason != switchoverPreferred {
		return nil
	}
	return s
}

// wantedLeader is who is to lead in place of the present leader, NoReplica if that is to
// stay. A request that cannot be met for good is noted.
func (o *Observation) wantedLeader(p *Plan) (to epoch.ReplicaID, reason string) {
	preferred := o.preferredLeader()
	q, asked, _ := o.Partition.PromoteRequest()
	if asked && q.LeaderEpoch == int32(o.Record.LeaderEpoch) && epoch.ReplicaID(q.Replica) != o.Record.Leader {
		if preferred == epoch.NoReplica || preferred == epoch.ReplicaID(q.Replica) {
			return epoch.ReplicaID(q.Replica), switchoverPromote
		}
		p.note(metav1.ConditionFalse, v1alpha1.ReasonSwitchoverRefused, "the annotation %s asks for replica %d, and spec.leaderElection.preferredLeader is %d: change that instead",
			v1alpha1.AnnotationPromote, q.Replica, preferred)
	}
	if preferred == epoch.NoReplica || preferred == o.Record.Leader {
		return epoch.NoReplica, ""
	}
	if s := o.switchover(); s == nil && o.PreferredFit < preferredWait {
		if o.preferredFit() {
			p.recheck(preferredWait - o.PreferredFit)
		}
		return epoch.NoReplica, ""
	}
	if !o.preferredFit() {
		return epoch.NoReplica, ""
	}
	return preferred, switchoverPreferred
}

// preferredLeader is the replica that the spec wants to lead, NoReplica for none.
func (o *Observation) preferredLeader() epoch.ReplicaID {
	if id := o.Partition.Spec.LeaderElection.PreferredLeader; id != nil {
		return epoch.ReplicaID(*id)
	}
	return epoch.NoReplica
}

// preferredFit reports that the preferred leader could lead as well as any: it is live, in
// sync, ready, in no trouble, and about to stay.
func (o *Observation) preferredFit() bool {
	id := o.preferredLeader()
	q, ok := o.Record.Replica(id)
	if !ok || q.Removing || q.Stopping || !slices.Contains(o.liveMembers(), id) {
		return false
	}
	pod := o.Pods[id]
	if !running(pod) || !podReady(pod) || o.outdated(id) {
		return false
	}
	r, _ := progressOf(o.Record.Progress, id)
	return r.Trouble == epoch.Trouble{}
}

// tellSwitchover names both sides, for a person.
func tellSwitchover(rp *v1alpha1.ReplicatedPartition, from, to epoch.ReplicaID) string {
	return fmt.Sprintf("%s was asked to hand over to %s", rp.ReplicaName(int32(from)), rp.ReplicaName(int32(to)))
}
