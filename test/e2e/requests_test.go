//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// awaitReason waits until the partition is not ready for this reason.
func (p partition) awaitReason(t testing.TB, reason string) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	return p.await(t, "Ready=False because of "+reason, func(s v1alpha1.ReplicatedPartitionStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == reason
	})
}

// lease reads the object that holds the partition's record.
func (p partition) lease(t testing.TB) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: p.name}, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// unprotect lets people edit and delete the record.
func (p partition) unprotect(t testing.TB) {
	t.Helper()
	kubectl(t, "annotate", "lease", p.name, "tidemark.io/unprotected=true")
}

// recover asks for the recovery, and waits until all replicas are in sync in what goes on from it.
func (p partition) recover(t testing.TB, at v1alpha1.ReplicatedPartitionStatus) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	kubectl(t, "annotate", "rp", p.name, fmt.Sprintf("%s=%d", v1alpha1.AnnotationRecover, at.PartitionEpoch))
	after := p.awaitEpochAfter(t, at.LeaderEpoch+epoch.RecoveryMargin-1)
	p.awaitInSync(t)
	return after
}

// The record's object is deleted by mistake. Whoever leads goes on, and on request the record is made anew of what the
// replicas know.
func TestADeletedLeaseIsRecoveredOnRequest(t *testing.T) {
	p := newPartition(t, "lost-lease")
	l := startLoad(t, p)
	p.awaitInSync(t)
	if out := output("kubectl", "-n", namespace, "delete", "lease", p.name); !containsAll(out, "goes with its ReplicatedPartition") {
		t.Fatalf("the deletion of a Lease that holds a record was not refused: %s", out)
	}
	p.unprotect(t)
	kubectl(t, "delete", "lease", p.name)
	lost := p.awaitReason(t, v1alpha1.ReasonRecordMissing)
	l.await(t, time.Now())
	at := time.Now()
	after := p.recover(t, lost)
	l.await(t, time.Now())
	l.report(t, fmt.Sprintf("recovery of a deleted Lease, %s leads in epoch %d after %d", after.Leader, after.LeaderEpoch, lost.LeaderEpoch), at)
	l.finish(t)
}

// The Lease is put back to a state from before two elections, as by a backup of etcd.
func TestARestoredLeaseIsRecoveredOnRequest(t *testing.T) {
	p := newPartition(t, "old-lease")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	backup := p.lease(t)
	p.unprotect(t)
	killPod(t, namespace, before.Leader, "replica")
	newest := p.awaitEpochAfter(t, before.LeaderEpoch)
	p.awaitInSync(t)
	eventually(t, time.Minute, "the Lease to be put back", func(ctx context.Context) error {
		now := p.lease(t)
		now.Annotations, now.Spec = backup.Annotations, backup.Spec
		return api.Update(ctx, now)
	})
	frozen := p.awaitReason(t, v1alpha1.ReasonRecoveryRequired)
	l.await(t, time.Now())
	at := time.Now()
	after := p.recover(t, frozen)
	if after.LeaderEpoch <= newest.LeaderEpoch {
		t.Errorf("leader epoch %d after the recovery, want more than %d, which was known before", after.LeaderEpoch, newest.LeaderEpoch)
	}
	l.await(t, time.Now())
	l.report(t, fmt.Sprintf("recovery of a restored Lease, %s leads in epoch %d after %d", after.Leader, after.LeaderEpoch, newest.LeaderEpoch), at)
	l.finish(t)
}

// The only replica in sync loses its volume. What the other one has goes on when asked for, and the status tells the loss.
func TestAnUncleanElectionIsHeldOnRequest(t *testing.T) {
	p := newPartition(t, "unclean", func(rp *v1alpha1.ReplicatedPartition) {
		one := int32(1)
		rp.Spec.Replicas, rp.Spec.MinInSyncReplicas = 2, &one
	})
	kcatProduce(t, p, text(100))
	before := p.awaitInSync(t)
	other := before.Replicas[slices.IndexFunc(before.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Name != before.Leader })].Name
	nodes := []string{"node1", "node2", "node3"}
	uncordon := func() { output("kubectl", append([]string{"uncordon"}, nodes...)...) }
	t.Cleanup(uncordon)
	command(t, "kubectl", append([]string{"cordon"}, nodes...)...)
	kubectl(t, "delete", "pod", other)
	p.await(t, "the leader alone in sync", func(s v1alpha1.ReplicatedPartitionStatus) bool { return len(s.ISR) == 1 })
	kcatProduce(t, p, text(50))
	kubectl(t, "delete", "pod", before.Leader) // in good order: it tells how far it came
	kubectl(t, "delete", "pvc", "data-"+before.Leader)
	uncordon()

	stuck := p.await(t, "nobody who may lead", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		return len(s.ISR) == 0 && c != nil && containsAll(c.Message, v1alpha1.AnnotationElectUnclean)
	})
	kubectl(t, "annotate", "rp", p.name, fmt.Sprintf("%s=%d", v1alpha1.AnnotationElectUnclean, stuck.LeaderEpoch))
	after := p.awaitEpochAfter(t, stuck.LeaderEpoch)
	if after.Leader != other {
		t.Errorf("%s leads, want %s, the replica that still has something", after.Leader, other)
	}
	told := p.await(t, "what was lost", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return s.UncleanElection != nil && s.UncleanElection.LostRecords != nil
	})
	if lost := *told.UncleanElection.LostRecords; lost != 50 {
		t.Errorf("the status tells of %d lost records, want 50: %+v", lost, told.UncleanElection)
	}
	p.awaitInSync(t)
	if got, want := kcatConsume(t, p), text(100); got != want {
		t.Errorf("what is left is not what the other replica had: %s", firstDifference(got, want))
	}
}
