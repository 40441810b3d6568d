package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// This file finds out whether a replica's volume is lost with its node. Only a volume that
// no other node can reach is: what a storage system attaches elsewhere, Kubernetes moves by
// itself. It is asked only of replicas whose pod is not ready, and by uncached reads: a
// partition that is well costs nothing.

// home is the node that a replica's volume cannot leave.
type home struct {
	Node string
	// Gone says how it is known that the node will not come back as it was, "" if it may.
	Gone string
	// Unreachable: the control plane has not heard of the node's kubelet for some time.
	Unreachable bool
	// Silence is for how long this process has seen that.
	Silence time.Duration
}

// observeHomes looks at the nodes of the replicas that are not well. An operator without
// the permission to read nodes and volumes replaces nothing, and says so.
func (r *Reconciler) observeHomes(ctx context.Context, o *Observation) error {
	o.Homes = map[epoch.ReplicaID]home{}
	for _, q := range o.Record.Replicas {
		claim := o.Claims[q.ID]
		if pod := o.Pods[q.ID]; pod != nil && podReady(pod) || claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		h, err := r.homeOf(ctx, claim, o.Pods[q.ID])
		if apierrors.IsForbidden(err) {
			o.HomesHidden = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		if h.Node != "" {
			o.Homes[q.ID] = h
		}
	}
	return nil
}

func (r *Reconciler) homeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) (home, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.APIReader.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, pv); err != nil {
		if apierrors.IsNotFound(err) {
			return home{}, nil // the claim tells so, and Kubernetes marks it as lost
		}
		return home{}, fmt.Errorf("read volume %s: %w", claim.Spec.VolumeName, err)
	}
	key, value := onlyNode(pv)
	if key == "" {
		return home{}, nil
	}
	name := value
	switch {
	case pod != nil && pod.Spec.NodeName != "":
		name = pod.Spec.NodeName
	case claim.Annotations[annotationSelectedNode] != "":
		name = claim.Annotations[annotationSelectedNode]
	case key == corev1.LabelHostname: // which need not be the node's name
		return r.homeByHostname(ctx, value)
	}
	node := &corev1.Node{}
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return deletedNode(name), nil
	case err != nil:
		return home{}, fmt.Errorf("read node %s: %w", name, err)
	}
	return homeOn(node), nil
}

// annotationSelectedNode is the node that the scheduler chose before the volume was made.
const annotationSelectedNode = "volume.kubernetes.io/selected-node"

func (r *Reconciler) homeByHostname(ctx context.Context, hostname string) (home, error) {
	var nodes corev1.NodeList
	if err := r.APIReader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelHostname: hostname}); err != nil {
		return home{}, fmt.Errorf("list nodes with the host name %s: %w", hostname, err)
	}
	switch len(nodes.Items) {
	case 0:
		return deletedNode(hostname), nil
	case 1:
		return homeOn(&nodes.Items[0]), nil
	}
	return home{}, nil
}

func deletedNode(name string) home {
	return home{Node: name, Gone: fmt.Sprintf("node %s was deleted", name)}
}

func homeOn(node *corev1.Node) home {
	h := home{Node: node.Name}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		h.Gone = fmt.Sprintf("node %s is out of service", node.Name)
	}
	h.Unreachable = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
	return h
}

// onlyNode is the label or field, and its value, by which a volume asks for the one node
// that can mount it, as local provisioners write it; "" if it asks for none, or for several.
func onlyNode(pv *corev1.PersistentVolume) (key, value string) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return "", ""
	}
	term := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
		if (e.Key == corev1.LabelHostname || e.Key == metav1.ObjectNameField) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Key, e.Values[0]
		}
	}
	return "", ""
}
