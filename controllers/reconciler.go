package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Reconciler brings the cluster in line with one ReplicatedPartition at a time.
// Make it with [New]; several goroutines may use it.
type Reconciler struct {
	// Client reads from caches and writes to the API.
	Client client.Client
	// APIReader reads from the API itself: what is decided upon.
	APIReader client.Reader
	// Leases is the record store's client, from lease.NewClient.
	Leases rest.Interface
	// Events sends events.
	Events events.EventRecorder
	// Defaults are the operator's choices for all partitions.
	Defaults ReplicaDefaults

	// indexed tells that Client finds partitions by topicIndex.
	indexed bool

	memory
}

// The roles that the operator needs. The chart's role is compared with these.
//
// +kubebuilder:rbac:groups=tidemark.io,resources=replicatedpartitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=tidemark.io,resources=replicatedpartitions/status,verbs=update
// +kubebuilder:rbac:groups=tidemark.io,resources=replicatedpartitions/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile observes, plans, applies and shows. It implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rp v1alpha1.ReplicatedPartition
	if err := r.Client.Get(ctx, req.NamespacedName, &rp); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.known.meet(req.NamespacedName, rp.UID, r.forgetUID)
	o, err := r.observe(ctx, &rp)
	if apierrors.IsForbidden(err) {
		return r.showBlind(ctx, &rp, err)
	}
	if err != nil {
		return r.quietly(ctx, rp.UID, err)
	}
	plan := MakePlan(o)
	out := r.apply(ctx, o, plan)
	if out.recordChanged {
		// What was observed is history; the status follows the new record.
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return r.show(ctx, o, plan, out)
}

// show writes the status, which tells of a failure to apply, too.
func (r *Reconciler) show(ctx context.Context, o *Observation, plan Plan, out outcome) (ctrl.Result, error) {
	status := project(o, out.progress(plan))
	showMetrics(o, isAvailable(status))
	wait, err := r.writeStatus(ctx, o.Partition, status)
	if out.err != nil {
		err = out.err
	}
	if err != nil {
		return r.quietly(ctx, o.Partition.UID, err)
	}
	r.hangs.forget(o.Partition.UID)
	plan.recheck(wait)
	if out.refused != nil {
		plan.recheck(refusedRecheck)
	}
	return ctrl.Result{RequeueAfter: plan.Recheck}, nil
}

// showBlind tells that the operator may not read what it has to. What the status said of the
// partition stays: it may well go on serving.
func (r *Reconciler) showBlind(ctx context.Context, rp *v1alpha1.ReplicatedPartition, why error) (ctrl.Result, error) {
	status := *rp.Status.DeepCopy()
	reason := reasonOf(why)
	setProgress(rp, &status, Progress{Status: metav1.ConditionFalse, Reason: reason, Message: why.Error() + remedies[reason]})
	if _, err := r.writeStatus(ctx, rp, status); err != nil {
		return r.quietly(ctx, rp.UID, err)
	}
	return ctrl.Result{RequeueAfter: refusedRecheck}, nil
}

// refusedRecheck is how often a request is made again that the API server refused: quotas,
// roles and storage classes change without an event for us.
const refusedRecheck = 30 * time.Second

// conflictRecheck follows a lost race for an object, which is no error.
const conflictRecheck = 50 * time.Millisecond

// quietly repeats a look without a word after a lost race, and by and by where calls hang.
func (r *Reconciler) quietly(ctx context.Context, of types.UID, err error) (ctrl.Result, error) {
	switch {
	case isConflict(err):
		return ctrl.Result{RequeueAfter: conflictRecheck}, nil
	case errors.Is(err, context.DeadlineExceeded):
		log.FromContext(ctx).Error(err, "a call to the API server did not end in time")
		return ctrl.Result{RequeueAfter: wait.Jitter(r.hangs.again(of), 0.2)}, nil
	}
	return ctrl.Result{}, err
}
