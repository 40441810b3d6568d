package controllers

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// H82: an operator that may not watch what it goes by says so, is not ready, and goes on by
// itself once it may.
func TestAnOperatorThatMayNotReadWhatItWatchesIsNotReady(t *testing.T) {
	w := newWorld(t, needsBareCluster(t), &fakeClock{at: time.Now()}, replicas(1))
	defer w.forget()
	as, may := w.limitedUser("", "persistentvolumeclaims", "list", "watch")
	may(false)
	var denials Denials
	clock := &fakeClock{at: time.Now()}
	denials.now = clock.now
	mgr := w.b.runManagerAs(t, as, &wire{}, &denials)
	isFilled := func() error {
		return CachesFilled(mgr.GetCache())(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
	}
	await(t, "the permission to be missed", func() string {
		err := denials.Check(nil)
		if err == nil {
			return "nothing is missed"
		}
		for _, word := range []string{`resource "persistentvolumeclaims"`, "install the role"} {
			if !strings.Contains(err.Error(), word) {
				return err.Error() + " does not say " + word
			}
		}
		return ""
	})
	if isFilled() == nil {
		t.Error("its caches count as filled")
	}
	may(true)
	await(t, "the partition to be begun", func() string {
		if err := w.b.api.Get(t.Context(), w.key(w.rp.LeaseName()), &coordinationv1.Lease{}); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := isFilled(); err != nil {
		t.Error(err)
	}
	clock.advance(deniedFor + time.Second)
	if err := denials.Check(nil); err != nil {
		t.Errorf("it is still not ready: %v", err)
	}
}

func TestADenialIsToldOnceWhileItLasts(t *testing.T) {
	clock := &fakeClock{at: time.Now()}
	d := Denials{now: clock.now}
	if !d.meet("no pods") || !d.meet("no claims") {
		t.Error("the first of a kind is not told")
	}
	for range 5 {
		clock.advance(deniedFor / 2)
		if d.meet("no pods") {
			t.Error("it is told again")
		}
	}
	if err := d.Check(nil); err == nil || strings.Contains(err.Error(), "no claims") {
		t.Errorf("got %v, want what is denied now only", err)
	}
	clock.advance(deniedFor + time.Second)
	if err := d.Check(nil); err != nil {
		t.Error(err)
	}
	if !d.meet("no pods") {
		t.Error("it is not told when it comes up anew")
	}
}
