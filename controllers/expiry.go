package controllers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// expiry wakes the partitions whose leader has missed a heartbeat, so that one that is well
// needs no timer: a thousand timers of a lease each would be a hundred looks a second that
// find nothing.
type expiry struct {
	heartbeats *heartbeats
	wake       chan event.GenericEvent
}

// scanInterval is how often leaders are looked over. A partition is woken at half of its lease, and
// goes by its own timer from there.
const scanInterval = 500 * time.Millisecond

func newExpiry(h *heartbeats) *expiry {
	return &expiry{heartbeats: h, wake: make(chan event.GenericEvent)}
}

// Start scans until ctx ends.
func (e *expiry) Start(ctx context.Context) error {
	t := time.NewTicker(scanInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		for _, name := range e.heartbeats.missed() {
			rp := &v1alpha1.ReplicatedPartition{}
			rp.Namespace, rp.Name = name.Namespace, name.Name
			select {
			case <-ctx.Done():
				return nil
			case e.wake <- event.GenericEvent{Object: rp}:
			}
		}
	}
}

// missed holds the partitions whose leader has been silent for half of its lease, and not yet
// for two: from there on nothing changes but by an event.
func (h *heartbeats) missed() []types.NamespacedName {
	now := h.clock.reading()
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []types.NamespacedName
	for _, b := range h.seen {
		if silence := now - b.seenAt; b.sign.holder != "" && b.term > 0 && silence >= b.term/2 && silence < 2*b.term {
			out = append(out, b.of)
		}
	}
	return out
}
