package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unused is an address on which nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// refusals counts what could not be sent.
type refusals struct {
	seen chan struct{}
}

func (f refusals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		f.seen <- struct{}{}
	}
	return resp, err
}

func TestAReadWaitsForAServerThatIsAway(t *testing.T) {
	address := unused(t)
	refused := refusals{make(chan struct{}, 1000)}
	c := http.Client{Transport: patience{next: refused, pause: time.Millisecond}}
	answered := make(chan error, 1)
	go func() {
		resp, err := c.Get("http://" + address)
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}()
	<-refused.seen
	<-refused.seen
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestAReadWaitsNoLongerThanItMay(t *testing.T) {
	refused := refusals{make(chan struct{}, 1000)}
	c := http.Client{Transport: patience{next: refused, pause: time.Millisecond}}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+unused(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-refused.seen; cancel() }()
	if _, err := c.Do(r); !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), "refused") {
		t.Errorf("got %v, want the end of the context, and why it came to that", err)
	}
}

// A write may have arrived although its answer did not: whoever made it has to look.
func TestAWriteIsNotRepeated(t *testing.T) {
	refused := refusals{make(chan struct{}, 1000)}
	c := http.Client{Transport: patience{next: refused, pause: time.Millisecond}}
	if _, err := c.Post("http://"+unused(t), "text/plain", strings.NewReader("x")); err == nil {
		t.Error("no error")
	}
	if n := len(refused.seen); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// An operator that starts while the API server is away must not end for it: each end makes its
// kubelet wait longer before the next start. When it is told to stop it stops.
func TestAnOperatorStartsWithoutTheAPIServer(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://%s'}}], contexts: [{name: c, context: {cluster: c}}]}", unused(t))
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	health := unused(t)
	mgr, err := newManager(options{replicaImage: "example.test/tidemark:1", pullPolicy: "Never", metricsAddress: "0", healthAddress: health,
		leaderElection: true, leaderElectionNamespace: "default", shutdownTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx, mgr, time.Second) }()
	for {
		resp, err := http.Get("http://" + health + "/healthz")
		if err == nil {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("/healthz says %s", resp.Status)
			}
			_ = resp.Body.Close()
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	<-ended // and it stops when told to, although its caches never filled
}
