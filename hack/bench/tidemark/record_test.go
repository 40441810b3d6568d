package tidemark

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestProcessesThatShareARecordSwapItOneAfterAnother(t *testing.T) {
	dir := t.TempDir()
	if _, err := (Records{dir}).Create(t.Context(), epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1, 2}, 2, "a")); err != nil {
		t.Fatal(err)
	}
	base, err := Records{dir}.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var won, lost int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 { // file locks are of an open file, so goroutines stand for processes
		all.Go(func() {
			_, err := Records{dir}.Update(t.Context(), base, base.Record)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, epoch.ErrConflict):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d swaps of one base were written and %d refused, want 1 and 7", won, lost)
	}
}

func TestAWatchSeesTheWritesOfOthers(t *testing.T) {
	dir := t.TempDir()
	first, err := Records{dir}.Create(t.Context(), epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0}, 1, "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var versions []string
	err = Records{dir}.Watch(ctx, func(s epoch.Snapshot) {
		versions = append(versions, s.Version)
		if len(versions) == 2 {
			cancel()
		} else if _, err := (Records{dir}).Update(ctx, first, first.Record); err != nil {
			t.Error(err)
		}
	}, func(err error) { t.Error(err) })
	if !errors.Is(err, context.Canceled) || versions[0] == versions[1] {
		t.Errorf("the watch saw versions %v and ended with %v", versions, err)
	}
}
