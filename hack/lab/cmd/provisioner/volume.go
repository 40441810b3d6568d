package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	name    = "lab.local/dir"
	byKey   = "pv.kubernetes.io/provisioned-by"
	nodeKey = "volume.kubernetes.io/selected-node"
	askKey  = "volume.kubernetes.io/storage-provisioner"
)

func volumeName(pvc *corev1.PersistentVolumeClaim) string { return "pvc-" + string(pvc.UID) }

// create makes the directory, then the volume that names it.
func (p *provisioner) create(ctx context.Context, pvc *corev1.PersistentVolumeClaim, sc *storagev1.StorageClass) error {
	// The PV controller asks an external provisioner with this annotation. A volume made
	// before that can race with its first sync and stay unbound until the next full one.
	if pvc.Annotations[askKey] != name {
		return nil
	}
	node := pvc.Annotations[nodeKey]
	if sc.VolumeBindingMode != nil && *sc.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer && node == "" {
		return nil
	}
	where := corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}
	if sc.Parameters["scope"] == "node" {
		where.Key, where.Values = corev1.LabelHostname, []string{node}
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if sc.ReclaimPolicy != nil {
		reclaim = *sc.ReclaimPolicy
	}
	dir := filepath.Join(p.base, volumeName(pvc))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(pvc), Annotations: map[string]string{byKey: name}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: pvc.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   pvc.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              sc.Name,
			VolumeMode:                    pvc.Spec.VolumeMode,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}},
			NodeAffinity:                  &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{where}}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	log.Printf("made %s for %s/%s", volumeName(pvc), pvc.Namespace, pvc.Name)
	return nil
}

// grow follows a claim that asks for more. A directory has no size, so only the two objects change.
func (p *provisioner) grow(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	want, have := pvc.Spec.Resources.Requests[corev1.ResourceStorage], pvc.Status.Capacity[corev1.ResourceStorage]
	if want.Cmp(have) <= 0 {
		return nil
	}
	capacity := map[string]any{"capacity": map[string]string{"storage": want.String()}}
	spec, err := json.Marshal(map[string]any{"spec": capacity})
	if err != nil {
		return err
	}
	status, err := json.Marshal(map[string]any{"status": capacity})
	if err != nil {
		return err
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Patch(ctx, pvc.Spec.VolumeName, types.MergePatchType, spec, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumeClaims(pvc.Namespace).Patch(ctx, pvc.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err == nil {
		log.Printf("resized %s/%s to %s", pvc.Namespace, pvc.Name, want.String())
	}
	return err
}

// removeReleased deletes a volume of ours, and its data, once its claim is gone and the policy says Delete.
func (p *provisioner) removeReleased(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Annotations[byKey] != name || pv.Status.Phase != corev1.VolumeReleased || pv.DeletionTimestamp != nil ||
		pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || pv.Spec.Local == nil {
		return nil
	}
	log.Printf("delete %s", pv.Name)
	if filepath.Dir(pv.Spec.Local.Path) == filepath.Clean(p.base) {
		if err := os.RemoveAll(pv.Spec.Local.Path); err != nil {
			return err
		}
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
