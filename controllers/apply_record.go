package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// createRecord makes the record of a partition that never had one, unless an earlier
// partition has left volumes of which the user has not spoken.
func (r *Reconciler) createRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (made bool, err error) {
	now, err := r.withoutRecord(ctx, rp)
	if now == nil {
		return false, err
	}
	kept, err := r.claims(ctx, r.APIReader, now)
	if err != nil {
		return false, err
	}
	if q, err := adoptRequest(now); err != nil || !q.topicID.IsZero() || len(kept) > 0 && !q.none || ownKept(now, kept) {
		return false, nil // caches did not show the wish, or them, yet: the next look does
	}
	change, err := newChangeID()
	if err != nil {
		return false, err
	}
	topic, err := topicID(now)
	if err != nil {
		return false, err
	}
	record := epoch.New(topic, target(now), now.EffectiveMinInSyncReplicas(), change)
	if made, err := r.makeRecord(ctx, now, record); !made {
		return false, err
	}
	log.FromContext(ctx).Info("partition record made", "topicID", topic.String(), "replicas", len(record.Replicas))
	r.event(rp, nil, normal, v1alpha1.EventRecordCreated, "made the partition record in Lease %s for topic id %s", rp.LeaseName(), topic)
	return true, nil
}

// adoptLog makes a frozen record for the log of an earlier partition, with every replica
// that has left a volume.
func (r *Reconciler) adoptLog(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Adopt) error {
	now, err := r.withoutRecord(ctx, rp)
	if now == nil {
		return err
	}
	kept, err := r.claims(ctx, r.APIReader, now)
	if err != nil {
		return err
	}
	if q, err := adoptRequest(now); err != nil || q.topicID != a.TopicID || !keptOf(kept, a.TopicID) || len(doomedClaims(now, kept)) > 0 {
		return nil
	}
	change, err := newChangeID()
	if err != nil {
		return err
	}
	assigned := union(target(now), sortedIDs(kept))
	record := epoch.Remake(a.TopicID, assigned, now.EffectiveMinInSyncReplicas(), adoptedAt, 0, change)
	if made, err := r.makeRecord(ctx, now, record); !made {
		return err
	}
	log.FromContext(ctx).Info("partition record made, to adopt an earlier log", "topicID", a.TopicID.String(), "replicas", len(record.Replicas))
	r.event(rp, nil, normal, v1alpha1.EventRecordCreated, "made the partition record in Lease %s to go on with the log of topic id %s, which an earlier partition has left", rp.LeaseName(), a.TopicID)
	return nil
}

// withoutRecord is the partition as the API has it, nil if it is gone or had a record
// before: a cached status may not show that yet.
func (r *Reconciler) withoutRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (*v1alpha1.ReplicatedPartition, error) {
	now, err := r.readPartition(ctx, rp)
	if now == nil || now.Status.TopicID != "" {
		return nil, err
	}
	return now, nil
}

// readPartition is an uncached read; nil if the partition is gone or about to go.
func (r *Reconciler) readPartition(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (*v1alpha1.ReplicatedPartition, error) {
	var now v1alpha1.ReplicatedPartition
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rp), &now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != rp.UID || now.DeletionTimestamp != nil {
		return nil, nil
	}
	return &now, nil
}

// makeRecord makes the Lease, and reports false if something of its name is there: what,
// the next look tells.
func (r *Reconciler) makeRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition, record epoch.Record) (bool, error) {
	s, err := lease.New(lease.Config{Client: r.Leases, Namespace: rp.Namespace, Name: rp.LeaseName(), TopicID: record.TopicID})
	if err != nil {
		return false, err
	}
	meta := metav1.ObjectMeta{Labels: partitionLabels(rp), OwnerReferences: []metav1.OwnerReference{*ownerReference(rp)}}
	if _, err := s.Create(ctx, record, meta); err != nil {
		if errors.Is(err, epoch.ErrConflict) {
			return false, nil
		}
		return false, fmt.Errorf("make the partition record: %w", err)
	}
	return true, nil
}

// union is all ids of both, in order.
func union(a, b []epoch.ReplicaID) []epoch.ReplicaID {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// remakeRecord makes a frozen record in place of one that is gone, at the epochs that
// the status showed last. That the user asks for it is read from the API.
func (r *Reconciler) remakeRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a RemakeRecord) error {
	now, err := r.readPartition(ctx, rp)
	if now == nil {
		return err
	}
	if asked, ok, _ := now.RecoverRequest(); !ok || asked != a.PartitionEpoch || now.Status.PartitionEpoch != a.PartitionEpoch {
		return nil
	}
	topic, err := topicID(now)
	if err != nil {
		return err
	}
	change, err := newChangeID()
	if err != nil {
		return err
	}
	var shown []epoch.ReplicaID
	for _, q := range now.Status.Replicas {
		shown = append(shown, epoch.ReplicaID(q.ID))
	}
	record := epoch.Remake(topic, union(target(now), shown), now.EffectiveMinInSyncReplicas(), epoch.PartitionEpoch(a.PartitionEpoch), epoch.LeaderEpoch(now.Status.LeaderEpoch), change)
	if made, err := r.makeRecord(ctx, now, record); !made {
		return err
	}
	log.FromContext(ctx).Info("partition record made anew, to be recovered", "partitionEpoch", record.PartitionEpoch, "replicas", len(record.Replicas))
	return nil
}

// recovered tells that a record goes on.
func (r *Reconciler) recovered(ctx context.Context, rp *v1alpha1.ReplicatedPartition, rec epoch.Record) {
	log.FromContext(ctx).Info("partition record recovered", "from", rec.Recovered.From.PartitionEpoch, "partitionEpoch", rec.PartitionEpoch,
		"leaderEpoch", rec.LeaderEpoch, "isr", rec.ISR, "faithful", rec.Recovered.Faithful)
	r.event(rp, nil, warning, v1alpha1.EventRecordRecovered, "the partition record goes on from partition epoch %d, as %d, with the ISR %v; replicas other than %v cut what they wrote in another history, if any",
		rec.Recovered.From.PartitionEpoch, rec.PartitionEpoch, rec.ISR, rec.Recovered.Faithful)
}

// electionHeld tells of an election that this process held. The event comes with
// the status that shows the new leader, whoever elected it.
func (r *Reconciler) electionHeld(ctx context.Context, rp *v1alpha1.ReplicatedPartition, rec epoch.Record, a Elect) {
	log.FromContext(ctx).Info("leader elected", "leader", rp.ReplicaName(int32(rec.Leader)), "leaderEpoch", rec.LeaderEpoch,
		"reason", string(a.Reason), "because", a.Message)
	electionsHeld.WithLabelValues(string(a.Reason)).Inc()
	if u := rec.UncleanElection; u != nil && u.LeaderEpoch == rec.LeaderEpoch {
		p, _ := rec.Replica(u.Leader)
		r.event(rp, nil, warning, v1alpha1.EventUncleanElection, "%s was elected from outside of the ISR in epoch %d; its log ended at %d when it registered, the last known high watermark was %d",
			rp.ReplicaName(int32(u.Leader)), u.LeaderEpoch, p.LogEndOffset, u.HighWatermark)
	}
}

// readRecord is an uncached read, for a destructive step.
func (r *Reconciler) readRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (epoch.Record, error) {
	s, err := r.store(rp)
	if err != nil {
		return epoch.Record{}, err
	}
	snap, err := s.Get(ctx)
	if err != nil {
		return epoch.Record{}, err
	}
	r.noteHeartbeat(snap)
	return snap.Record, nil
}
