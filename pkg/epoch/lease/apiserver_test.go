package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

const assets = "KUBEBUILDER_ASSETS"

var server struct {
	once sync.Once
	env  *envtest.Environment
	cfg  *rest.Config
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.env != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}
	os.Exit(code)
}

// apiServer starts one real kube-apiserver for all tests of the package.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Skip(assets + " is not set: it names the folder with kube-apiserver and etcd")
	}
	server.once.Do(func() {
		server.env = &envtest.Environment{}
		server.cfg, server.err = server.env.Start()
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.cfg
}

func realStore(t *testing.T, topic epoch.UUID) (*lease.Store, rest.Interface) {
	t.Helper()
	client, err := lease.NewClient(apiServer(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	s, err := lease.New(lease.Config{Client: client, Namespace: "default", Name: name, TopicID: topic})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func nameOf(s *lease.Store) string {
	return strings.TrimPrefix(s.String(), "Lease default/")
}

// change makes the next record as the rules do, without needing them.
func change(r epoch.Record, id epoch.ChangeID) epoch.Record {
	r = r.Clone()
	r.PartitionEpoch++
	r.Changes = append(r.Changes, epoch.Change{PartitionEpoch: r.PartitionEpoch, ID: id, LeaderEpoch: r.LeaderEpoch})
	return r
}

func remove(t *testing.T, s *lease.Store, c rest.Interface) {
	t.Helper()
	if err := c.Delete().Namespace("default").Resource("leases").Name(nameOf(s)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

func TestStoreComparesAndSwaps(t *testing.T) {
	topic := epoch.UUID{3}
	s, client := realStore(t, topic)
	ctx := t.Context()
	if _, err := s.Get(ctx); !errors.Is(err, epoch.ErrNotFound) {
		t.Fatalf("Get of nothing: %v, want ErrNotFound", err)
	}
	first := epoch.New(topic, []epoch.ReplicaID{0, 1, 2}, 2, "c1")
	created, err := s.Create(ctx, first, metav1.ObjectMeta{Labels: map[string]string{"app": "tidemark"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, first, metav1.ObjectMeta{}); !errors.Is(err, epoch.ErrConflict) {
		t.Errorf("second Create: %v, want ErrConflict", err)
	}
	a, err := s.Update(ctx, created, change(created.Record, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(ctx, created, change(created.Record, "b")); !errors.Is(err, epoch.ErrConflict) {
		t.Errorf("Update of an old base: %v, want ErrConflict", err)
	}
	got, err := s.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != a.Version || got.Record.LastChange().ID != "a" {
		t.Errorf("got version %s, change %s; want %s, a", got.Version, got.Record.LastChange().ID, a.Version)
	}
	if l := got.Object.(*coordinationv1.Lease); l.Labels["app"] != "tidemark" {
		t.Errorf("labels = %v", l.Labels)
	}

	remove(t, s, client)
	if _, err := s.Update(ctx, a, change(a.Record, "d")); !errors.Is(err, epoch.ErrConflict) && !errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("Update of a deleted Lease: %v, want a refusal", err)
	}
	if _, err := s.Get(ctx); !errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("an update brought the deleted record back to life: %v", err)
	}
}

func TestStoreLetsOneOfManyWritersWin(t *testing.T) {
	topic := epoch.UUID{4}
	s, _ := realStore(t, topic)
	base, err := s.Create(t.Context(), epoch.New(topic, []epoch.ReplicaID{0}, 1, "c1"), metav1.ObjectMeta{})
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = s.Update(t.Context(), base, change(base.Record, epoch.ChangeID(fmt.Sprint("w", i))))
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, epoch.ErrConflict):
			t.Errorf("a loser got %v, want ErrConflict", err)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won, want 1", won)
	}
}

func TestStoreNeverAdoptsAForeignLease(t *testing.T) {
	s, client := realStore(t, epoch.UUID{5})
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: nameOf(s), Namespace: "default"}}
	if err := client.Post().Namespace("default").Resource("leases").Body(foreign).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	snap, err := s.Get(t.Context())
	if !errors.Is(err, epoch.ErrForeign) {
		t.Errorf("Get: %v, want ErrForeign", err)
	}
	if snap.Version == "" {
		t.Error("the version of what was read is missing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = s.Watch(ctx, func(epoch.Snapshot) { t.Error("delivered"); cancel() }, func(err error) {
		if !errors.Is(err, epoch.ErrForeign) {
			t.Errorf("watch: %v, want ErrForeign", err)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
}

func TestWatchSeesChangesDeletionAndNewLease(t *testing.T) {
	topic := epoch.UUID{6}
	s, client := realStore(t, topic)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	seen := make(chan epoch.Snapshot, 16)
	gone := make(chan error, 16)
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(snap epoch.Snapshot) { seen <- snap }, func(err error) { gone <- err })
	}()
	await := func(want epoch.ChangeID) epoch.Snapshot {
		t.Helper()
		for {
			select {
			case snap := <-seen:
				if snap.Record.LastChange().ID == want {
					return snap
				}
			case <-ctx.Done():
				t.Fatalf("change %s was not seen", want)
			}
		}
	}
	awaitGone := func() {
		t.Helper()
		select {
		case err := <-gone:
			if !errors.Is(err, epoch.ErrNotFound) {
				t.Fatalf("got %v, want ErrNotFound", err)
			}
		case <-ctx.Done():
			t.Fatal("nothing was reported")
		}
	}

	awaitGone()
	if _, err := s.Create(ctx, epoch.New(topic, []epoch.ReplicaID{0}, 1, "one"), metav1.ObjectMeta{}); err != nil {
		t.Fatal(err)
	}
	snap := await("one")
	if _, err := s.Update(ctx, snap, change(snap.Record, "two")); err != nil {
		t.Fatalf("an update of what the watch delivered: %v", err)
	}
	await("two")
	remove(t, s, client)
	awaitGone()
	if _, err := s.Create(ctx, epoch.New(topic, []epoch.ReplicaID{0}, 1, "again"), metav1.ObjectMeta{}); err != nil {
		t.Fatal(err)
	}
	await("again")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ended with %v", err)
	}
}
