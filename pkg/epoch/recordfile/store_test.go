package recordfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson/recordgen"
)

var topic = epoch.UUID{1}

func first() epoch.Record { return epoch.New(topic, []epoch.ReplicaID{0}, 1, "c1") }

func change(r epoch.Record, id epoch.ChangeID) epoch.Record {
	r = r.Clone()
	r.PartitionEpoch++
	r.Changes = append(r.Changes, epoch.Change{PartitionEpoch: r.PartitionEpoch, ID: id, LeaderEpoch: r.LeaderEpoch})
	return r
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func created(t *testing.T, s *Store) epoch.Snapshot {
	t.Helper()
	snap, err := s.Create(t.Context(), first())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestStoreComparesAndSwapsAndOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	if _, err := s.Get(t.Context()); !errors.Is(err, epoch.ErrNotFound) {
		t.Fatalf("Get before Create: %v, want ErrNotFound", err)
	}
	if _, err := s.Update(t.Context(), epoch.Snapshot{}, first()); !errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("Update before Create: %v, want ErrNotFound", err)
	}
	base := created(t, s)
	if _, err := s.Create(t.Context(), first()); !errors.Is(err, epoch.ErrConflict) {
		t.Errorf("second Create: %v, want ErrConflict", err)
	}
	after, err := s.Update(t.Context(), base, change(base.Record, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), base, change(base.Record, "b")); !errors.Is(err, epoch.ErrConflict) {
		t.Errorf("Update of an old base: %v, want ErrConflict", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context()); err == nil {
		t.Error("Get after Close succeeded")
	}
	got, err := opened(t, dir).Get(t.Context())
	if err != nil || got.Version != after.Version || !reflect.DeepEqual(got.Record, after.Record) {
		t.Errorf("after a new start: %+v, %v; want %+v", got, err, after)
	}
}

func TestStoreRefuses(t *testing.T) {
	s := opened(t, t.TempDir())
	base := created(t, s)
	other := epoch.New(epoch.UUID{2}, []epoch.ReplicaID{0}, 1, "c")
	broken := base.Record
	broken.Leader = 9
	for name, r := range map[string]epoch.Record{"another topic id": other, "a leader that is not in sync": broken} {
		if _, err := s.Update(t.Context(), base, r); !errors.Is(err, epoch.ErrRejected) {
			t.Errorf("%s: %v, want ErrRejected", name, err)
		}
	}
	if _, err := Open(filepath.Dir(s.name)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Open: %v, want that another process has it", err)
	}
	for text, want := range map[string]error{
		"": recordjson.ErrMalformed, "{": recordjson.ErrMalformed, `{"version":0,"state":{}}`: recordjson.ErrMalformed,
		`{"version":1,"state":{"version":2}}`: recordjson.ErrNewerVersion,
	} {
		if err := os.WriteFile(s.name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context()); !errors.Is(err, want) {
			t.Errorf("a file %q: %v, want %v", text, err, want)
		}
	}
}

func TestStoreLetsOneOfManyWritersWin(t *testing.T) {
	s := opened(t, t.TempDir())
	base := created(t, s)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.Update(t.Context(), base, change(base.Record, epoch.ChangeID(fmt.Sprint(i)))) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, epoch.ErrConflict) {
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won, want 1", won)
	}
}

func TestWatchDeliversTheStateAndEveryLastWrite(t *testing.T) {
	s := opened(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, missing, done := make(chan epoch.Snapshot), make(chan error), make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(snap epoch.Snapshot) { seen <- snap }, func(err error) { missing <- err })
	}()
	if err := <-missing; !errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	snap := created(t, s)
	if got := <-seen; got.Version != snap.Version {
		t.Errorf("got version %s, want %s", got.Version, snap.Version)
	}
	var err error
	for i := range 20 {
		if snap, err = s.Update(t.Context(), snap, change(snap.Record, epoch.ChangeID(fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	for got := range seen {
		if got.Version == snap.Version {
			break
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
}

func TestCloseEndsWatches(t *testing.T) {
	s := opened(t, t.TempDir())
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() { done <- s.Watch(t.Context(), nil, func(error) { close(started) }) }()
	<-started
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("Watch ended without an error")
	}
}

// A power cut at any operation leaves the record before or after the write, and what
// Update returned as written is there.
func TestStoreOutlivesAPowerCutAtAnyOperation(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	s := open("/d", mem)
	base := created(t, s)
	next := change(base.Record, "next")
	cuts := 0
	mem.SetFault(func(op vfs.Op) error {
		cuts++
		got, err := open("/d", mem.Crash(vfs.Crash{})).Get(t.Context())
		if err != nil || got.Record.PartitionEpoch != 1 && got.Record.PartitionEpoch != 2 {
			t.Errorf("cut before %s of %s: %+v, %v", op.Kind, op.Name, got, err)
		}
		return nil
	})
	if _, err := s.Update(t.Context(), base, next); err != nil {
		t.Fatal(err)
	}
	mem.SetFault(nil)
	got, err := open("/d", mem.Crash(vfs.Crash{})).Get(t.Context())
	if err != nil || got.Record.PartitionEpoch != 2 {
		t.Errorf("after the write: %+v, %v", got.Record, err)
	}
	if cuts < 5 {
		t.Errorf("only %d operations were seen", cuts)
	}
}

func TestAFailedSyncLeavesThisAndLaterWritesUndecided(t *testing.T) {
	for _, c := range []struct {
		name      string
		kind      vfs.OpKind
		err       error
		goesOn    bool
		seenAfter epoch.PartitionEpoch
	}{
		{"a failed sync of the file", vfs.OpSync, syscall.EIO, false, 1},
		{"a failed sync of the directory", vfs.OpSyncDir, syscall.EIO, false, 2},
		{"a full disk", vfs.OpWrite, syscall.ENOSPC, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			if err := mem.MkdirAll("/d"); err != nil {
				t.Fatal(err)
			}
			s := open("/d", mem)
			base := created(t, s)
			mem.SetFault(func(op vfs.Op) error {
				if op.Kind == c.kind {
					return c.err
				}
				return nil
			})
			_, err := s.Update(t.Context(), base, change(base.Record, "x"))
			if !errors.Is(err, c.err) || errors.Is(err, epoch.ErrRejected) || errors.Is(err, epoch.ErrConflict) {
				t.Errorf("got %v, want an undecided %v", err, c.err)
			}
			mem.SetFault(nil)
			snap, err := s.Get(t.Context())
			if err != nil || snap.Record.PartitionEpoch != c.seenAfter {
				t.Errorf("Get: %+v, %v", snap.Record, err)
			}
			if _, err := s.Update(t.Context(), snap, change(snap.Record, "y")); (err == nil) != c.goesOn {
				t.Errorf("the next write: %v", err)
			}
		})
	}
}

func TestContentSurvivesTheRoundTrip(t *testing.T) {
	var old content
	for seed := range uint64(300) {
		want := recordgen.Record(rand.New(rand.NewPCG(seed, 9)))
		b, err := encode(old, want)
		if err != nil {
			t.Fatal(err)
		}
		c, got, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, want) || c.Version != old.Version+1 {
			t.Fatalf("seed %d: version %d, %+v, %v\nwant %+v", seed, c.Version, got, err, want)
		}
		old = c
	}
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(3) {
		b, err := encode(content{}, recordgen.Record(rand.New(rand.NewPCG(seed, 8))))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, r, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(c, r)
		if err != nil {
			return // a time that JSON cannot hold
		}
		if _, got, err := decode(again); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
		}
	})
}
