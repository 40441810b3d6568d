package main

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience is a transport that lets a read wait for an API server that cannot be reached, for
// as long as the read may take: whoever made it has set a limit, but for the watches. Those would
// try again later and later, and the operator would hear of nothing for up to a minute after a
// long outage.
type patience struct {
	next  http.RoundTripper
	pause time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patience) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		resp, err := p.next.RoundTrip(r)
		if err == nil || r.Method != http.MethodGet || r.Body != nil {
			return resp, err
		}
		again := time.NewTimer(wait.Jitter(p.pause, 0.5))
		select {
		case <-r.Context().Done():
			again.Stop()
			return nil, fmt.Errorf("%w: %w", r.Context().Err(), err)
		case <-again.C:
		}
	}
}
