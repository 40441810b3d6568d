package controllers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// createRecord makes the record of a partition that never had one. That it never
// had one is read from the API: a cached status may not show the record yet.
func (r *Reconciler) createRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition) error {
	var now v1alpha1.ReplicatedPartition
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rp), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != rp.UID || now.DeletionTimestamp != nil || now.Status.TopicID != "" {
		return nil
	}
	topic, err := topicID(rp)
	if err != nil {
		return err
	}
	change, err := newChangeID()
	if err != nil {
		return err
	}
	s, err := r.store(rp)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Labels: partitionLabels(rp), OwnerReferences: []metav1.OwnerReference{*ownerReference(rp)}}
	record := epoch.New(topic, target(&now), now.EffectiveMinInSyncReplicas(), change)
	if _, err := s.Create(ctx, record, meta); err != nil {
		if errors.Is(err, epoch.ErrConflict) {
			return nil // Somebody made it, or something of its name: the next look tells.
		}
		return fmt.Errorf("make the partition record: %w", err)
	}
	log.FromContext(ctx).Info("partition record made", "topicID", topic.String(), "replicas", len(record.Replicas))
	r.event(rp, nil, normal, v1alpha1.EventRecordCreated, "made the partition record in Lease %s for topic id %s", rp.LeaseName(), topic)
	return nil
}

// electionHeld tells of an election that this process held. The event comes with
// the status that shows the new leader, whoever elected it.
func (r *Reconciler) electionHeld(ctx context.Context, rp *v1alpha1.ReplicatedPartition, rec epoch.Record, a Elect) {
	log.FromContext(ctx).Info("leader elected", "leader", rp.ReplicaName(int32(rec.Leader)), "leaderEpoch", rec.LeaderEpoch,
		"reason", string(a.Reason), "because", a.Message)
	electionsHeld.WithLabelValues(string(a.Reason)).Inc()
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
