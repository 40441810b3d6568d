package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// verdict is one condition without its bookkeeping.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func setConditions(o *Observation, s *v1alpha1.ReplicatedPartitionStatus, p Progress) {
	available := judgeAvailable(o)
	setCondition(o.Partition, s, v1alpha1.ConditionReady, judgeReady(o, available))
	setCondition(o.Partition, s, v1alpha1.ConditionAvailable, available)
	setCondition(o.Partition, s, v1alpha1.ConditionInSync, judgeInSync(o, s.Replicas))
	setProgress(o.Partition, s, p)
}

func setCondition(rp *v1alpha1.ReplicatedPartition, s *v1alpha1.ReplicatedPartitionStatus, kind string, v verdict) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: truncate(v.message, 32768), ObservedGeneration: rp.Generation,
	})
}

// setProgress sets Progressing, and that one of kstatus's two conditions which it amounts to.
func setProgress(rp *v1alpha1.ReplicatedPartition, s *v1alpha1.ReplicatedPartitionStatus, p Progress) {
	setCondition(rp, s, v1alpha1.ConditionProgressing, verdict{p.Status, p.Reason, p.Message})
	is := ""
	switch {
	case p.Status == metav1.ConditionTrue || p.Passing:
		is = v1alpha1.ConditionReconciling
	case !slices.Contains(wantedStandstill, p.Reason):
		is = v1alpha1.ConditionStalled
	}
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if kind == is {
			setCondition(rp, s, kind, verdict{metav1.ConditionTrue, p.Reason, p.Message})
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
}

// judgeReady is availability, and that nothing needs a person.
func judgeReady(o *Observation, available verdict) verdict {
	if available.status == metav1.ConditionTrue && len(o.Foreign) > 0 {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNameConflict, "an object of a name that is needed is not ours; see Progressing"}
	}
	if p, ok := progressOf(o.Record.Progress, o.Record.Leader); ok && p.Damaged && available.status == metav1.ConditionTrue {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonLogDamaged, fmt.Sprintf("the log of %s, which leads, is damaged on its disk: what is damaged is refused to readers with CORRUPT_MESSAGE, all else goes on; it hands over and is rebuilt as soon as %d other replicas are in sync: bring them back, or add replicas",
			o.Partition.ReplicaName(int32(o.Record.Leader)), o.Record.MinISR)}
	}
	if available.reason == v1alpha1.ReasonStarting {
		available.status = metav1.ConditionUnknown
	}
	return available
}

func judgeAvailable(o *Observation) verdict {
	no := func(reason, format string, args ...any) verdict {
		return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	r := o.Record
	switch o.RecordState {
	case RecordPresent:
	case RecordMissing:
		if o.TopicHolder != "" {
			return no(v1alpha1.ReasonTopicTaken, "%s", o.tellTopicTaken())
		}
		if why := o.quarantine(); why != "" {
			return no(v1alpha1.ReasonQuarantined, "%s", why)
		}
		if o.Partition.Status.TopicID == "" {
			return no(v1alpha1.ReasonStarting, "the partition record is being made")
		}
		return no(v1alpha1.ReasonRecordMissing, "the Lease %s with the partition record is gone", o.Partition.LeaseName())
	case RecordForeign:
		return no(v1alpha1.ReasonRecordForeign, "%s", o.RecordProblem)
	default:
		return no(v1alpha1.ReasonRecordInvalid, "%s", o.RecordProblem)
	}
	leader := o.Partition.ReplicaName(int32(r.Leader))
	live := len(o.liveMembers())
	switch {
	case r.Recovery != nil:
		if o.recoveryAsked() {
			return no(v1alpha1.ReasonRecovering, "%s", o.tellRecovery())
		}
		return no(v1alpha1.ReasonRecoveryRequired, "%s", o.tellRecovery())
	case o.Partition.Spec.Suspend && len(o.Pods) == 0:
		return no(v1alpha1.ReasonSuspended, "%s", tellSuspended(r))
	case r.Leader == epoch.NoReplica && r.LeaderEpoch == 0:
		return no(v1alpha1.ReasonStarting, "no replica has registered yet")
	case r.Leader == epoch.NoReplica:
		return no(v1alpha1.ReasonNoLeader, "no live member of the ISR %v can lead%s", r.ISR, o.tellUnclean())
	case o.leaderLost() != "":
		return no(v1alpha1.ReasonLeaderLost, "%s led: %s%s", leader, o.leaderLost(), o.tellUnclean())
	case !o.tookOver():
		return no(v1alpha1.ReasonTakingOver, "%s was elected in epoch %d and has not reported yet", leader, r.LeaderEpoch)
	case o.full(r.Leader):
		return no(v1alpha1.ReasonVolumeFull, "%s leads and refuses writes, since the volumes of %s are full; reads go on: raise spec.storage.size, or let retention or DeleteRecords make room", leader, o.tellFull())
	case live < r.MinISR:
		return no(v1alpha1.ReasonBelowMinInSyncReplicas, "%d live in-sync replicas, %d are needed for acks=all%s", live, r.MinISR, o.tellFollowersFull())
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonServing, fmt.Sprintf("%s leads in epoch %d with %d live in-sync replicas of %d", leader, r.LeaderEpoch, live, len(r.Replicas))}
}

// full reports that a replica refuses appends for want of space.
func (o *Observation) full(id epoch.ReplicaID) bool {
	p, ok := progressOf(o.Record.Progress, id)
	return ok && p.Full
}

// tellFull names the replicas whose volumes are full, none if there are none.
func (o *Observation) tellFull() string {
	var names []string
	for _, q := range o.Record.Replicas {
		if o.full(q.ID) {
			names = append(names, o.Partition.ReplicaName(int32(q.ID)))
		}
	}
	return strings.Join(names, ", ")
}

func (o *Observation) tellFollowersFull() string {
	if names := o.tellFull(); names != "" {
		return "; the volumes of " + names + " are full: raise spec.storage.size"
	}
	return ""
}

func judgeInSync(o *Observation, replicas []v1alpha1.ReplicaStatus) verdict {
	if o.RecordState != RecordPresent {
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonStarting, "the partition record is not there"}
	}
	if o.Record.LeaderEpoch == 0 {
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonStarting, tellReplicas(o, replicas)}
	}
	for _, id := range target(o.Partition) {
		in := slices.ContainsFunc(replicas, func(s v1alpha1.ReplicaStatus) bool { return s.ID == int32(id) && s.InSync })
		if !in {
			return verdict{metav1.ConditionFalse, v1alpha1.ReasonOutOfSync, tellReplicas(o, replicas)}
		}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonAllInSync, tellReplicas(o, replicas)}
}

func isAvailable(s v1alpha1.ReplicatedPartitionStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable)
}
