package controllers

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// heartbeats remembers when this process last saw each leader's heartbeat change.
// Times in a Lease are compared for being the same only: clocks of other machines
// are never trusted (DESIGN.md, rule 1). A partition seen for the first time, as
// after a restart of the operator, starts with a full lease.
type heartbeats struct {
	clock *readableClock

	mu   sync.Mutex
	seen map[types.UID]beat
}

type beat struct {
	lease  types.UID
	sign   beatSign
	seenAt time.Duration
	// of is the partition, and term how long the lease lasts, 0 if it does not say.
	of   types.NamespacedName
	term time.Duration
}

// beatSign is what changes with each renewal and each change of leadership.
type beatSign struct {
	renewed     time.Time
	holder      string
	transitions int32
}

func newHeartbeats(clock *readableClock) *heartbeats {
	return &heartbeats{clock: clock, seen: map[types.UID]beat{}}
}

func signOf(l *coordinationv1.Lease) beatSign {
	var s beatSign
	if l.Spec.RenewTime != nil {
		s.renewed = l.Spec.RenewTime.UTC()
	}
	if l.Spec.HolderIdentity != nil {
		s.holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseTransitions != nil {
		s.transitions = *l.Spec.LeaseTransitions
	}
	return s
}

// observe takes note of a Lease, however it was come by. An older state than seen
// before can only make the leader look more alive.
func (h *heartbeats) observe(l *coordinationv1.Lease) {
	owner := ownerUID(l)
	if owner == "" {
		return
	}
	now := h.clock.reading()
	sign := signOf(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	if b, ok := h.seen[owner]; ok && b.lease == l.UID && b.sign == sign {
		return
	}
	b := beat{lease: l.UID, sign: sign, seenAt: now, of: types.NamespacedName{Namespace: l.Namespace, Name: l.Name}}
	if s := l.Spec.LeaseDurationSeconds; s != nil {
		b.term = time.Duration(*s) * time.Second
	}
	h.seen[owner] = b
}

// silence is for how long no change was seen of the partition's heartbeat.
func (h *heartbeats) silence(partition types.UID) time.Duration {
	now := h.clock.reading()
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.seen[partition]
	if !ok {
		return 0
	}
	// The clock may have taken provisional time back.
	return max(0, now-b.seenAt)
}

func (h *heartbeats) forget(partition types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, partition)
}

// ownerUID is the partition that a Lease belongs to, by its controller reference.
func ownerUID(l *coordinationv1.Lease) types.UID {
	for _, o := range l.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			return o.UID
		}
	}
	return ""
}
