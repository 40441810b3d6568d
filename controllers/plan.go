package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Action is one step of a plan. The closed list is in this file.
type Action interface{ action() }

type (
	// CreateRecord makes the record of a new partition.
	CreateRecord struct{}

	// Adopt makes the record of a new partition, frozen, for the replicas to report what
	// they know of an earlier one's log, which the user wants to go on with.
	Adopt struct{ TopicID epoch.UUID }

	// RemakeRecord makes a lost record anew, frozen, on the user's request.
	RemakeRecord struct{ PartitionEpoch int64 }

	// AskReports begins a round of reports of what the replicas know, on the user's
	// request for a recovery at that partition epoch.
	AskReports struct{ PartitionEpoch epoch.PartitionEpoch }

	// Recover ends a recovery by the reports of the round that this process began.
	Recover struct{ PartitionEpoch epoch.PartitionEpoch }

	// Elect asks for a new leader, if the record still is as it was judged.
	Elect struct {
		Reason epoch.ElectionReason
		// Message says for a person what was seen.
		Message string
		// Judged is the leadership that this election is to end; no other.
		Judged Leadership
		Live   []epoch.ReplicaID
		// Replica is whom the user named for an unclean election, or NoReplica.
		Replica epoch.ReplicaID
	}

	// Switchover asks the leader that was judged to hand over.
	Switchover struct {
		To     epoch.ReplicaID
		Reason string
		Judged Leadership
	}
	// Withdraw takes that back.
	Withdraw struct{ Judged Leadership }

	// Assign makes one step towards the wanted assignment.
	Assign struct {
		Target []epoch.ReplicaID
		MinISR int
		Live   []epoch.ReplicaID
		// At is the record's partition epoch that this step was judged on. On a newer
		// record the same wish may be a further step, such as to drop a replica whose
		// volume has not been marked as released yet.
		At epoch.PartitionEpoch
	}

	// Apply brings one child in line; Live is the object as cached, or nil.
	Apply struct {
		Desired client.Object
		Live    client.Object
	}

	// Remove deletes a child that is not desired any more and holds no data.
	Remove struct{ Object client.Object }

	// CreatePod makes the pod of a replica.
	CreatePod struct{ ID epoch.ReplicaID }

	// DeletePod deletes one pod, by UID, if the policy chain allows it on the record
	// as it then is.
	DeletePod struct {
		ID      epoch.ReplicaID
		Name    string
		UID     types.UID
		Cause   PodDeletion
		Message string
	}

	// DeleteClaim deletes the volume claim of a removed or lost replica, by UID, if the
	// policy chain allows it.
	DeleteClaim struct {
		ID   epoch.ReplicaID
		Name string
		UID  types.UID
		// Lost says why the volume will not be back; "" for a removed replica.
		Lost string
	}
)

func (CreateRecord) action() {}
func (Adopt) action()        {}
func (RemakeRecord) action() {}
func (AskReports) action()   {}
func (Recover) action()      {}
func (Elect) action()        {}
func (Switchover) action()   {}
func (Withdraw) action()     {}
func (Assign) action()       {}
func (Apply) action()        {}
func (Remove) action()       {}
func (CreatePod) action()    {}
func (DeletePod) action()    {}
func (DeleteClaim) action()  {}

// Leadership identifies what an election ends: a leader's session in its epoch, and
// the last heartbeat seen of it.
type Leadership struct {
	Leader  epoch.ReplicaID
	Session epoch.Session
	Epoch   epoch.LeaderEpoch
	Renewed time.Time
	// At is the record's partition epoch. Only an unclean election needs it unchanged:
	// it must not overtake a member of the ISR that comes back.
	At epoch.PartitionEpoch
}

func leadershipOf(r epoch.Record) Leadership {
	return Leadership{Leader: r.Leader, Session: r.LeaderSession, Epoch: r.LeaderEpoch, Renewed: r.Heartbeat.Renewed, At: r.PartitionEpoch}
}

// PodDeletion says why a pod is deleted: a closed list, which the policies and the
// metrics go by.
type PodDeletion string

// The causes of pod deletions.
const (
	PodEnded    PodDeletion = "Ended"
	PodOutdated PodDeletion = "Outdated"
	PodRemoved  PodDeletion = "Removed"
	// PodLost: its node is gone, and with it who would end it.
	PodLost PodDeletion = "Lost"
	// PodSuspended: spec.suspend is true.
	PodSuspended PodDeletion = "Suspended"
)

// Progress is what the Progressing condition will say.
type Progress struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Passing says that this is a failure which is tried again at once.
	Passing bool
}

// Plan is what is to be done now, in this order.
type Plan struct {
	Actions []Action
	// Progress becomes the Progressing condition.
	Progress Progress
	// Recheck is when to look again without an event; 0 for never.
	Recheck time.Duration
}

func (p *Plan) add(a ...Action) { p.Actions = append(p.Actions, a...) }

// recheck keeps the earliest time.
func (p *Plan) recheck(after time.Duration) {
	if after > 0 && (p.Recheck == 0 || after < p.Recheck) {
		p.Recheck = after
	}
}

// note keeps the first thing that stands in the way: planning goes from what
// matters most to what matters least.
func (p *Plan) note(status metav1.ConditionStatus, reason, format string, args ...any) {
	if p.Progress.Reason == "" {
		p.Progress = Progress{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
}

const (
	// recordRecheck is how often a record that cannot be used is looked at again.
	recordRecheck = 30 * time.Second
	// foreignRecheck is how often a foreign object is looked at again: caches hold
	// only our own objects, so its going away is no event.
	foreignRecheck = 15 * time.Second
)

// MakePlan decides what to do about what was observed. It is pure.
func MakePlan(o *Observation) Plan {
	var p Plan
	if o.Partition.DeletionTimestamp != nil {
		// The garbage collector does the rest, also without this operator.
		p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForReplicas, "the partition is being deleted")
		return p
	}
	if o.paused() && o.RecordState != RecordPresent {
		notePaused(&p)
		return p
	}
	if !planRecord(o, &p) {
		return p
	}
	planElection(o, &p)
	planRequests(o, &p)
	planSwitchover(o, &p)
	if o.paused() {
		notePaused(&p)
		return p
	}
	planForeign(o, &p)
	planChildren(o, &p)
	if o.Partition.Spec.Suspend {
		planSuspension(o, &p)
		return p
	}
	planAssignment(o, &p)
	planReplacements(o, &p)
	planPods(o, &p)
	planClaims(o, &p)
	planVolumes(o, &p)
	planCopying(o, &p)
	planListeners(o, &p)
	p.note(metav1.ConditionFalse, v1alpha1.ReasonComplete, "everything is as the spec says")
	return p
}

// planRecord reports whether there is a record to go on from.
func planRecord(o *Observation, p *Plan) bool {
	made := o.recordShown()
	switch o.RecordState {
	case RecordPresent:
		if !made {
			// The status has to show the record before the first pod is made.
			p.recheck(time.Millisecond)
			p.note(metav1.ConditionTrue, v1alpha1.ReasonStarting, "the partition record was made")
			return false
		}
		return true
	case RecordMissing:
		if made {
			planRemake(o, p)
			return false
		}
		planFirstRecord(o, p)
		return false
	case RecordForeign:
		p.recheck(foreignRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonRecordForeign, "%s", o.RecordProblem)
	default:
		p.recheck(recordRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonRecordInvalid, "%s", o.RecordProblem)
	}
	return false
}

// recordShown reports that the status shows the record, which it does before anything else
// is made.
func (o *Observation) recordShown() bool { return o.Partition.Status.TopicID != "" }

func planForeign(o *Observation, p *Plan) {
	if len(o.Foreign) > 0 {
		p.recheck(foreignRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonNameConflict,
			"not ours and left alone: %s; delete them, or give the ReplicatedPartition another name", strings.Join(o.Foreign, ", "))
	}
}

// planChildren compares what exists with what is desired, in the order in which a
// new partition needs it.
func planChildren(o *Observation, p *Plan) {
	for i, want := range o.Desired.Children {
		if o.isForeign(want) {
			continue
		}
		live := o.Children[i]
		if live == nil || !applied(want, live) {
			p.add(Apply{Desired: want, Live: live})
		}
	}
	for _, obj := range o.Surplus {
		p.add(Remove{Object: obj})
	}
}

func (o *Observation) isForeign(obj client.Object) bool {
	return slices.Contains(o.Foreign, describe(obj)) || slices.Contains(o.Taken, describe(obj))
}
