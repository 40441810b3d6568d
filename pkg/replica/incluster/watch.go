package incluster

import (
	"context"
	"math/rand/v2"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// watchSpec calls onChange with the ReplicatedPartition now and whenever its spec changes,
// or the addresses that the operator has found for its listeners, until ctx ends. It reports
// no errors: a replica goes on with what it knows.
func (r *reader) watchSpec(ctx context.Context, namespace, name string, onChange func(*v1alpha1.ReplicatedPartition)) {
	for ctx.Err() == nil {
		if p, err := r.partition(ctx, namespace, name); err == nil {
			onChange(p)
			r.watchOnce(ctx, p, onChange)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5*time.Second + rand.N(5*time.Second)):
		}
	}
}

// watchOnce ends with the watch, which the API server ends after some minutes.
func (r *reader) watchOnce(ctx context.Context, p *v1alpha1.ReplicatedPartition, onChange func(*v1alpha1.ReplicatedPartition)) {
	seconds := int64(300 + rand.IntN(300))
	w, err := r.partitions.Get().Namespace(p.Namespace).Resource("replicatedpartitions").
		VersionedParams(&metav1.ListOptions{Watch: true, TimeoutSeconds: &seconds, ResourceVersion: p.ResourceVersion,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", p.Name).String()}, r.parameters).
		Watch(ctx)
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		changed, ok := event.Object.(*v1alpha1.ReplicatedPartition)
		if !ok || changed.UID != p.UID {
			return
		}
		if changed.Generation != p.Generation || !reflect.DeepEqual(changed.Status.Listeners, p.Status.Listeners) {
			onChange(changed)
			p = changed
		}
	}
}
