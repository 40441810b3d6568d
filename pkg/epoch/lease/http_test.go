package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// storeAt makes a store whose API server is handler, for what a real one cannot be
// made to do at will.
func storeAt(t *testing.T, timeout time.Duration, handler http.HandlerFunc) *lease.Store {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	client, err := lease.NewClient(&rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	s, err := lease.New(lease.Config{Client: client, Namespace: "ns", Name: "orders", TopicID: epoch.UUID{1}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readBase is a snapshot as Get would have returned it.
func readBase(t *testing.T) epoch.Snapshot {
	t.Helper()
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1}, 2, "c1")
	l := encode(t, r, empty())
	l.ResourceVersion, l.UID = "7", "uid"
	return epoch.Snapshot{Record: r, Version: "7", Object: l}
}

func status(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "from the test",
		})
	}
}

func plain(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
}

func TestUpdateSendsOnceAndNamesOnlyWhatIsDecided(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   error // nil: undecided
	}{
		{"409 is a conflict", status(409, metav1.StatusReasonConflict), epoch.ErrConflict},
		{"404 is gone", status(404, metav1.StatusReasonNotFound), epoch.ErrNotFound},
		{"403 is refused", status(403, metav1.StatusReasonForbidden), epoch.ErrRejected},
		{"422 is refused", status(422, metav1.StatusReasonInvalid), epoch.ErrRejected},
		{"400 is refused", status(400, metav1.StatusReasonBadRequest), epoch.ErrRejected},
		{"429 with Retry-After is undecided", status(429, metav1.StatusReasonTooManyRequests), nil},
		{"500 with Retry-After is undecided", status(500, metav1.StatusReasonInternalError), nil},
		{"503 is undecided", status(503, metav1.StatusReasonServiceUnavailable), nil},
		{"504 is undecided", status(504, metav1.StatusReasonTimeout), nil},
		{"a proxy's 404 is undecided", plain(404, "404 page not found"), nil},
		{"a proxy's 409 is undecided", plain(409, "conflict"), nil},
		{"a proxy's 403 is undecided", plain(403, "<html>"), nil},
		{"a broken connection is undecided", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil},
		{"an answer that is no Lease is undecided", plain(200, "ok"), nil},
		{"an answer without our state is undecided", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"orders"}}`)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			s := storeAt(t, 0, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); c.answer(w, r) })
			base := readBase(t)
			_, err := s.Update(t.Context(), base, base.Record)
			if err == nil {
				t.Fatal("no error")
			}
			for _, sentinel := range []error{epoch.ErrConflict, epoch.ErrNotFound, epoch.ErrRejected} {
				if errors.Is(err, sentinel) != (sentinel == c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("the write was sent %d times", n)
			}
		})
	}
}

func TestUpdateThatTimesOutIsUndecided(t *testing.T) {
	release := make(chan struct{})
	s := storeAt(t, 50*time.Millisecond, func(_ http.ResponseWriter, _ *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	base := readBase(t)
	_, err := s.Update(t.Context(), base, base.Record)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, epoch.ErrRejected) || errors.Is(err, epoch.ErrConflict) {
		t.Errorf("got %v, want the deadline alone", err)
	}
}

func TestUpdateRefusesWithoutSending(t *testing.T) {
	s := storeAt(t, 0, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	base := readBase(t)
	other := epoch.New(epoch.UUID{9}, []epoch.ReplicaID{0}, 1, "c")
	broken := base.Record
	broken.Leader = 77
	for _, c := range []struct {
		name string
		base epoch.Snapshot
		next epoch.Record
	}{
		{"a base that was never read", epoch.Snapshot{}, base.Record},
		{"a base without uid", epoch.Snapshot{Object: empty()}, base.Record},
		{"a record of another topic", base, other},
		{"a record that breaks an invariant", base, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Update(t.Context(), c.base, c.next); !errors.Is(err, epoch.ErrRejected) {
				t.Errorf("got %v, want ErrRejected", err)
			}
		})
	}
}

func TestGetDoesNotTakeAProxysAnswerForNoRecord(t *testing.T) {
	s := storeAt(t, 0, plain(404, "404 page not found"))
	if _, err := s.Get(t.Context()); err == nil || errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("got %v, want an error that is not ErrNotFound", err)
	}
}

func TestGetAsksForAQuorumRead(t *testing.T) {
	s := storeAt(t, 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("resourceVersion") {
			t.Errorf("query %q asks a cache", r.URL.RawQuery)
		}
		status(404, metav1.StatusReasonNotFound)(w, r)
	})
	if _, err := s.Get(t.Context()); !errors.Is(err, epoch.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	client, err := lease.NewClient(&rest.Config{Host: "http://localhost:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []lease.Config{
		{},
		{Client: client, Namespace: "ns"},
		{Client: client, Namespace: "ns", Name: "n"},
		{Client: client, Namespace: "ns", Name: "n", TopicID: epoch.UUID{1}, Timeout: -1},
	} {
		if _, err := lease.New(cfg); err == nil {
			t.Errorf("New(%+v) succeeded", cfg)
		}
	}
}
