package controllers

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// planVolumes tells of volumes that are smaller than the spec wants: growing, or refused by
// whoever provides them. There is nothing to do about it here: Kubernetes tries again by
// itself, and the user may take the size back to what the volumes have.
func planVolumes(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		if why := resizeRefused(o.Claims[q.ID], o.Partition.Spec.Storage.Size); why != "" {
			p.note(metav1.ConditionFalse, v1alpha1.ReasonStorageResizeRefused, "%s", why)
			return
		}
	}
	for _, q := range o.Record.Replicas {
		if how := resizing(o.Claims[q.ID], o.Partition.Spec.Storage.Size); how != "" {
			p.note(metav1.ConditionTrue, v1alpha1.ReasonResizing, "%s", how)
			return
		}
	}
}

// tooSmall reports that a volume exists and holds less than wanted, and what it holds.
func tooSmall(c *corev1.PersistentVolumeClaim, want resource.Quantity) (resource.Quantity, bool) {
	if c == nil {
		return resource.Quantity{}, false
	}
	have, ok := c.Status.Capacity[corev1.ResourceStorage]
	return have, ok && have.Cmp(want) < 0
}

// resizeRefused says why a volume will not grow, "" if it may.
func resizeRefused(c *corev1.PersistentVolumeClaim, want resource.Quantity) string {
	have, small := tooSmall(c, want)
	if !small {
		return ""
	}
	said := ""
	for _, k := range c.Status.Conditions {
		if k.Status == corev1.ConditionTrue && (k.Type == corev1.PersistentVolumeClaimControllerResizeError || k.Type == corev1.PersistentVolumeClaimNodeResizeError) {
			said = k.Message
			if said == "" {
				said = string(k.Type)
			}
		}
	}
	switch s := c.Status.AllocatedResourceStatuses[corev1.ResourceStorage]; s {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		if said == "" {
			said = string(s)
		}
	}
	if said == "" {
		return ""
	}
	return fmt.Sprintf("the volume of claim %s cannot grow from %s to %s: %s; Kubernetes goes on trying: lower spec.storage.size, to %s at least, or make room for it",
		c.Name, have.String(), want.String(), said, have.String())
}

// resizing says how far a volume that grows has come, "" if none does.
func resizing(c *corev1.PersistentVolumeClaim, want resource.Quantity) string {
	have, small := tooSmall(c, want)
	if !small {
		return ""
	}
	how := "it is being grown by its provider"
	for _, k := range c.Status.Conditions {
		if k.Type == corev1.PersistentVolumeClaimFileSystemResizePending && k.Status == corev1.ConditionTrue {
			how = "the volume has grown, and its file system grows next, on the pod's node"
		}
	}
	return fmt.Sprintf("the volume of claim %s has %s of %s: %s", c.Name, have.String(), want.String(), how)
}

// capacity is what the smallest volume of the assigned replicas holds, nil if none has been
// provided yet.
func (o *Observation) capacity() *resource.Quantity {
	var least *resource.Quantity
	for _, q := range o.Record.Replicas {
		c := o.Claims[q.ID]
		if c == nil {
			continue
		}
		if have, ok := c.Status.Capacity[corev1.ResourceStorage]; ok && (least == nil || have.Cmp(*least) < 0) {
			least = &have
		}
	}
	return least
}

// volumePending says what is known of a claim without a volume, for a pod that waits for it;
// "" if it has one, or the pod waits for something else.
func (o *Observation) volumePending(id epoch.ReplicaID, scheduler string) string {
	c := o.Claims[id]
	if c == nil || c.Spec.VolumeName != "" || c.Status.Phase == corev1.ClaimBound {
		return ""
	}
	said := strings.ToLower(scheduler)
	if !strings.Contains(said, "persistentvolume") && !strings.Contains(said, "storageclass") && !strings.Contains(said, "volume") {
		return ""
	}
	class := "the default storage class"
	if c.Spec.StorageClassName != nil {
		class = "storage class " + *c.Spec.StorageClassName
	}
	return fmt.Sprintf("the volume claim %s has no volume yet (%s): %s; make that class, or see the claim's events for what its provider says", c.Name, class, scheduler)
}
