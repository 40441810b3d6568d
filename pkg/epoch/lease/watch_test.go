package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

// script answers the n-th list or watch by its n-th step, and the last for ever.
type script struct {
	mu    sync.Mutex
	steps []func(w http.ResponseWriter, r *http.Request)
	asked []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	q := r.URL.Query()
	kind := "list"
	if q.Get("watch") != "" {
		kind = "watch"
	}
	if rv := q.Get("resourceVersion"); rv != "" {
		kind += "@" + rv
	}
	if q.Get("fieldSelector") != "metadata.name=orders" {
		kind += " without selector"
	}
	step := s.steps[min(len(s.asked), len(s.steps)-1)]
	s.asked = append(s.asked, kind)
	s.mu.Unlock()
	step(w, r)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// at is the Lease at a resource version, with a change id of the same name.
func at(t *testing.T, version int) *coordinationv1.Lease {
	t.Helper()
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0}, 1, epoch.ChangeID(strconv.Itoa(version)))
	l := encode(t, r, empty())
	l.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	l.ResourceVersion, l.UID = strconv.Itoa(version), "uid"
	return l
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func listOf(l *coordinationv1.Lease) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, coordinationv1.LeaseList{
			TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: l.ResourceVersion},
			Items:    []coordinationv1.Lease{*l},
		})
	}
}

func stream(kind string, object any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"type": kind, "object": object})
	}
}

func TestWatchGoesOnAfterWhateverEndsIt(t *testing.T) {
	expired := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	}
	mangled := at(t, 6)
	mangled.Annotations["tidemark.io/state"] = `{"version":2}`
	s := &script{steps: []func(http.ResponseWriter, *http.Request){
		status(500, metav1.StatusReasonInternalError),
		listOf(at(t, 1)),
		stream("MODIFIED", at(t, 2)), // and the server ends the watch in good order
		stream("BOOKMARK", at(t, 3)),
		stream("ERROR", expired),
		listOf(at(t, 4)),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		stream("MODIFIED", at(t, 5)), // client-go takes a broken connection for an empty watch
		stream("MODIFIED", mangled),
		stream("MODIFIED", at(t, 7)),
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}}
	store := storeAt(t, 0, s.ServeHTTP)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []string
	var newer, failures int
	err := store.Watch(ctx, func(snap epoch.Snapshot) {
		seen = append(seen, string(snap.Record.LastChange().ID))
		if snap.Version == "7" {
			cancel()
		}
	}, func(err error) {
		if errors.Is(err, recordjson.ErrNewerVersion) {
			newer++
		} else {
			failures++
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
	wantEqual(t, "states", seen, []string{"1", "2", "4", "5", "7"})
	wantEqual(t, "requests", s.requests()[:10], []string{
		"list", "list", "watch@1", "watch@2", "watch@3", "list", "watch@4", "watch@4", "watch@5", "watch@6",
	})
	if newer != 1 || failures != 1 {
		t.Errorf("reported %d unreadable states and %d failures", newer, failures)
	}
}

func wantEqual(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}
