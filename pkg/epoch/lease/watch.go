package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	// watchDuration is how long one watch request lasts before it is renewed, plus up
	// to as much again.
	watchDuration = 5 * time.Minute
	// The pause before a failed list or watch is tried again doubles from the first
	// to the second, and is spread by half so that replicas do not come in step.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// Watch calls onChange with every state of the record that it sees, skipping some
// as it likes, until ctx ends, and returns the error of ctx. It calls onError when it
// cannot tell: with an error that wraps [epoch.ErrNotFound] when the Lease is gone,
// with Decode's errors, or with that of a failed call, after which it goes on by
// itself. Both are called from the calling goroutine, one at a time.
//
// A state from Watch may be older than one that Get has returned, and the same state
// may come twice. A caller that sees an older one makes a quorum read before it
// believes that the record went back (DESIGN.md rule 7).
func (s *Store) Watch(ctx context.Context, onChange func(epoch.Snapshot), onError func(error)) error {
	w := watcher{store: s, onChange: onChange, onError: onError}
	pause := firstPause
	for ctx.Err() == nil {
		w.progressed = false
		err := w.run(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			w.version = ""
			w.report(err)
		}
		if w.progressed {
			pause = firstPause
		}
		if err == nil && w.progressed {
			continue
		}
		sleep(ctx, pause/2+rand.N(pause))
		pause = min(2*pause, lastPause)
	}
	return ctx.Err()
}

// sleep returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// watcher is the state of one Watch.
type watcher struct {
	store    *Store
	onChange func(epoch.Snapshot)
	onError  func(error)
	// version is where the next watch goes on; "" asks for a list first.
	version string
	// progressed: this run has learnt something, so the pause starts afresh.
	progressed bool
	failing    bool
}

// run lists if it must, and watches until the server ends the request. An error
// means that the next run has to list.
func (w *watcher) run(ctx context.Context) error {
	if w.version == "" {
		if err := w.list(ctx); err != nil {
			return fmt.Errorf("list %s: %w", w.store, err)
		}
	}
	duration := watchDuration + rand.N(watchDuration)
	seconds := int64(duration / time.Second)
	// The server ends the request; the deadline is for a server that forgets to.
	ctx, cancel := context.WithTimeout(ctx, duration+w.store.cfg.Timeout)
	defer cancel()
	opts := w.options()
	opts.Watch, opts.ResourceVersion, opts.TimeoutSeconds, opts.AllowWatchBookmarks = true, w.version, &seconds, true
	stream, err := w.store.request(w.store.cfg.Client.Get()).VersionedParams(&opts, parameterCodec).Watch(ctx)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.store, err)
	}
	defer stream.Stop()
	w.recovered()
	for event := range stream.ResultChan() {
		if err := w.event(event); err != nil {
			return fmt.Errorf("watch %s: %w", w.store, err)
		}
	}
	return nil
}

func (w *watcher) options() metav1.ListOptions {
	// RBAC by resource name grants list and watch only with this very selector.
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", w.store.cfg.Name).String()}
}

func (w *watcher) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.store.cfg.Timeout)
	defer cancel()
	opts := w.options()
	var list coordinationv1.LeaseList
	// No resourceVersion here either: a list from a cache may travel back in time.
	if err := w.store.request(w.store.cfg.Client.Get()).VersionedParams(&opts, parameterCodec).Do(ctx).Into(&list); err != nil {
		return err
	}
	w.version = list.ResourceVersion
	w.progressed = true
	if len(list.Items) == 0 {
		w.onError(fmt.Errorf("%s: %w", w.store, epoch.ErrNotFound))
		return nil
	}
	w.deliver(&list.Items[0])
	return nil
}

func (w *watcher) event(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	l, ok := e.Object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("an event %s carries %T instead of a Lease", e.Type, e.Object)
	}
	w.version = l.ResourceVersion
	w.progressed = true
	switch e.Type {
	case watch.Added, watch.Modified:
		w.deliver(l)
	case watch.Deleted:
		w.onError(fmt.Errorf("%s was deleted: %w", w.store, epoch.ErrNotFound))
	}
	return nil
}

func (w *watcher) deliver(l *coordinationv1.Lease) {
	snap, err := w.store.snapshot(l)
	if err != nil {
		w.onError(err)
		return
	}
	w.onChange(snap)
}

// report tells of a failure, except that "too old" only asks for a fresh list.
func (w *watcher) report(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	if !w.failing {
		w.failing = true
		w.store.cfg.Log.Info("watch of the partition record failed, trying again", "lease", w.store.String(), "error", err.Error())
	}
	w.onError(err)
}

func (w *watcher) recovered() {
	if w.failing {
		w.failing = false
		w.store.cfg.Log.Info("watch of the partition record works again", "lease", w.store.String())
	}
}
