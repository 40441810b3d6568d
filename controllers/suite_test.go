package controllers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// cluster is the one API server, with the operator running against it, that this
// package's tests share; nil when KUBEBUILDER_ASSETS is unset. There is no kubelet:
// the tests say what pods do.
var cluster *testCluster

type testCluster struct {
	api    client.Client
	leases rest.Interface
	config *rest.Config
}

var verbose = flag.Bool("operator-log", false, "print the operator's log")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	out := io.Discard
	if *verbose {
		out = os.Stderr
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(out, nil)))
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server of the test environment:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = startOperator(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func startOperator(ctx context.Context, cfg *rest.Config) (*testCluster, error) {
	cfg.QPS, cfg.Burst = 1000, 1000
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	caches, err := CacheOptions(nil)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	if err := Setup(mgr, Options{Defaults: ReplicaDefaults{Image: "example.test/tidemark:1"}}); err != nil {
		return nil, err
	}
	go func() { _ = mgr.Start(ctx) }()
	c := &testCluster{config: cfg}
	if c.api, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	c.leases, err = lease.NewClient(cfg)
	return c, err
}

// needsCluster skips a test when there is no API server.
func needsCluster(t *testing.T) {
	t.Helper()
	if cluster == nil {
		t.Skip("KUBEBUILDER_ASSETS is unset: no kube-apiserver to test against (make test sets it)")
	}
	t.Parallel()
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := cluster.api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// await waits for a condition, and reports the last reason why it did not hold.
func await(t *testing.T, what string, holds func() string) {
	t.Helper()
	const limit = 20 * time.Second
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		why := holds()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, limit, why)
		}
		<-tick.C
	}
}
