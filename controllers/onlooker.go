package controllers

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// onlooker takes note of heartbeats in an operator that stands by. A node that
// vanishes may take the working operator along with a partition's leader; the one
// that steps in then knows already for how long that leader has been silent.
type onlooker struct {
	cache      cache.Cache
	heartbeats *heartbeats
}

// NeedLeaderElection lets it run while standing by.
func (o *onlooker) NeedLeaderElection() bool { return false }

// Start watches until ctx ends.
func (o *onlooker) Start(ctx context.Context) error {
	informer, err := o.cache.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return fmt.Errorf("watch Leases: %w", err)
	}
	note := func(obj any) {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			o.heartbeats.observe(l)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    note,
		UpdateFunc: func(_, now any) { note(now) },
	})
	if err != nil {
		return fmt.Errorf("watch Leases: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}
