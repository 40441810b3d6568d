package controllers

import (
	"testing"
	"time"
)

func TestARoundIsForgotten(t *testing.T) {
	r := newRounds()
	now := time.Now()
	r.now = func() time.Time { return now }
	if got := r.current("a"); got != "" {
		t.Errorf("round %q before any was begun", got)
	}
	r.begin("a", "first")
	r.begin("b", "other")
	now = now.Add(roundLasts - 1)
	if got := r.current("a"); got != "first" {
		t.Errorf("round %q, want the first", got)
	}
	now = now.Add(1)
	if got := r.current("a"); got != "" {
		t.Errorf("round %q after %s", got, roundLasts)
	}
	r.begin("a", "second")
	r.forget("a")
	if got := r.current("a"); got != "" {
		t.Errorf("round %q, which was forgotten", got)
	}
}
