package controllers

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// eventNoteLimit is what the API server allows for the note of an event, in bytes.
const eventNoteLimit = 1024

// event tells of a transition. The reason is one of the closed lists of the API.
func (r *Reconciler) event(rp *v1alpha1.ReplicatedPartition, kind, reason, format string, args ...any) {
	r.Events.Eventf(rp, nil, kind, reason, "Reconcile", "%s", note(format, args...))
}
