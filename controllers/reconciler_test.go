package controllers

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// newTestReconciler makes a second reconciler, without caches, so that what it sees
// is what is there.
func newTestReconciler(t *testing.T) *Reconciler {
	t.Helper()
	r := &Reconciler{
		Client: cluster.api, APIReader: cluster.api, Leases: cluster.leases, Events: events.NewFakeRecorder(100),
		Defaults: ReplicaDefaults{Image: "example.test/tidemark:1"},
		memory:   newMemory(func(context.Context) error { return nil }),
	}
	return r
}

func (r *Reconciler) mustObserve(t *testing.T, p *partition) *Observation {
	t.Helper()
	var rp v1alpha1.ReplicatedPartition
	if err := cluster.api.Get(t.Context(), p.key(p.rp.Name), &rp); err != nil {
		t.Fatal(err)
	}
	o, err := r.observe(t.Context(), &rp)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (p *partition) request() ctrl.Request { return ctrl.Request{NamespacedName: p.key(p.rp.Name)} }

func objectsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if obj, ok := o.(client.Object); ok {
			out = append(out, obj)
		}
		return nil
	})
	return out
}
