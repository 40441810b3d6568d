package controllers

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A partition whose leader is well needs no timer of its own.
func TestALeaderThatIsWellIsNotWaitedFor(t *testing.T) {
	if after := MakePlan(world()).Recheck; after != 0 {
		t.Errorf("a converged partition is looked at again after %s", after)
	}
}

// A leader is looked at from half of its lease on, and not for ever if nobody can take over.
func TestAMissedHeartbeatWakesThePartition(t *testing.T) {
	api := &fakeAPI{}
	clock := api.clock()
	clock.probe(context.Background())
	h := newHeartbeats(clock)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders",
		OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}}}}
	lease.Spec.LeaseDurationSeconds, lease.Spec.HolderIdentity = ptr.To[int32](10), ptr.To("orders-0")
	h.observe(lease)
	for _, tc := range []struct {
		after int // seconds more
		woken bool
	}{{4, false}, {1, true}, {5, true}, {9, true}, {1, false}} {
		api.pass(clock, tc.after)
		if got := h.missed(); (len(got) == 1 && got[0].Name == "orders") != tc.woken {
			t.Errorf("after %s of silence: got %v, want it to be woken: %t", h.silence("u"), got, tc.woken)
		}
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(1, 0)}
	h.observe(lease)
	api.pass(clock, 6)
	lease.Spec.HolderIdentity = nil
	h.observe(lease)
	api.pass(clock, 6)
	if got := h.missed(); len(got) > 0 {
		t.Errorf("got %v for a partition that nobody leads", got)
	}
}
