package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// fakeAPI is an API server that can be away, with a clock that the test moves.
type fakeAPI struct {
	away bool
	time time.Time
}

func (f *fakeAPI) read(context.Context) error {
	if f.away {
		return errors.New("connection refused")
	}
	return nil
}

func (f *fakeAPI) clock() *readableClock {
	f.time = time.Unix(1000, 0)
	c := newReadableClock(f.read)
	c.now = func() time.Time { return f.time }
	return c
}

// pass lets seconds pass, with a probe after each.
func (f *fakeAPI) pass(c *readableClock, seconds int) {
	for range seconds {
		f.time = f.time.Add(time.Second)
		c.probe(context.Background())
	}
}

func TestClockCountsOnlyReadableTime(t *testing.T) {
	var api fakeAPI
	c := api.clock()
	c.probe(t.Context())
	api.pass(c, 5)
	if got, want := c.reading(), 5*time.Second; got != want {
		t.Errorf("readable: got %s, want %s", got, want)
	}
	api.away = true
	api.pass(c, 60)
	if got, want := c.reading(), 5*time.Second; got != want {
		t.Errorf("in the outage: got %s, want %s", got, want)
	}
	api.away = false
	api.pass(c, 3)
	if got, want := c.reading(), 7*time.Second; got != want {
		t.Errorf("after the outage: got %s, want %s (the first success proves nothing about the time before it)", got, want)
	}
}

func TestClockRunsOnBetweenProbesForABoundedTime(t *testing.T) {
	var api fakeAPI
	c := api.clock()
	c.probe(t.Context())
	api.time = api.time.Add(600 * time.Millisecond)
	if got, want := c.reading(), 600*time.Millisecond; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	api.time = api.time.Add(time.Hour)
	if got, want := c.reading(), probeInterval+probeTimeout; got != want {
		t.Errorf("with a prober that hangs: got %s, want %s", got, want)
	}
}

func leaseOf(renewed time.Time, transitions int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{UID: "lease", OwnerReferences: []metav1.OwnerReference{{UID: "rp", Controller: ptr.To(true)}}},
		Spec: coordinationv1.LeaseSpec{
			RenewTime: &metav1.MicroTime{Time: renewed}, LeaseTransitions: &transitions, HolderIdentity: ptr.To("orders-0"),
		},
	}
}

func TestSilence(t *testing.T) {
	var api fakeAPI
	c := api.clock()
	h := newHeartbeats(c)
	c.probe(t.Context())
	if got := h.silence("rp"); got != 0 {
		t.Errorf("never seen: got %s, want 0", got)
	}
	// H08: a leader whose clock is ten minutes off, either way, is judged the same.
	for _, skew := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
		h.observe(leaseOf(api.time.Add(skew), 1))
		api.pass(c, 4)
		h.observe(leaseOf(api.time.Add(skew-4*time.Second), 1))
		if got, want := h.silence("rp"), 4*time.Second; got != want {
			t.Errorf("skew %s, no renewal: got %s, want %s", skew, got, want)
		}
	}
	h.observe(leaseOf(api.time.Add(10*time.Minute-4*time.Second), 2))
	if got := h.silence("rp"); got != 0 {
		t.Errorf("after an election: got %s, want 0", got)
	}
	h.forget("rp")
	api.pass(c, 4)
	if got := h.silence("rp"); got != 0 {
		t.Errorf("forgotten: got %s, want 0", got)
	}
}

func TestSightings(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSightings()
	s.now = func() time.Time { return now }
	if got := s.since("rp", "a"); got != 0 {
		t.Errorf("first sight: got %s, want 0", got)
	}
	now = now.Add(3 * time.Second)
	if got, want := s.since("rp", "a"), 3*time.Second; got != want {
		t.Errorf("seen again: got %s, want %s", got, want)
	}
	s.keepOnly("rp", map[string]bool{"b": true})
	if got := s.since("rp", "a"); got != 0 {
		t.Errorf("seen after an absence: got %s, want 0", got)
	}
}
