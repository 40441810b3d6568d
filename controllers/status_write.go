package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// numbersEvery is how often a status is written for nothing but moved offsets.
const numbersEvery = 5 * time.Second

// pace remembers when each partition's status was last written.
type pace struct {
	now func() time.Time

	mu    sync.Mutex
	wrote map[types.UID]time.Time
}

func newPace() *pace { return &pace{now: time.Now, wrote: map[types.UID]time.Time{}} }

// due tells how long to wait before offsets may be written; 0 for now.
func (p *pace) due(partition types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.wrote[partition]
	if !ok {
		return 0
	}
	return max(0, numbersEvery-p.now().Sub(at))
}

func (p *pace) written(partition types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote[partition] = p.now()
}

func (p *pace) forget(partition types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wrote, partition)
}

// writeStatus writes the status if it differs: a change of state at once, moved
// offsets not more often than numbersEvery. It returns when to look again.
func (r *Reconciler) writeStatus(ctx context.Context, rp *v1alpha1.ReplicatedPartition, next v1alpha1.ReplicatedPartitionStatus) (time.Duration, error) {
	old := rp.Status
	if equality.Semantic.DeepEqual(old, next) {
		return 0, nil
	}
	if equality.Semantic.DeepEqual(withoutNumbers(old), withoutNumbers(next)) {
		if wait := r.pace.due(rp.UID); wait > 0 {
			return wait, nil
		}
	}
	changed := rp.DeepCopy()
	changed.Status = next
	err := r.Client.Status().Update(ctx, changed)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write the status: %w", err)
	}
	statusWrites.Inc()
	r.pace.written(rp.UID)
	r.tellTransitions(rp, old, next)
	return 0, nil
}

// withoutNumbers is the status without what moves with every record.
func withoutNumbers(s v1alpha1.ReplicatedPartitionStatus) v1alpha1.ReplicatedPartitionStatus {
	s = *s.DeepCopy()
	s.HighWatermark, s.LogStartOffset, s.LogEndOffset = nil, nil, nil
	for i := range s.Replicas {
		q := &s.Replicas[i]
		q.HighWatermark, q.LogEndOffset, q.Lag, q.LeaderEpoch, q.BytesBehind = nil, nil, nil, nil, nil
	}
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case v1alpha1.ConditionInSync:
			c.Message = ""
		case v1alpha1.ConditionProgressing, v1alpha1.ConditionReconciling:
			c.Message = withoutCopying(c.Message)
		}
	}
	return s
}

// tellTransitions sends events for what the status now shows anew.
func (r *Reconciler) tellTransitions(rp *v1alpha1.ReplicatedPartition, old, next v1alpha1.ReplicatedPartitionStatus) {
	if old.TopicID != "" && !slices.Equal(old.ISR, next.ISR) {
		r.transition(rp, next.PartitionEpoch, normal, v1alpha1.EventISRChanged, "in-sync replicas changed from %v to %v in partition epoch %d", old.ISR, next.ISR, next.PartitionEpoch)
	}
	if old.TopicID != "" && (!slices.Equal(ids(old), ids(next)) || old.MinInSyncReplicas != next.MinInSyncReplicas) {
		r.transition(rp, next.PartitionEpoch, normal, v1alpha1.EventAssignmentChanged, "replicas changed from %v to %v, min ISR from %d to %d", ids(old), ids(next), old.MinInSyncReplicas, next.MinInSyncReplicas)
	}
	if old.LeaderEpoch != next.LeaderEpoch && next.Leader != "" {
		r.transition(rp, next.PartitionEpoch, normal, v1alpha1.EventLeaderElected, "%s leads in epoch %d (%s)", next.Leader, next.LeaderEpoch, next.LastElection)
	}
	if u := next.UncleanElection; u != nil && u.LostRecords != nil && (old.UncleanElection == nil || old.UncleanElection.LostRecords == nil || old.UncleanElection.LeaderEpoch != u.LeaderEpoch) {
		r.transition(rp, next.PartitionEpoch, warning, v1alpha1.EventUncleanElection, "the unclean election of %s in epoch %d lost %d committed offsets: its log ended at %d, the high watermark was %d", u.Leader, u.LeaderEpoch, *u.LostRecords, *u.LogEndOffset, *u.HighWatermark)
	}
	if old.TopicID == "" && next.TopicID != "" && rp.EffectiveReplicas() == 1 {
		r.transition(rp, next.PartitionEpoch, warning, v1alpha1.EventSingleReplica, "one replica: the partition is away while its node is drained or its pod is replaced")
	}
	r.tellReadiness(rp, old, next)
	r.tellStandstill(rp, old, next)
}

// tellStandstill sends an event when something comes up that keeps the operator from going
// on, once for as long as it is the same.
func (r *Reconciler) tellStandstill(rp *v1alpha1.ReplicatedPartition, old, next v1alpha1.ReplicatedPartitionStatus) {
	was, is := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionProgressing), meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionProgressing)
	if is == nil || is.Status != metav1.ConditionFalse || slices.Contains(wantedStandstill, is.Reason) || was != nil && was.Reason == is.Reason {
		return
	}
	if ready := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == is.Reason {
		return // tellReadiness has told it
	}
	r.transition(rp, next.PartitionEpoch, warning, is.Reason, "%s", is.Message)
}

// wantedStandstill are the reasons for which Progressing is False as it should be.
var wantedStandstill = []string{v1alpha1.ReasonComplete, v1alpha1.ReasonPaused, v1alpha1.ReasonSuspended}

// tellReadiness sends an event when Ready turns, and when something comes up that
// needs a person. The steps of a first start are no news.
func (r *Reconciler) tellReadiness(rp *v1alpha1.ReplicatedPartition, old, next v1alpha1.ReplicatedPartitionStatus) {
	was, is := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
		return
	}
	wasReady := was != nil && was.Status == metav1.ConditionTrue
	switch {
	case is.Status == metav1.ConditionTrue:
		r.transition(rp, next.PartitionEpoch, normal, is.Reason, "%s", is.Message)
	case wasReady || slices.Contains(needsAPerson, is.Reason):
		r.transition(rp, next.PartitionEpoch, warning, is.Reason, "%s", is.Message)
	}
}

// needsAPerson are the reasons that do not go away by themselves.
var needsAPerson = []string{
	v1alpha1.ReasonRecordMissing, v1alpha1.ReasonRecordForeign, v1alpha1.ReasonRecordInvalid, v1alpha1.ReasonQuarantined,
	v1alpha1.ReasonRecoveryRequired, v1alpha1.ReasonNameConflict, v1alpha1.ReasonTopicTaken,
}

func ids(s v1alpha1.ReplicatedPartitionStatus) []int32 {
	out := make([]int32, 0, len(s.Replicas))
	for _, q := range s.Replicas {
		out = append(out, q.ID)
	}
	return out
}
