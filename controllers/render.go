package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// ReplicaDefaults is what the operator decides for all partitions.
type ReplicaDefaults struct {
	// Image is used where spec.image is unset.
	Image string
	// PullPolicy of the replicas' image; IfNotPresent when empty.
	PullPolicy corev1.PullPolicy
	// PullSecrets name Secrets in the partition's namespace; usually none.
	PullSecrets []string
}

// Desired is what a spec, together with the record's assignment, asks for.
type Desired struct {
	// Children are all objects but the pods, in the order in which they are made.
	Children []client.Object
	// Pods by replica id.
	Pods map[epoch.ReplicaID]*corev1.Pod
}

// Render makes the desired objects. It is deterministic, and equal input gives
// equal output in every version of the operator, but for what a version means to
// change: a difference in a pod restarts it (the golden files in testdata show it).
func Render(rp *v1alpha1.ReplicatedPartition, r epoch.Record, d ReplicaDefaults) (Desired, error) {
	want := Desired{Pods: map[epoch.ReplicaID]*corev1.Pod{}}
	want.Children = append(want.Children, renderServiceAccount(rp), renderRole(rp, r), renderRoleBinding(rp),
		renderReplicasService(rp), renderClientService(rp))
	if b := renderBudget(rp, r); b != nil {
		want.Children = append(want.Children, b)
	}
	for _, s := range renderListeners(rp, r) {
		want.Children = append(want.Children, s)
	}
	for _, p := range r.Replicas {
		want.Children = append(want.Children, renderClaim(rp, r, p))
		pod := renderPod(rp, p.ID, d)
		if err := stamp(pod, v1alpha1.AnnotationTemplateHash); err != nil {
			return Desired{}, err
		}
		want.Pods[p.ID] = pod
	}
	for _, c := range want.Children {
		if err := stamp(c, v1alpha1.AnnotationAppliedHash); err != nil {
			return Desired{}, err
		}
	}
	return want, nil
}

// stamp puts the hash of the whole object into an annotation.
func stamp(obj client.Object, annotation string) error {
	b, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("hash %s: %w", describe(obj), err)
	}
	sum := sha256.Sum256(b)
	a := obj.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[annotation] = hex.EncodeToString(sum[:8])
	obj.SetAnnotations(a)
	return nil
}

// partitionLabels are on every object of a partition, and never change.
func partitionLabels(rp *v1alpha1.ReplicatedPartition) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.AppName,
		v1alpha1.LabelInstance:  rp.Name,
		v1alpha1.LabelManagedBy: v1alpha1.ManagerName,
		v1alpha1.LabelPartition: rp.Name,
	}
}

// podSelector selects the pods of a partition. Never by role: a label that changes
// with the leader would make a budget count wrong at the worst moment.
func podSelector(rp *v1alpha1.ReplicatedPartition) map[string]string {
	return map[string]string{v1alpha1.LabelName: v1alpha1.AppName, v1alpha1.LabelPartition: rp.Name}
}

func replicaLabels(rp *v1alpha1.ReplicatedPartition, id epoch.ReplicaID) map[string]string {
	l := partitionLabels(rp)
	l[v1alpha1.LabelReplica] = strconv.Itoa(int(id))
	return l
}

// owned is the metadata of a child that goes when the partition goes.
func owned(rp *v1alpha1.ReplicatedPartition, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: rp.Namespace, Name: name, Labels: partitionLabels(rp),
		OwnerReferences: []metav1.OwnerReference{*ownerReference(rp)},
	}
}

func ownerReference(rp *v1alpha1.ReplicatedPartition) *metav1.OwnerReference {
	return metav1.NewControllerRef(rp, v1alpha1.GroupVersion.WithKind("ReplicatedPartition"))
}

// describe names an object for people: "Service orders".
func describe(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	return kind + " " + obj.GetName()
}
