package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

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
// the permission to read nodes and volumes replaces nothing.
func (r *Reconciler) observeHomes(ctx context.Context, o *Observation) error {
	o.Homes = map[epoch.ReplicaID]home{}
	for _, q := range o.Record.Replicas {
		claim := o.Claims[q.ID]
		if pod := o.Pods[q.ID]; pod != nil && podReady(pod) || claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		h, err := r.homeOf(ctx, claim.Spec.VolumeName)
		if apierrors.IsForbidden(err) {
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

func (r *Reconciler) homeOf(ctx context.Context, volume string) (home, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.APIReader.Get(ctx, types.NamespacedName{Name: volume}, pv); err != nil {
		if apierrors.IsNotFound(err) {
			return home{}, nil // the claim tells so, and Kubernetes marks it as lost
		}
		return home{}, fmt.Errorf("read volume %s: %w", volume, err)
	}
	h := home{Node: onlyNode(pv)}
	if h.Node == "" {
		return h, nil
	}
	node := &corev1.Node{}
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: h.Node}, node)
	switch {
	case apierrors.IsNotFound(err):
		h.Gone = fmt.Sprintf("node %s was deleted", h.Node)
	case err != nil:
		return home{}, fmt.Errorf("read node %s: %w", h.Node, err)
	default:
		h.judge(node)
	}
	return h, nil
}

func (h *home) judge(node *corev1.Node) {
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		h.Gone = fmt.Sprintf("node %s is out of service", node.Name)
	}
	h.Unreachable = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// onlyNode is the one node that can mount a volume, by its host name as local provisioners
// write it; "" if there is none such, or more.
func onlyNode(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	term := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
		if (e.Key == corev1.LabelHostname || e.Key == "metadata.name") && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Values[0]
		}
	}
	return ""
}
