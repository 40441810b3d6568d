package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// applyObject applies one child by server-side apply. An object that is there is
// named by UID, so that another of its name is never touched. For one that is not
// there (it was read from the API a moment ago) nothing is forced: should a foreign
// one appear in that moment, the API server reports a conflict.
func (r *Reconciler) applyObject(ctx context.Context, a Apply) error {
	u, err := applyConfiguration(a.Desired)
	if err != nil {
		return err
	}
	opts := []client.ApplyOption{client.FieldOwner(v1alpha1.ManagerName)}
	if a.Live != nil {
		u.SetUID(a.Live.GetUID())
		if a.releases() {
			u.SetResourceVersion(a.Live.GetResourceVersion())
		}
		opts = append(opts, client.ForceOwnership)
	}
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		return fmt.Errorf("apply %s: %w", describe(a.Desired), err)
	}
	objectsApplied.WithLabelValues(u.GetKind()).Inc()
	log.FromContext(ctx).V(1).Info("object applied", "kind", u.GetKind(), "name", u.GetName())
	return nil
}

// releases tells whether a volume claim is to be marked as released, or not to be any more.
func (a Apply) releases() bool {
	const mark = v1alpha1.AnnotationReleased
	_, isClaim := a.Desired.(*corev1.PersistentVolumeClaim)
	return isClaim && a.Live != nil && a.Desired.GetAnnotations()[mark] != a.Live.GetAnnotations()[mark]
}

// applyRelease does that if the record is as it was judged, and the claim is as it was read:
// an operator that comes late must not undo what another has begun.
func (r *Reconciler) applyRelease(ctx context.Context, o *Observation, a Apply) error {
	now, err := r.readRecord(ctx, o.Partition)
	if err != nil {
		return err
	}
	if now.PartitionEpoch != o.Record.PartitionEpoch {
		return errOvertaken
	}
	return r.applyObject(ctx, a)
}

func applyConfiguration(obj client.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", describe(obj), err)
	}
	delete(m, "status")
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: m}, nil
}

// createPod makes a pod. Its spec cannot be changed later, so it is created and not
// applied; a name that is taken is seen by the next look.
func (r *Reconciler) createPod(ctx context.Context, o *Observation, a CreatePod) error {
	pod := o.Desired.Pods[a.ID].DeepCopy()
	err := r.Client.Create(ctx, pod, client.FieldOwner(v1alpha1.ManagerName))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	podsCreated.Inc()
	log.FromContext(ctx).Info("pod created", "pod", pod.Name)
	r.event(o.Partition, pod, normal, v1alpha1.EventPodCreated, "created pod %s", pod.Name)
	return nil
}

// deletePod deletes the pod that was judged, if the policies still agree on the
// record as it now is.
func (r *Reconciler) deletePod(ctx context.Context, o *Observation, a DeletePod) error {
	fresh, err := r.withFreshRecord(ctx, o)
	if err != nil {
		return err
	}
	if d := podPolicies.judge(podCase{Observation: fresh, ID: a.ID, Cause: a.Cause}); !d.Allowed {
		return nil
	}
	remove := r.deleteExactly
	if a.Cause == PodLost {
		remove = r.deleteAtOnce
	}
	if err := remove(ctx, o.Pods[a.ID]); err != nil {
		return fmt.Errorf("delete pod %s: %w", a.Name, err)
	}
	podsDeleted.WithLabelValues(string(a.Cause)).Inc()
	log.FromContext(ctx).Info("pod deleted", "pod", a.Name, "cause", string(a.Cause), "because", a.Message)
	r.event(o.Partition, o.Pods[a.ID], normal, v1alpha1.EventPodDeleted, "deleted pod %s: %s", a.Name, a.Message)
	return nil
}

// deleteClaim deletes the claim that was judged, if the policies still agree.
func (r *Reconciler) deleteClaim(ctx context.Context, o *Observation, a DeleteClaim) error {
	fresh, err := r.withFreshRecord(ctx, o)
	if err != nil {
		return err
	}
	policies, why := claimPolicies, fmt.Sprintf("of the removed replica %d, as persistentVolumeClaimRetentionPolicy.whenScaled asks", a.ID)
	if a.Lost != "" {
		policies, why = lostPolicies, fmt.Sprintf("of replica %d, which is made anew: %s", a.ID, a.Lost)
	}
	if d := policies.judge(claimCase{Observation: fresh, ID: a.ID}); !d.Allowed {
		return nil
	}
	if err := r.deleteExactly(ctx, o.Claims[a.ID]); err != nil {
		return fmt.Errorf("delete volume claim %s: %w", a.Name, err)
	}
	claimsDeleted.Inc()
	log.FromContext(ctx).Info("volume claim deleted", "claim", a.Name, "because", why)
	r.event(o.Partition, o.Claims[a.ID], normal, v1alpha1.EventVolumeDeleted, "deleted volume claim %s %s", a.Name, why)
	return nil
}

// withFreshRecord is the observation with the record as it now is in the API.
func (r *Reconciler) withFreshRecord(ctx context.Context, o *Observation) (*Observation, error) {
	rec, err := r.readRecord(ctx, o.Partition)
	if err != nil {
		return nil, err
	}
	fresh := *o
	fresh.setRecord(rec, nil)
	return &fresh, nil
}

// deleteExactly deletes the object as it was read, and no later one.
func (r *Reconciler) deleteExactly(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteAtOnce deletes it without waiting for a kubelet, which is gone.
func (r *Reconciler) deleteAtOnce(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.IgnoreNotFound(r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.GracePeriodSeconds(0)))
}
