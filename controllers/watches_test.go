package controllers

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

func encoded(t *testing.T, r epoch.Record) *coordinationv1.Lease {
	t.Helper()
	l, err := lease.Encode(r, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "orders"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestHeartbeatsDoNotWakeTheReconciler(t *testing.T) {
	renew := func(r epoch.Record, change func(*epoch.Progress)) epoch.Record {
		p := *r.Clone().Progress
		change(&p)
		return epoch.Renew(r, r.Heartbeat.Renewed.Add(time.Second), r.Heartbeat.Duration, p)
	}
	for _, tc := range []struct {
		name   string
		change func(epoch.Record) epoch.Record
		want   movement
	}{
		{"heartbeat", func(r epoch.Record) epoch.Record { return renew(r, func(*epoch.Progress) {}) }, nothingMoved},
		{"offsets", func(r epoch.Record) epoch.Record {
			return renew(r, func(p *epoch.Progress) { p.HighWatermark++; p.Replicas[1].LogEndOffset++ })
		}, offsetsMoved},
		{"a member falls behind", func(r epoch.Record) epoch.Record {
			return renew(r, func(p *epoch.Progress) { p.Replicas[1].Live = false })
		}, recordMoved},
		{"a volume is full", func(r epoch.Record) epoch.Record {
			return renew(r, func(p *epoch.Progress) { p.Replicas[1].Full = true })
		}, recordMoved},
		{"the leader has taken over", func(r epoch.Record) epoch.Record {
			return renew(r, func(p *epoch.Progress) { p.TookOver++ })
		}, recordMoved},
		{"election", func(r epoch.Record) epoch.Record {
			n, err := epoch.Elect(r, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{1}, Change: "c2"})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}, recordMoved},
		{"recovery, which changes no epoch", func(r epoch.Record) epoch.Record {
			n, err := epoch.MarkRecovery(r, epoch.Recovery{LeaderEpoch: 9, PartitionEpoch: 9})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}, recordMoved},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := world().Record
			if got := compareLeases(encoded(t, r), encoded(t, tc.change(r))); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestStatusOfChildrenDoesNotWakeTheReconciler(t *testing.T) {
	old := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-0", ResourceVersion: "1"}}
	bound := old.DeepCopy()
	bound.ResourceVersion, bound.Status.Phase = "2", corev1.ClaimBound
	if contentChanged.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: bound}) {
		t.Error("a write of the status wakes")
	}
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if !contentChanged.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: labelled}) {
		t.Error("a changed label does not wake")
	}
	ending := old.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if !contentChanged.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: ending}) {
		t.Error("a deletion does not wake")
	}
}
