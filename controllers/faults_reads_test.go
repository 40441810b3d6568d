package controllers

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// reads remembers what the API server answered about one namespace, until something of the
// same kind is written there. All who write there share it, so it never lies; it saves most of
// the time of a run in which everybody looks at everything again and again.
type reads struct {
	// off makes it remember nothing, for when several write at once.
	off atomic.Bool

	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	kind string
	resp *http.Response
	body []byte
}

func newReads() *reads { return &reads{answers: map[string]answer{}} }

// over is a round tripper that goes by what is remembered.
func (c *reads) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		kind := kindOf(req)
		if kind == "" || c.off.Load() {
			return next.RoundTrip(req)
		}
		if req.Method != http.MethodGet {
			defer c.drop(kind)
			return next.RoundTrip(req)
		}
		key := req.URL.String() + " " + req.Header.Get("Accept")
		if resp, ok := c.get(key); ok {
			return resp, nil
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return resp, nil
		}
		c.mu.Lock()
		c.answers[key] = answer{kind, resp, body}
		c.mu.Unlock()
		again, _ := c.get(key)
		return again, nil
	})
}

func (c *reads) get(key string) (*http.Response, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[key]
	if !ok {
		return nil, false
	}
	resp := *a.resp
	resp.Body = io.NopCloser(bytes.NewReader(a.body))
	return &resp, true
}

func (c *reads) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.answers)
}

func (c *reads) drop(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, a := range c.answers {
		if a.kind == kind {
			delete(c.answers, key)
		}
	}
}

// kindOf is the kind of object in a namespace that a request is of, "" for others.
func kindOf(req *http.Request) string {
	_, rest, ok := strings.Cut(req.URL.Path, "/namespaces/")
	if !ok {
		return ""
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}
