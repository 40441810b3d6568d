package controllers

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestHowLongACopyWillTakeIsToldByItsSpeed(t *testing.T) {
	c := newCopies()
	now := time.Unix(1000, 0)
	c.now = func() time.Time { return now }
	look := func(seconds int, bytes int64, session epoch.Session) (time.Duration, bool) {
		now = now.Add(time.Duration(seconds) * time.Second)
		left, ok := c.observe(types.UID("a"), &epoch.Progress{Replicas: []epoch.ReplicaProgress{{ID: 2, BytesBehind: bytes, Session: session}, {ID: 0}}})[2]
		return left, ok
	}
	for _, tc := range []struct {
		name    string
		seconds int
		bytes   int64
		session epoch.Session
		want    time.Duration // 0: not told
	}{
		{"the first look", 0, 1000, 7, 0},
		{"a quarter is done in 10 s", 10, 750, 7, 30 * time.Second},
		{"half is done in 40 s", 30, 500, 7, 40 * time.Second},
		{"it fell behind where it began", 10, 1200, 7, 0},
		{"and goes on from there", 10, 600, 7, 10 * time.Second},
		{"its process was started again", 10, 500, 9, 0},
		{"done", 10, 0, 9, 0},
		{"behind anew", 10, 100, 9, 0},
	} {
		if left, ok := look(tc.seconds, tc.bytes, tc.session); left != tc.want || ok != (tc.want > 0) {
			t.Errorf("%s: %s, %t; want %s", tc.name, left, ok, tc.want)
		}
	}
	c.forget("a")
	if len(c.begun) > 0 {
		t.Error("a partition that is gone is remembered")
	}
}

// behindBy lets replica 2 be out of sync with so much to copy.
func behindBy(o *Observation, bytes int64) {
	o.Record.ISR = []epoch.ReplicaID{0, 1}
	for i := range o.Record.Progress.Replicas {
		if q := &o.Record.Progress.Replicas[i]; q.ID == 2 {
			q.BytesBehind = bytes
		}
	}
}

func TestPlanTellsOfACopy(t *testing.T) {
	o := world()
	behindBy(o, 3<<30)
	o.Left = map[epoch.ReplicaID]time.Duration{2: 95*time.Second + time.Millisecond}
	p := MakePlan(o)
	if p.Progress.Reason != v1alpha1.ReasonCatchingUp || p.Progress.Status != "True" {
		t.Fatalf("%+v", p.Progress)
	}
	if want := "orders-2 is not in sync and copies the log from orders-0; still to copy: about 3.0 GiB, 1m35s at this speed"; p.Progress.Message != want {
		t.Errorf("the message is %q, want %q", p.Progress.Message, want)
	}
	s := project(o, p.Progress)
	if b := s.Replicas[2].BytesBehind; b == nil || *b != 3<<30 || s.Replicas[1].BytesBehind != nil {
		t.Errorf("in the status %+v", s.Replicas)
	}
}

// What is left to copy changes with every heartbeat, and is no reason to write the status at once.
func TestACopysNumbersAreNoChangeOfState(t *testing.T) {
	show := func(bytes int64, left time.Duration) v1alpha1.ReplicatedPartitionStatus {
		o := world()
		behindBy(o, bytes)
		o.Left = map[epoch.ReplicaID]time.Duration{2: left}
		s := project(o, MakePlan(o).Progress)
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime.Reset()
		}
		return s
	}
	a, b := show(3<<30, time.Minute), show(2<<30, time.Second)
	if equality.Semantic.DeepEqual(a, b) {
		t.Fatal("the numbers are not shown")
	}
	if !equality.Semantic.DeepEqual(withoutNumbers(a), withoutNumbers(b)) {
		t.Errorf("the numbers count as a change:\n%+v\n%+v", withoutNumbers(a), withoutNumbers(b))
	}
	if c := show(0, 0); equality.Semantic.DeepEqual(withoutNumbers(a), withoutNumbers(c)) {
		t.Error("the end of a copy is no change")
	}
}

func TestBytesAreToldInAUnitOfUse(t *testing.T) {
	for n, want := range map[int64]string{1: "1 KiB", 1025: "2 KiB", 5 << 20: "5 MiB", 3 << 29: "1.5 GiB", 40 << 30: "40 GiB"} {
		if got := tellBytes(n); got != want {
			t.Errorf("%d bytes are told as %s, want %s", n, got, want)
		}
	}
}
