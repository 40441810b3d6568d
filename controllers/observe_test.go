package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vain counts what was looked for in the API and was not there.
type vain struct {
	client.Reader
	mu    sync.Mutex
	names map[string]int
}

func (v *vain) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := v.Reader.Get(ctx, key, obj, opts...)
	if apierrors.IsNotFound(err) {
		v.mu.Lock()
		v.names[fmt.Sprintf("%T %s", obj, key.Name)]++
		v.mu.Unlock()
	}
	return err
}

// That a name is free costs one read of the API for each object: with thousands of new
// partitions the reads are half of what the API server has to do for them.
func TestANewPartitionAsksOnceWhetherANameIsFree(t *testing.T) {
	b := needsBareCluster(t)
	w := newWorld(t, b, &fakeClock{at: time.Now()}, nil)
	defer w.forget()
	o := w.newOperator()
	v := &vain{Reader: o.APIReader, names: map[string]int{}}
	o.APIReader = v
	if err := w.settle(o, nil, scenarios[0].finished(w)); err != nil {
		t.Fatal(err)
	}
	if len(v.names) < 12 {
		t.Errorf("it asked for %v only: what it did not ask for it may take from somebody else", slices.Sorted(maps.Keys(v.names)))
	}
	for name, n := range v.names {
		if n > 1 {
			t.Errorf("it asked for %s %d times", name, n)
		}
	}
}
