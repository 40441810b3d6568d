package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestCheckWaitsForAnAnswer(t *testing.T) {
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	if err := check(t.Context(), s.URL); err != nil {
		t.Fatal(err)
	}
	if calls != 2 {
		t.Errorf("got %d requests, want 2", calls)
	}
}

func TestCheckGivesUpWithTheReason(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := check(ctx, s.URL); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want an error that says who does not answer", err)
	}
}

func TestFlagsAreRefusedWithTheirName(t *testing.T) {
	for _, tc := range []struct{ name, flag, want string }{
		{"pull policy", "--replica-image-pull-policy=Sometimes", "--replica-image-pull-policy"},
		{"log level", "--log-level=loud", "--log-level"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs([]string{tc.flag})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that names %s", err, tc.want)
			}
		})
	}
}
