package controllers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// wire stands between an operator and the API server, under every client that the
// operator has. It counts the writes, and meddles as a test says.
type wire struct {
	// meddle decides what becomes of a request; nil sends it. n counts the writes from 1
	// and is 0 for a read.
	meddle meddling

	mu     sync.Mutex
	writes int
	reads  int
	// landed counts the writes that the API server took.
	landed int
}

// meddling is what a test does to requests on a wire.
type meddling func(n int, req *http.Request, send func() (*http.Response, error)) (*http.Response, error)

var errCut = errors.New("the wire was cut")

// carry brings one request to the API server, or not.
func (w *wire) carry(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	n := w.count(req)
	send := func() (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if n > 0 && err == nil && resp.StatusCode < http.StatusBadRequest {
			w.mu.Lock()
			w.landed++
			w.mu.Unlock()
		}
		return resp, err
	}
	if w.meddle == nil {
		return send()
	}
	return w.meddle(n, req, send)
}

func (w *wire) count(req *http.Request) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if req.Method == http.MethodGet {
		w.reads++
		return 0
	}
	w.writes++
	return w.writes
}

func (w *wire) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

func (w *wire) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.landed
}

// tries is how much was sent, or was to be.
func (w *wire) tries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads + w.writes
}

// shortly names a request for a failure's message: "PUT leases/orders".
func shortly(req *http.Request) string {
	_, what, found := strings.Cut(req.URL.Path, "/namespaces/")
	if found {
		_, what, _ = strings.Cut(what, "/")
	} else {
		what = req.URL.Path
	}
	return req.Method + " " + what
}

// crash makes the n-th write the operator's last: it is not sent, or it is and the answer
// is lost. From then on nothing gets through, as from a process that is no more.
func crash(at int, sent bool) (meddling, *crashed) {
	c := &crashed{}
	return func(n int, req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case c.dead():
			return nil, errCut
		case n != at:
			return send()
		}
		c.hit(shortly(req), true)
		if sent {
			swallow(send())
		}
		return nil, errCut
	}, c
}

// crashed says what has become of an operator.
type crashed struct {
	mu     sync.Mutex
	what   string
	killed bool
}

func (c *crashed) hit(what string, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.what, c.killed = what, killed
}

func (c *crashed) dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// at is the write that went wrong, "" if none has.
func (c *crashed) at() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what
}

// once fails the n-th write and nothing else: not sent and answered with a status, or
// sent and not answered.
func once(at int, sent bool, status int) (meddling, *crashed) {
	c := &crashed{}
	return func(n int, req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if n != at {
			return send()
		}
		c.hit(shortly(req), false)
		if sent {
			swallow(send())
			return nil, errCut
		}
		return refusal(req, status), nil
	}, c
}

func swallow(resp *http.Response, err error) {
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// refusal is an answer of the API server's kind.
func refusal(req *http.Request, status int) *http.Response {
	reason := map[int]string{
		http.StatusConflict: "Conflict", http.StatusTooManyRequests: "TooManyRequests", http.StatusForbidden: "Forbidden",
		http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable",
	}[status]
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a test says so","reason":%q,"code":%d}`, reason, status)
	resp := &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
	return resp
}
