package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// eventNoteLimit is what the API server allows for the note of an event, in bytes.
const eventNoteLimit = 1024

// event tells of something done to an object of a partition, or to the partition
// itself if about is nil. The reason is one of the closed lists of the API.
func (r *Reconciler) event(rp *v1alpha1.ReplicatedPartition, about client.Object, kind, reason, format string, args ...any) {
	var related runtime.Object
	if about != nil {
		related = about
	}
	r.Events.Eventf(rp, related, kind, reason, "Reconcile", "%s", note(format, args...))
}

// transition tells of a change of state. The API's recorder counts events of equal
// reason and action as one, with the first one's text; the partition epoch in the
// action keeps the second election from being told as the first one, twice.
func (r *Reconciler) transition(rp *v1alpha1.ReplicatedPartition, at int64, kind, reason, format string, args ...any) {
	r.Events.Eventf(rp, nil, kind, reason, fmt.Sprintf("PartitionEpoch%d", at), "%s", note(format, args...))
}

// note formats an event's text within what the API server takes.
func note(format string, args ...any) string {
	return truncate(fmt.Sprintf(format, args...), eventNoteLimit)
}
