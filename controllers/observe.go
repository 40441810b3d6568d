package controllers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

// observe reads what a plan needs. What the caches hold is taken from them; what
// they do not hold, whose absence would be acted upon, is read from the API. Before the
// status shows the record nothing is made, so nothing has to be known to be absent.
func (r *Reconciler) observe(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (*Observation, error) {
	o := &Observation{Partition: rp}
	if err := r.observeRecord(ctx, o); err != nil {
		return nil, err
	}
	var err error
	if o.RecordState == RecordMissing && rp.Status.TopicID == "" {
		if o.TopicHolder, err = r.topicHolder(ctx, rp); err == nil {
			o.Kept, err = r.claims(ctx, r.Client, rp)
		}
	}
	if err != nil || o.RecordState != RecordPresent {
		return o, err
	}
	if o.Desired, err = Render(rp, o.hosted(), r.Defaults); err != nil {
		return nil, err
	}
	if err := r.observePods(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeClaims(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeChildren(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeHomes(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeNodeAddresses(ctx, o); err != nil {
		return nil, err
	}
	r.observeTimes(o)
	return o, nil
}

// observeRecord reads the Lease from the cache. One that is not there is read from
// the API: caches hold only objects with our label, and lag.
func (r *Reconciler) observeRecord(ctx context.Context, o *Observation) error {
	key := types.NamespacedName{Namespace: o.Partition.Namespace, Name: o.Partition.LeaseName()}
	var l coordinationv1.Lease
	err := r.Client.Get(ctx, key, &l)
	if apierrors.IsNotFound(err) {
		err = r.APIReader.Get(ctx, key, &l)
	}
	switch {
	case apierrors.IsNotFound(err):
		o.RecordState = RecordMissing
		return nil
	case err != nil:
		return fmt.Errorf("read Lease %s: %w", key, err)
	}
	o.setRecord(o.decode(&l))
	r.heartbeats.observe(&l)
	if o.RecordState == RecordPresent && o.Record.Recovery == nil {
		r.rounds.forget(o.Partition.UID)
	}
	o.Round = r.rounds.current(o.Partition.UID)
	return nil
}

// decode reads the record of this partition's log. The status is only what was shown: other
// topic ids that it may be of are tried as well.
func (o *Observation) decode(l *coordinationv1.Lease) (epoch.Record, error) {
	rp := o.Partition
	if rp.Status.TopicID == "" && !metav1.IsControlledBy(l, rp) {
		// It may be of the very topic id that is to be adopted: the earlier partition's.
		return epoch.Record{}, fmt.Errorf("lease %s was not made for this ReplicatedPartition: %w; if it is not deleted soon, with what it belongs to, delete it or give the ReplicatedPartition another name", l.Name, epoch.ErrForeign)
	}
	record, err := lease.Decode(l, o.topicIDs(l)[0])
	for _, id := range o.topicIDs(l)[1:] {
		if !errors.Is(err, epoch.ErrForeign) {
			break
		}
		if r, err := lease.Decode(l, id); err == nil {
			return r, nil
		}
	}
	return record, err
}

// topicIDs are those that the partition's record may be of, at least one: what the status
// shows, what the user wants to adopt, and the object's own. Where no status shows any, as
// when it was lost, or the wish was changed since the record was made, it is what the Lease
// says that was made for this very object.
func (o *Observation) topicIDs(l *coordinationv1.Lease) []epoch.UUID {
	rp := o.Partition
	var ids []epoch.UUID
	if id, err := topicID(rp); err == nil {
		ids = append(ids, id)
	}
	if own, err := epoch.ParseUUID(string(rp.UID)); err == nil {
		ids = append(ids, own)
	}
	if q, _ := adoptRequest(rp); !q.topicID.IsZero() {
		ids = append(ids, q.topicID)
	}
	if rp.Status.TopicID == "" {
		if r, err := recordjson.Unmarshal([]byte(l.Annotations[lease.AnnotationState])); err == nil {
			ids = append(ids, r.TopicID)
		}
	}
	return append(ids, epoch.UUID{})
}

// setRecord classifies what decoding the Lease gave.
func (o *Observation) setRecord(record epoch.Record, err error) {
	switch {
	case err == nil:
		o.RecordState, o.Record, o.RecordProblem = RecordPresent, record, ""
	case errors.Is(err, epoch.ErrForeign):
		o.RecordState, o.RecordProblem = RecordForeign, err.Error()
	default:
		o.RecordState, o.RecordProblem = RecordInvalid, err.Error()
	}
}

func (r *Reconciler) observePods(ctx context.Context, o *Observation) error {
	var list corev1.PodList
	if err := listOurs(ctx, r.Client, o.Partition, &list); err != nil {
		return err
	}
	o.Pods = map[epoch.ReplicaID]*corev1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		id, ok := replicaIDOf(pod)
		switch {
		case !ok || pod.Name != o.Partition.ReplicaName(int32(id)):
		case metav1.IsControlledBy(pod, o.Partition):
			o.Pods[id] = pod
		default:
			o.Foreign = append(o.Foreign, "Pod "+pod.Name)
		}
	}
	// A pod without our labels is not in the cache and would only be found by
	// running into it.
	for _, p := range o.hosted().Replicas {
		if o.Pods[p.ID] != nil || !o.recordShown() {
			continue
		}
		pod := &corev1.Pod{}
		err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: o.Partition.Namespace, Name: o.Partition.ReplicaName(int32(p.ID))}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read pod %s: %w", o.Partition.ReplicaName(int32(p.ID)), err)
		case metav1.IsControlledBy(pod, o.Partition):
			o.Pods[p.ID] = pod // The cache lags.
		default:
			o.addForeign("Pod " + pod.Name)
		}
	}
	return nil
}

func (r *Reconciler) observeClaims(ctx context.Context, o *Observation) (err error) {
	o.Claims, err = r.claims(ctx, r.Client, o.Partition)
	return err
}

// claims are the volume claims of a partition by replica id.
func (r *Reconciler) claims(ctx context.Context, from client.Reader, rp *v1alpha1.ReplicatedPartition) (map[epoch.ReplicaID]*corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	if err := listOurs(ctx, from, rp, &list); err != nil {
		return nil, err
	}
	claims := map[epoch.ReplicaID]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		claim := &list.Items[i]
		if id, ok := replicaIDOf(claim); ok && claim.Name == rp.VolumeClaimName(int32(id)) {
			claims[id] = claim
		}
	}
	return claims, nil
}

func listOurs(ctx context.Context, from client.Reader, rp *v1alpha1.ReplicatedPartition, list client.ObjectList, opts ...client.ListOption) error {
	opts = append(opts, client.InNamespace(rp.Namespace), client.MatchingLabels{v1alpha1.LabelPartition: rp.Name})
	err := from.List(ctx, list, opts...)
	if err != nil {
		return fmt.Errorf("list objects of partition %s/%s: %w", rp.Namespace, rp.Name, err)
	}
	return nil
}

// observeChildren finds what exists of the desired children.
func (r *Reconciler) observeChildren(ctx context.Context, o *Observation) error {
	o.Children = make([]client.Object, len(o.Desired.Children))
	for i, want := range o.Desired.Children {
		live := want.DeepCopyObject().(client.Object)
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
		if apierrors.IsNotFound(err) && o.recordShown() {
			err = r.APIReader.Get(ctx, client.ObjectKeyFromObject(want), live)
		}
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", describe(want), err)
		}
		if !o.ours(live) {
			if want.GetLabels()[v1alpha1.LabelListener] != "" {
				o.Taken = append(o.Taken, describe(want))
			} else {
				o.addForeign(describe(want))
			}
			continue
		}
		o.Children[i] = live
		switch live := live.(type) {
		case *corev1.PersistentVolumeClaim:
			growOnly(want.(*corev1.PersistentVolumeClaim), live)
		case *corev1.Service:
			settleFamilies(want.(*corev1.Service), live)
		}
	}
	return r.observeSurplus(ctx, o)
}

// observeSurplus finds what is ours and not wanted any more.
func (r *Reconciler) observeSurplus(ctx context.Context, o *Observation) error {
	if err := r.observeSurplusServices(ctx, o); err != nil {
		return err
	}
	return r.observeSurplusBudget(ctx, o)
}

// observeSurplusServices finds those of listeners and replicas that are gone.
func (r *Reconciler) observeSurplusServices(ctx context.Context, o *Observation) error {
	var list corev1.ServiceList
	if err := listOurs(ctx, r.Client, o.Partition, &list, client.HasLabels{v1alpha1.LabelListener}); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, want := range o.Desired.Children {
		if s, ok := want.(*corev1.Service); ok {
			wanted[s.Name] = true
		}
	}
	for i := range list.Items {
		if s := &list.Items[i]; !wanted[s.Name] && o.ours(s) && s.DeletionTimestamp == nil {
			o.Surplus = append(o.Surplus, s)
		}
	}
	return nil
}

// observeSurplusBudget finds the budget of a partition that is to have none: it would
// block every drain.
func (r *Reconciler) observeSurplusBudget(ctx context.Context, o *Observation) error {
	if renderBudget(o.Partition, o.hosted()) != nil {
		return nil
	}
	b := &policyv1.PodDisruptionBudget{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.Partition), b)
	if err == nil && o.ours(b) && b.DeletionTimestamp == nil {
		o.Surplus = append(o.Surplus, b)
	}
	return client.IgnoreNotFound(err)
}

// ours reports whether an object of one of our names is ours: by its owner, or, for
// volume claims, which outlive partitions, by its labels.
func (o *Observation) ours(obj client.Object) bool {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
		id, ok := replicaIDOf(claim)
		return ok && claim.Labels[v1alpha1.LabelPartition] == o.Partition.Name && claim.Name == o.Partition.VolumeClaimName(int32(id))
	}
	return metav1.IsControlledBy(obj, o.Partition)
}

func (o *Observation) addForeign(what string) {
	for _, f := range o.Foreign {
		if f == what {
			return
		}
	}
	o.Foreign = append(o.Foreign, what)
}

// replicaIDOf reads the replica label.
func replicaIDOf(obj client.Object) (epoch.ReplicaID, bool) {
	n, err := strconv.ParseInt(obj.GetLabels()[v1alpha1.LabelReplica], 10, 32)
	return epoch.ReplicaID(n), err == nil && n >= 0
}

// observeTimes fills in for how long things have been as they are.
func (r *Reconciler) observeTimes(o *Observation) {
	o.Silence = r.heartbeats.silence(o.Partition.UID)
	present := map[string]bool{}
	since := func(what string) (d time.Duration) {
		present[what] = true
		return r.sightings.since(o.Partition.UID, what)
	}
	if o.Record.LeaderEpoch == 0 {
		for _, p := range o.Record.Replicas {
			if p.Session != epoch.NoSession {
				o.FirstRegistered = since("registered")
				break
			}
		}
	}
	if o.preferredFit() {
		o.PreferredFit = since(fmt.Sprintf("fit to lead %d", o.preferredLeader()))
	}
	for id, h := range o.Homes {
		if h.Unreachable {
			h.Silence = since("unreachable " + h.Node)
			o.Homes[id] = h
		}
	}
	o.Left = r.copies.observe(o.Partition.UID, o.Record.Progress)
	o.Deleting, o.Unplaced = map[types.UID]time.Duration{}, map[types.UID]time.Duration{}
	for _, pod := range o.Pods {
		if _, so := unscheduled(pod); so {
			o.Unplaced[pod.UID] = since("unplaced " + string(pod.UID))
		}
		if pod.DeletionTimestamp != nil {
			o.Deleting[pod.UID] = since("deleting " + string(pod.UID))
		}
	}
	r.sightings.keepOnly(o.Partition.UID, present)
}
