package controllers

import (
	"context"
	"reflect"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// byPartitionLabel wakes the partition that an object's label names. Whether the
// object is really the partition's is looked at in the reconcile.
var byPartitionLabel = handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
	if name := obj.GetLabels()[v1alpha1.LabelPartition]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
	}
	return nil
})

// deletionBegan wakes for a deletion, which changes no spec.
var deletionBegan = predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetDeletionTimestamp() != nil })

// contentChanged ignores the writes of other controllers to the status of children.
var contentChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !reflect.DeepEqual(substance(e.ObjectOld), substance(e.ObjectNew))
}}

// ingressChanged wakes for the address that a load balancer got.
var ingressChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	old, ok1 := e.ObjectOld.(*corev1.Service)
	now, ok2 := e.ObjectNew.(*corev1.Service)
	return ok1 && ok2 && !reflect.DeepEqual(old.Status.LoadBalancer, now.Status.LoadBalancer)
}}

// substance is an object without its status and the API server's bookkeeping.
func substance(obj client.Object) map[string]any {
	m, err := content(obj)
	if err != nil {
		return nil
	}
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(m, "metadata", field)
	}
	return m
}

// leaseEvents takes note of every heartbeat, and wakes the reconciler for changes of
// the record only: at once for who leads, who is live and the like, and after a
// while for offsets that moved.
func (r *Reconciler) leaseEvents() handler.EventHandler {
	wake := func(obj client.Object, q queue) {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			r.heartbeats.observe(l)
		}
		for _, req := range requestsFor(obj) {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			old, ok1 := e.ObjectOld.(*coordinationv1.Lease)
			now, ok2 := e.ObjectNew.(*coordinationv1.Lease)
			if !ok1 || !ok2 {
				return
			}
			r.heartbeats.observe(now)
			for _, req := range requestsFor(now) {
				switch compareLeases(old, now) {
				case recordMoved:
					q.Add(req)
				case offsetsMoved:
					q.AddAfter(req, numbersEvery)
				}
			}
		},
	}
}

func requestsFor(obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.LabelPartition]
	if name == "" || name != obj.GetName() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

type movement int

const (
	nothingMoved movement = iota
	offsetsMoved
	recordMoved
)

// compareLeases tells how much a reader of the record has to care.
func compareLeases(old, now *coordinationv1.Lease) movement {
	before, after := signOf(old), signOf(now)
	before.renewed, after.renewed = time.Time{}, time.Time{}
	if before != after || old.Annotations[lease.AnnotationState] != now.Annotations[lease.AnnotationState] ||
		old.Annotations[lease.AnnotationPartitionEpoch] != now.Annotations[lease.AnnotationPartitionEpoch] ||
		!now.DeletionTimestamp.Equal(old.DeletionTimestamp) || old.UID != now.UID {
		return recordMoved
	}
	was, is := old.Annotations[lease.AnnotationProgress], now.Annotations[lease.AnnotationProgress]
	if was == is {
		return nothingMoved
	}
	p, err1 := recordjson.UnmarshalProgress([]byte(was))
	q, err2 := recordjson.UnmarshalProgress([]byte(is))
	if err1 != nil || err2 != nil || !slices.Equal(signs(p), signs(q)) || p.TookOver != q.TookOver || p.FlushEveryBatch != q.FlushEveryBatch {
		return recordMoved
	}
	return offsetsMoved
}

// replicaSign is what of a replica's progress is a change of state.
type replicaSign struct {
	id      epoch.ReplicaID
	live    bool
	trouble epoch.Trouble
}

func signs(p epoch.Progress) []replicaSign {
	out := make([]replicaSign, 0, len(p.Replicas))
	for _, r := range p.Replicas {
		out = append(out, replicaSign{r.ID, r.Live, r.Trouble})
	}
	return out
}
