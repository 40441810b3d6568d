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
	record := epoch.New(topic, target(&now), now.EffectiveMinInSyncReplicas(), change)
	if _, err := s.Create(ctx, record, recordMeta(rp)); err != nil {
		if errors.Is(err, epoch.ErrConflict) {
			return nil // Somebody made it, or something of its name: the next look tells.
		}
		return fmt.Errorf("make the partition record: %w", err)
	}
	log.FromContext(ctx).Info("partition record made", "topicID", topic.String(), "replicas", len(record.Replicas))
	r.event(rp, nil, normal, v1alpha1.EventRecordCreated, "made the partition record in Lease %s for topic id %s", rp.LeaseName(), topic)
	return nil
}

func recordMeta(rp *v1alpha1.ReplicatedPartition) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: partitionLabels(rp), OwnerReferences: []metav1.OwnerReference{*ownerReference(rp)}}
}

// remakeRecord makes a frozen record in place of one that is gone, at the epochs that
// the status showed last. That the user asks for it is read from the API.
func (r *Reconciler) remakeRecord(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a RemakeRecord) error {
	var now v1alpha1.ReplicatedPartition
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rp), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	asked, ok, _ := now.RecoverRequest()
	if now.UID != rp.UID || now.DeletionTimestamp != nil || !ok || asked != a.PartitionEpoch || now.Status.PartitionEpoch != a.PartitionEpoch {
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
	assigned := target(&now)
	for _, q := range now.Status.Replicas {
		if id := epoch.ReplicaID(q.ID); !slices.Contains(assigned, id) {
			assigned = append(assigned, id)
		}
	}
	record := epoch.Remake(topic, assigned, now.EffectiveMinInSyncReplicas(), epoch.PartitionEpoch(a.PartitionEpoch), epoch.LeaderEpoch(now.Status.LeaderEpoch), change)
	if _, err := s.Create(ctx, record, recordMeta(rp)); err != nil {
		if errors.Is(err, epoch.ErrConflict) {
			return nil
		}
		return fmt.Errorf("make the partition record anew: %w", err)
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
