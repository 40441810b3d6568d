package controllers

import (
	"testing"
	"time"
)

func TestCallsThatHangAreTriedAgainSoonAndThenLessOften(t *testing.T) {
	h := newHangs()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		if got := h.again("a"); got != want*time.Second {
			t.Errorf("after %d in a row: %s, want %d s", i+1, got, want)
		}
	}
	if got := h.again("b"); got != firstHungRecheck {
		t.Errorf("another partition waits %s", got)
	}
	h.forget("a")
	if got := h.again("a"); got != firstHungRecheck {
		t.Errorf("after one that ended in time: %s", got)
	}
}
