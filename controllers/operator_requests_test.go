package controllers

import (
	"fmt"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// annotate makes a request on the partition.
func (p *partition) annotate(key, value string) {
	p.t.Helper()
	await(p.t, "the annotation "+key, func() string {
		var rp v1alpha1.ReplicatedPartition
		if err := cluster.api.Get(p.t.Context(), p.key(p.rp.Name), &rp); err != nil {
			return err.Error()
		}
		if rp.Annotations == nil {
			rp.Annotations = map[string]string{}
		}
		rp.Annotations[key] = value
		if err := cluster.api.Update(p.t.Context(), &rp); err != nil {
			return err.Error()
		}
		return ""
	})
}

// report lets a replica say what it knows, as its process does.
func (p *partition) report(id epoch.ReplicaID, known *epoch.Record) {
	p.t.Helper()
	p.write(func(r epoch.Record) (epoch.Record, error) {
		return epoch.MarkRecovery(r, epoch.RecoveryOf(id, known, 0))
	})
}

// round waits until the operator has begun a round of reports.
func (p *partition) round() {
	p.t.Helper()
	await(p.t, "a round of reports", func() string {
		if r := p.record(); r.Recovery == nil || r.Recovery.Round == "" {
			return fmt.Sprintf("recovery %+v", r.Recovery)
		}
		return ""
	})
}

// goesOn waits until the record goes on from that one, with a leader from its ISR.
func (p *partition) goesOn(from epoch.Record) {
	p.t.Helper()
	await(p.t, "the record to go on", func() string {
		r := p.record()
		if r.Recovered == nil || r.Recovered.From != from.LastChange() || r.Leader == epoch.NoReplica {
			return fmt.Sprintf("recovered %+v, leader %d, recovery %+v", r.Recovered, r.Leader, r.Recovery)
		}
		if !slices.Equal(r.ISR, from.ISR) || r.LeaderEpoch <= from.LeaderEpoch+epoch.RecoveryMargin {
			return fmt.Sprintf("ISR %v, leader epoch %d", r.ISR, r.LeaderEpoch)
		}
		return ""
	})
}

func TestARestoredRecordGoesOnWhenAsked(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, longLease)
	p.serve(3)
	restored := p.record()
	p.join(0, 2)
	newest := p.record()
	p.write(func(epoch.Record) (epoch.Record, error) { return restored, nil })
	p.report(0, &newest)
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecoveryRequired)
	p.annotate(v1alpha1.AnnotationRecover, fmt.Sprint(restored.PartitionEpoch))
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecovering)
	p.round()
	p.report(0, &newest)
	p.report(1, &restored)
	if r := p.record(); r.Recovery == nil {
		t.Fatal("recovered before replica 2 has reported")
	}
	p.report(2, &restored)
	p.goesOn(newest)
}

func TestALostRecordIsMadeOfWhatTheReplicasKnow(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, longLease)
	p.serve(3)
	p.join(0, 2)
	newest := p.record()
	await(t, "the status to show the newest record", func() string {
		var rp v1alpha1.ReplicatedPartition
		if err := cluster.api.Get(t.Context(), p.key(p.rp.Name), &rp); err != nil || rp.Status.PartitionEpoch != int64(newest.PartitionEpoch) {
			return fmt.Sprintf("partition epoch %d, %v", rp.Status.PartitionEpoch, err)
		}
		return ""
	})
	var l coordinationv1.Lease
	p.exists(p.rp.LeaseName(), &l)
	if err := cluster.api.Delete(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecordMissing)
	p.annotate(v1alpha1.AnnotationRecover, fmt.Sprint(newest.PartitionEpoch))
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecovering)
	p.round()
	for id := range epoch.ReplicaID(3) {
		p.report(id, &newest)
	}
	p.goesOn(newest)
}

func TestAnUncleanElectionIsHeldWhenAsked(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		longLease(rp)
		one := int32(1)
		rp.Spec.MinInSyncReplicas = &one
	})
	p.serve(3)
	p.join(0)
	p.setPod(0, killContainer)
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonLeaderLost)
	before := p.record()
	p.annotate(v1alpha1.AnnotationElectUnclean, fmt.Sprintf("%d/2", before.LeaderEpoch))
	p.leads(2, before.LeaderEpoch+1, epoch.ReasonUnclean)
	p.write(func(r epoch.Record) (epoch.Record, error) { return epoch.TellLoss(r, 2, r.LeaderSession, 4, newID(t)) })
	await(t, "the loss in the status", func() string {
		var rp v1alpha1.ReplicatedPartition
		if err := cluster.api.Get(t.Context(), p.key(p.rp.Name), &rp); err != nil {
			return err.Error()
		}
		if u := rp.Status.UncleanElection; u == nil || u.LostRecords == nil || *u.LostRecords != 6 || u.Leader != p.name(2) {
			return fmt.Sprintf("%+v", u)
		}
		return ""
	})
	if r := p.record(); r.LeaderEpoch != before.LeaderEpoch+1 {
		t.Errorf("leader epoch %d: the request has fired again", r.LeaderEpoch)
	}
}

func longLease(rp *v1alpha1.ReplicatedPartition) {
	rp.Spec.LeaderElection.LeaseDurationSeconds = 300
}
