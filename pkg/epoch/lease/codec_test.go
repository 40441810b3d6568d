package lease_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson/recordgen"
)

func empty() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "orders"}}
}

func encode(t *testing.T, r epoch.Record, base *coordinationv1.Lease) *coordinationv1.Lease {
	t.Helper()
	l, err := lease.Encode(r, base)
	if err != nil {
		t.Fatalf("Encode(%+v): %v", r, err)
	}
	return l
}

func TestDecodeOfEncodeIsTheSameRecord(t *testing.T) {
	var base = empty()
	for seed := range uint64(1000) {
		want := recordgen.Record(rand.New(rand.NewPCG(seed, 5)))
		// Over the object of the record before, as updates do.
		base = encode(t, want, base)
		got, err := lease.Decode(base, want.TopicID)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got %+v, %v\nwant %+v", seed, got, err, want)
		}
	}
}

func TestEncodeShowsTheRecordWhereKubectlPrintsIt(t *testing.T) {
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1}, 2, "c1")
	r.Leader, r.LeaderEpoch = 1, 4
	r.Changes = nil
	r.Heartbeat = epoch.Heartbeat{Renewed: time.Unix(1, 1500), Duration: 1500 * time.Millisecond}
	l := encode(t, r, empty())
	if got := *l.Spec.HolderIdentity; got != "orders-1" {
		t.Errorf("holderIdentity = %q, want orders-1", got)
	}
	if got := *l.Spec.LeaseTransitions; got != 4 {
		t.Errorf("leaseTransitions = %d, want 4", got)
	}
	if got := *l.Spec.LeaseDurationSeconds; got != 2 {
		t.Errorf("leaseDurationSeconds = %d, want 1.5 s rounded up to 2", got)
	}
	if got := l.Spec.RenewTime.Time; !got.Equal(time.Unix(1, 1000)) {
		t.Errorf("renewTime = %v, want whole microseconds", got)
	}
	if got := l.Annotations[lease.AnnotationPartitionEpoch]; got != "1" {
		t.Errorf("partition epoch annotation = %q, want 1", got)
	}
	r.Leader, r.Heartbeat = epoch.NoReplica, epoch.Heartbeat{}
	l = encode(t, r, l)
	if *l.Spec.HolderIdentity != "" || l.Spec.RenewTime != nil || l.Spec.LeaseDurationSeconds != nil {
		t.Errorf("without leader and heartbeat: %+v", l.Spec)
	}
}

func TestEncodeKeepsWhatIsNotOurs(t *testing.T) {
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1}, 2, "c1")
	base := encode(t, r, empty())
	base.Labels = map[string]string{"a": "b"}
	base.Annotations["foreign.example/x"] = "kept"
	base.Annotations[lease.AnnotationState] = strings.Replace(base.Annotations[lease.AnnotationState], "{", `{"newField":[1, 2],`, 1)
	base.Finalizers = []string{"example.com/f"}
	base.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicatedPartition", Name: "orders", UID: "u"}}
	base.ResourceVersion, base.UID = "7", "uid"
	before := base.DeepCopy()

	r.Progress = &epoch.Progress{HighWatermark: 9, TookOver: epoch.NoEpoch}
	beat := encode(t, r, base)
	if !reflect.DeepEqual(base, before) {
		t.Error("Encode changed the object that it was given")
	}
	if beat.Annotations[lease.AnnotationState] != base.Annotations[lease.AnnotationState] {
		t.Error("a heartbeat rewrote the state that did not change")
	}
	r.ISR, r.PartitionEpoch, r.Changes = []epoch.ReplicaID{1}, 2, nil
	got := encode(t, r, beat)
	if !reflect.DeepEqual(got.ObjectMeta.Finalizers, before.Finalizers) || !reflect.DeepEqual(got.Labels, before.Labels) ||
		!reflect.DeepEqual(got.OwnerReferences, before.OwnerReferences) || got.ResourceVersion != "7" || got.UID != "uid" ||
		got.Annotations["foreign.example/x"] != "kept" {
		t.Errorf("metadata was lost: %+v", got.ObjectMeta)
	}
	if !strings.Contains(got.Annotations[lease.AnnotationState], `"newField":[1,2]`) {
		t.Errorf("a newer program's field was lost: %s", got.Annotations[lease.AnnotationState])
	}
	r.Progress = nil
	if got := encode(t, r, got); got.Annotations[lease.AnnotationProgress] != "" {
		t.Error("progress that the record no longer has is still there")
	}
}

func TestEncodeRefuses(t *testing.T) {
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0}, 1, "c1")
	newer := encode(t, r, empty())
	newer.Annotations[lease.AnnotationState] = `{"version":2}`
	broken := r
	broken.Leader = 8
	for _, c := range []struct {
		name string
		r    epoch.Record
		base *coordinationv1.Lease
	}{
		{"no base", r, nil},
		{"a base without a name", r, &coordinationv1.Lease{}},
		{"a base that a newer version wrote", r, newer},
		{"a leader that is not in sync", broken, empty()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if l, err := lease.Encode(c.r, c.base); err == nil {
				t.Errorf("got %+v, want an error", l)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	topic := epoch.UUID{1}
	r := epoch.New(topic, []epoch.ReplicaID{0, 1}, 2, "c1")
	str := func(s string) *string { return &s }
	num := func(n int32) *int32 { return &n }
	set := func(key, value string) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) { l.Annotations[key] = value }
	}
	for _, c := range []struct {
		name    string
		edit    func(*coordinationv1.Lease)
		want    error
		message string
	}{
		{"a Lease without state", func(l *coordinationv1.Lease) { l.Annotations = nil }, epoch.ErrForeign, "no annotation"},
		{"another topic id", func(l *coordinationv1.Lease) {
			*l = *encode(t, epoch.New(epoch.UUID{2}, []epoch.ReplicaID{0}, 1, "c"), empty())
		}, epoch.ErrForeign, "belongs to topic id"},
		{"a newer version", set(lease.AnnotationState, `{"version":3,"x":{}}`), recordjson.ErrNewerVersion, "newer version"},
		{"state that is no JSON", set(lease.AnnotationState, "{"), lease.ErrEdited, "damaged"},
		{"another holder", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = str("orders-1") }, lease.ErrEdited, `holderIdentity is "orders-1"`},
		{"a pod of another name as holder", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = str("invoices-0") }, lease.ErrEdited, "holderIdentity"},
		{"another leader epoch", func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = num(1) }, lease.ErrEdited, "leaseTransitions"},
		{"another partition epoch", set(lease.AnnotationPartitionEpoch, "01"), lease.ErrEdited, "partition-epoch"},
		{"no partition epoch", func(l *coordinationv1.Lease) { delete(l.Annotations, lease.AnnotationPartitionEpoch) }, lease.ErrEdited, "partition-epoch"},
		{"progress that is no JSON", set(lease.AnnotationProgress, "x"), lease.ErrEdited, "progress"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := encode(t, r, empty())
			c.edit(l)
			got, err := lease.Decode(l, topic)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %+v, %v; want %v about %q", got, err, c.want, c.message)
			}
		})
	}
	t.Run("but takes a Lease that never had an epoch or holder field", func(t *testing.T) {
		l := encode(t, r, empty())
		l.Spec = coordinationv1.LeaseSpec{}
		if _, err := lease.Decode(l, topic); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(4) {
		r := recordgen.Record(rand.New(rand.NewPCG(seed, 6)))
		l, err := lease.Encode(r, empty())
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var l coordinationv1.Lease
		if json.Unmarshal(b, &l) != nil || l.Name == "" {
			return
		}
		var topic struct{ TopicID epoch.UUID }
		_ = json.Unmarshal([]byte(l.Annotations[lease.AnnotationState]), &topic)
		r, err := lease.Decode(&l, topic.TopicID)
		if err != nil {
			return
		}
		again, err := lease.Encode(r, &l)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if got, err := lease.Decode(again, topic.TopicID); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
		}
	})
}
