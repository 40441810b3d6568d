package controllers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// bareCluster is a second API server, on which no operator runs but those that a test
// starts, so that they can be killed, doubled and starved. It starts with the first test
// that needs it.
type bareCluster struct {
	testCluster
	env    *envtest.Environment
	mapper meta.RESTMapper
}

var startBare = sync.OnceValues(func() (*bareCluster, error) {
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	// Hundreds of partitions are made, each with a Service: 254 would be all by default.
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/12")
	cfg, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("start a second API server: %w", err)
	}
	stopBare = func() { _ = env.Stop() }
	cfg.QPS = -1
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	b := &bareCluster{env: env}
	b.config = cfg
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	if b.mapper, err = apiutil.NewDynamicRESTMapper(cfg, http); err != nil {
		return nil, err
	}
	if b.api, err = client.New(cfg, client.Options{Scheme: scheme, Mapper: b.mapper}); err != nil {
		return nil, err
	}
	b.leases, err = lease.NewClient(cfg)
	return b, err
})

// stopBare ends the second API server; the suite calls it.
var stopBare = func() {}

func needsBareCluster(t *testing.T) *bareCluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is unset: no kube-apiserver to test against (make test sets it)")
	}
	b, err := startBare()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// operator is one life of the operator: a reconciler that knows nothing but what it reads,
// on a wire of its own and a clock that the test moves. It has no caches, so each look is
// at what is there.
type operator struct {
	*Reconciler
	wire   *wire
	events *events.FakeRecorder
}

// fakeClock is a time that moves when a test says so.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// clients makes both clients that everybody here works with, over a wrapped transport.
func (b *bareCluster) clients(t *testing.T, as *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) (client.Client, rest.Interface) {
	t.Helper()
	cfg := rest.CopyConfig(as)
	cfg.QPS = -1
	cfg.Wrap(wrap)
	api, err := client.New(cfg, client.Options{Scheme: b.api.Scheme(), Mapper: b.mapper})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := lease.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return api, leases
}

// newOperator starts one in a world.
func (w *simWorld) newOperator() *operator {
	w.t.Helper()
	return w.newOperatorAs(w.b.config)
}

// newOperatorAs starts one with the rights of a user.
func (w *simWorld) newOperatorAs(as *rest.Config) *operator {
	w.t.Helper()
	line, clock := &wire{}, w.clock
	api, leases := w.b.clients(w.t, as, func(next http.RoundTripper) http.RoundTripper {
		next = w.reads.over(next)
		return roundTripper(func(req *http.Request) (*http.Response, error) { return line.carry(next, req) })
	})
	recorder := events.NewFakeRecorder(10000)
	r := &Reconciler{
		Client: api, APIReader: api, Leases: leases, Events: recorder,
		Defaults: ReplicaDefaults{Image: "example.test/tidemark:1"},
		memory:   newMemory(func(context.Context) error { return nil }),
	}
	r.clock.now, r.sightings.now, r.pace.now, r.rounds.now, r.copies.now = clock.now, clock.now, clock.now, clock.now, clock.now
	return &operator{Reconciler: r, wire: line, events: recorder}
}

// runManager runs the operator as it is in production, with caches and workers, on a wire,
// until the test ends.
func (b *bareCluster) runManager(t *testing.T, line *wire) {
	t.Helper()
	b.runManagerAs(t, b.config, line, &Denials{})
}

func (b *bareCluster) runManagerAs(t *testing.T, as *rest.Config, line *wire, denials *Denials) ctrl.Manager {
	t.Helper()
	cfg := rest.CopyConfig(as)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return line.carry(next, req) })
	})
	caches, err := CacheOptions(nil, denials)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: b.api.Scheme(), Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Setup(mgr, Options{Defaults: ReplicaDefaults{Image: "example.test/tidemark:1"}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error("the operator ended:", err)
		}
	})
	return mgr
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// look is one reconcile.
func (o *operator) look(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o.clock.probe(ctx)
	return o.Reconcile(ctx, req)
}
