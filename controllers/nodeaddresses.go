package controllers

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// nodeAddressesFor is how long the addresses of a node are remembered. They hardly ever change,
// and a cache of all nodes would be told of every node's heartbeats.
const nodeAddressesFor = time.Minute

// nodeBook remembers the addresses of the nodes that run replicas, for all partitions.
type nodeBook struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]nodeEntry
}

type nodeEntry struct {
	addresses []corev1.NodeAddress
	read      time.Time
}

func newNodeBook() *nodeBook { return &nodeBook{now: time.Now, known: map[string]nodeEntry{}} }

func (b *nodeBook) get(name string) ([]corev1.NodeAddress, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.known[name]
	return e.addresses, ok && b.now().Sub(e.read) < nodeAddressesFor
}

func (b *nodeBook) put(name string, addresses []corev1.NodeAddress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.known, func(_ string, e nodeEntry) bool { return b.now().Sub(e.read) >= nodeAddressesFor })
	b.known[name] = nodeEntry{addresses: addresses, read: b.now()}
}

// observeNodeAddresses reads the addresses of the nodes that clients are told. Of a node that
// may not be read, or is gone, there are none: what its pods say is good enough.
func (r *Reconciler) observeNodeAddresses(ctx context.Context, o *Observation) error {
	if !o.asksNodes() {
		return nil
	}
	o.NodeAddresses = map[string][]corev1.NodeAddress{}
	for _, q := range o.Record.Replicas {
		pod := o.Pods[q.ID]
		if pod == nil || pod.Spec.NodeName == "" {
			continue
		}
		name := pod.Spec.NodeName
		addresses, known := r.nodes.get(name)
		if !known {
			node := &corev1.Node{}
			err := r.APIReader.Get(ctx, types.NamespacedName{Name: name}, node)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
				return fmt.Errorf("read node %s: %w", name, err)
			}
			addresses = node.Status.Addresses
			r.nodes.put(name, addresses)
		}
		o.NodeAddresses[name] = addresses
	}
	return nil
}
