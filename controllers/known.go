package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// known remembers the UIDs of partitions, so that what is remembered of one can be
// forgotten when its name is gone or means another.
type known struct {
	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID
}

func newKnown() *known { return &known{uids: map[types.NamespacedName]types.UID{}} }

// meet takes note of a partition, and forgets an earlier one of its name.
func (k *known) meet(name types.NamespacedName, uid types.UID, forget func(types.UID)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if before, ok := k.uids[name]; ok && before != uid {
		forget(before)
	}
	k.uids[name] = uid
}

// leave returns the UID of a partition that is gone.
func (k *known) leave(name types.NamespacedName) (types.UID, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	uid, ok := k.uids[name]
	delete(k.uids, name)
	return uid, ok
}

// forget drops all that is remembered of a partition that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	dropMetrics(name.Namespace, name.Name)
	if uid, ok := r.known.leave(name); ok {
		r.forgetUID(uid)
	}
}
