package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// renderClaim is the volume claim of an assigned replica. It has no owner unless
// volumes are to go with the partition: deleting a ReplicatedPartition must not
// delete its data by default.
func renderClaim(rp *v1alpha1.ReplicatedPartition, r epoch.Record, p epoch.Replica) *corev1.PersistentVolumeClaim {
	policy := rp.Spec.PersistentVolumeClaimRetentionPolicy
	meta := metav1.ObjectMeta{Namespace: rp.Namespace, Name: rp.VolumeClaimName(int32(p.ID)), Labels: replicaLabels(rp, p.ID),
		Annotations: map[string]string{v1alpha1.AnnotationTopicID: r.TopicID.String()}}
	if policy.WhenDeleted == v1alpha1.DeleteVolume {
		// Not as controller: a claim that was kept from an earlier partition of the
		// same name may be taken over.
		owner := ownerReference(rp)
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
		meta.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if p.Removing && policy.WhenScaled == v1alpha1.DeleteVolume {
		meta.Annotations[v1alpha1.AnnotationReleased] = r.TopicID.String()
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: rp.Spec.Storage.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: rp.Spec.Storage.Size}},
		},
	}
}

// growOnly keeps a claim at the size that it has when the desired one is smaller,
// as with a claim kept from an earlier, larger partition of the same name. Growth that has
// not come about can be taken back: the API server allows any size above the volume's own.
func growOnly(want, live *corev1.PersistentVolumeClaim) {
	have := live.Spec.Resources.Requests[corev1.ResourceStorage]
	holds, provided := live.Status.Capacity[corev1.ResourceStorage]
	if size := want.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(have) < 0 && (!provided || size.Cmp(holds) <= 0) {
		want.Spec.Resources.Requests[corev1.ResourceStorage] = have
	}
	// The class cannot change; a default class may have been filled in since.
	if live.Spec.StorageClassName != nil {
		want.Spec.StorageClassName = live.Spec.StorageClassName
	}
}
