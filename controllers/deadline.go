package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callTimeout ends one call to the API server that hangs, as behind a webhook or a proxy
// that does not answer. The partition concerned waits its back-off then, and leaves the
// worker to others. Calls of the record store have their own, the same.
const callTimeout = 5 * time.Second

// bounded is a client each of whose calls ends after limit. It cannot watch.
type bounded struct {
	client.Client
	limit time.Duration
}

// Get reads one object.
func (b bounded) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return boundedReader{b.Client, b.limit}.Get(ctx, key, obj, opts...)
}

// List reads many.
func (b bounded) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return boundedReader{b.Client, b.limit}.List(ctx, list, opts...)
}

// Create makes one.
func (b bounded) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Client.Create(ctx, obj, opts...)
}

// Apply makes or changes one.
func (b bounded) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Client.Apply(ctx, obj, opts...)
}

// Delete deletes one.
func (b bounded) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Client.Delete(ctx, obj, opts...)
}

// Status writes statuses.
func (b bounded) Status() client.SubResourceWriter {
	return boundedStatus{b.Client.Status(), b.limit}
}

type boundedStatus struct {
	client.SubResourceWriter
	limit time.Duration
}

// Update replaces a status.
func (b boundedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.SubResourceWriter.Update(ctx, obj, opts...)
}

// boundedReader is a reader each of whose calls ends after limit.
type boundedReader struct {
	client.Reader
	limit time.Duration
}

// Get reads one object.
func (b boundedReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Reader.Get(ctx, key, obj, opts...)
}

// List reads many.
func (b boundedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Reader.List(ctx, list, opts...)
}

// overloaded tells that the API server is not up to more calls now.
func overloaded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
