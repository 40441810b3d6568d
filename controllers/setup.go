package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// Options of the operator. Defaults.Image is required.
type Options struct {
	// Defaults are the operator's choices for all partitions.
	Defaults ReplicaDefaults
	// Namespaces to watch; all when empty.
	Namespaces []string
	// Workers is how many partitions are worked on at once; 32 when 0. They mostly wait:
	// one whose calls hang must not keep the others from an election.
	Workers int
}

const (
	defaultWorkers = 32
	// reconcileTimeout ends a reconcile that hangs in a call.
	reconcileTimeout = 30 * time.Second
	// cachesTimeout ends an operator whose caches do not fill. It waits for an API server, and
	// for permissions, as long as it takes: Denials and /readyz tell.
	cachesTimeout = 365 * 24 * time.Hour
	minBackoff    = 10 * time.Millisecond
	maxBackoff    = 30 * time.Second
)

// NewScheme knows every kind that the operator handles.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return s, nil
}

// CacheOptions limits what the caches hold to the objects of partitions, and of those to what
// is looked at. What they may not read is noted in denials.
func CacheOptions(namespaces []string, denials *Denials) (cache.Options, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelPartition, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("build the label selector of the caches: %w", err)
	}
	byLabel := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	// Who wrote which field is a third of most objects, and nothing here goes by it.
	o := cache.Options{ByObject: map[client.Object]cache.ByObject{}, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: denials.note}
	for _, obj := range append(childKinds(), &corev1.Pod{}, &coordinationv1.Lease{}) {
		o.ByObject[obj] = byLabel
	}
	if len(namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, ns := range namespaces {
			o.DefaultNamespaces[ns] = cache.Config{}
		}
	}
	return o, nil
}

// childKinds are the kinds that Render makes beside pods.
func childKinds() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.Service{},
		&policyv1.PodDisruptionBudget{}, &corev1.PersistentVolumeClaim{},
	}
}

// Setup adds the operator to a manager made with NewScheme and CacheOptions.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Defaults.Image == "" {
		return errors.New("no default image for replicas: set --replica-image")
	}
	leases, err := lease.NewClient(mgr.GetConfig())
	if err != nil {
		return err
	}
	r := &Reconciler{
		Client: bounded{mgr.GetClient(), callTimeout}, APIReader: boundedReader{mgr.GetAPIReader(), callTimeout}, Leases: leases,
		Events: mgr.GetEventRecorder(v1alpha1.ManagerName), Defaults: o.Defaults,
		indexed: true, memory: newMemory(canRead(mgr.GetAPIReader(), o.Namespaces)),
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ReplicatedPartition{}, topicIndex, indexTopic); err != nil {
		return fmt.Errorf("index partitions by topic: %w", err)
	}
	if err := mgr.Add(r.clock); err != nil {
		return fmt.Errorf("add the clock: %w", err)
	}
	e := newExpiry(r.heartbeats)
	if err := mgr.Add(e); err != nil {
		return fmt.Errorf("add the scan for silent leaders: %w", err)
	}
	if err := mgr.Add(&onlooker{cache: mgr.GetCache(), heartbeats: r.heartbeats}); err != nil {
		return fmt.Errorf("add the onlooker: %w", err)
	}
	return r.watch(mgr, o, e)
}

func (r *Reconciler) watch(mgr ctrl.Manager, o Options, e *expiry) error {
	workers := o.Workers
	if workers == 0 {
		workers = defaultWorkers
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("replicatedpartition").
		For(&v1alpha1.ReplicatedPartition{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionBegan))).
		Watches(&corev1.Pod{}, byPartitionLabel).
		Watches(&coordinationv1.Lease{}, r.leaseEvents()).
		WatchesRawSource(source.Channel(e.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   reconcileTimeout,
			CacheSyncTimeout:        cachesTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		})
	for _, kind := range childKinds() {
		b = b.Watches(kind, byPartitionLabel, builder.WithPredicates(predicate.Or(contentChanged, ingressChanged)))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return nil
}

// canRead reads one page of partitions from the API: a quorum read that the
// operator is allowed anyway.
func canRead(reader client.Reader, namespaces []string) func(context.Context) error {
	opts := []client.ListOption{client.Limit(1)}
	if len(namespaces) > 0 {
		opts = append(opts, client.InNamespace(namespaces[0]))
	}
	return func(ctx context.Context) error {
		return reader.List(ctx, &v1alpha1.ReplicatedPartitionList{}, opts...)
	}
}
