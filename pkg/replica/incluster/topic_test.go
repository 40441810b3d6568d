package incluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// leaseServer is an API server that has one Lease, or none.
func leaseServer(t *testing.T, l *coordinationv1.Lease) lease.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = l
		if l == nil {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client, err := lease.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return lease.Config{Client: client, Namespace: "ns", Name: "orders"}
}

// A replica that takes a wrong topic id for its own sets its log aside.
func TestATopicIDIsCertainOnlyIfStatusAndRecordAgree(t *testing.T) {
	own, adopted := epoch.UUID{1, 15: 1}, epoch.UUID{7}
	recordOf := func(id epoch.UUID) *coordinationv1.Lease {
		l := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "orders", ResourceVersion: "1"}}
		l, err := lease.Encode(epoch.New(id, []epoch.ReplicaID{0}, 1, "c"), l)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, tc := range []struct {
		name   string
		status epoch.UUID
		record *coordinationv1.Lease
		want   epoch.UUID // the zero UUID: nothing is certain
	}{
		{"its own log", own, recordOf(own), own},
		{"its own log, and the Lease is gone", own, nil, own},
		{"no status yet", epoch.UUID{}, recordOf(own), own},
		{"no status yet and an adopted log", epoch.UUID{}, recordOf(adopted), epoch.UUID{}},
		{"neither status nor Lease", epoch.UUID{}, nil, epoch.UUID{}},
		{"an adopted log", adopted, recordOf(adopted), adopted},
		{"an adopted log, and the Lease is gone", adopted, nil, epoch.UUID{}},
		{"a status that somebody wrote", adopted, recordOf(own), epoch.UUID{}},
		{"an adopted log, and the object's own id in a status that somebody wrote", own, recordOf(adopted), epoch.UUID{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "orders", UID: types.UID(own.Canonical())}}
			if !tc.status.IsZero() {
				p.Status.TopicID = tc.status.String()
			}
			got, err := confirmedTopicID(t.Context(), p, leaseServer(t, tc.record))
			if (err == nil) != (!tc.want.IsZero()) || err == nil && got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}
