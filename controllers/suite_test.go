package controllers

import (
	"context"
	"errors"
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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

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
	defer func() { stopBare() }()
	if cluster, err = startOperator(ctx, env, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func startOperator(ctx context.Context, env *envtest.Environment, cfg *rest.Config) (*testCluster, error) {
	cfg.QPS, cfg.Burst = 1000, 1000
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c := &testCluster{config: cfg}
	if c.api, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if c.leases, err = lease.NewClient(cfg); err != nil {
		return nil, err
	}
	own, err := operatorUser(ctx, env, c.api)
	if err != nil {
		return nil, err
	}
	caches, err := CacheOptions(nil, &Denials{})
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(own, ctrl.Options{Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	if err := Setup(mgr, Options{Defaults: ReplicaDefaults{Image: "example.test/tidemark:1"}}); err != nil {
		return nil, err
	}
	go func() { _ = mgr.Start(ctx) }()
	return c, nil
}

// operatorUser is a user that may do what the generated role says and nothing else,
// so that every test here is also one of the role (H82).
func operatorUser(ctx context.Context, env *envtest.Environment, api client.Client) (*rest.Config, error) {
	user, err := env.AddUser(envtest.User{Name: "operator"}, &rest.Config{QPS: 1000, Burst: 1000})
	if err != nil {
		return nil, err
	}
	role, err := operatorRole()
	if err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator"}},
	}
	return user.Config(), errors.Join(api.Create(ctx, role), api.Create(ctx, binding))
}

// operatorRole is the generated role.
func operatorRole() (*rbacv1.ClusterRole, error) {
	data, err := os.ReadFile(filepath.Join("..", "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{}
	return role, yaml.UnmarshalStrict(data, role)
}

// needsCluster skips a test when there is no API server.
func needsCluster(t *testing.T) {
	t.Helper()
	// Asked here as well, so that the cache of test results knows that it matters.
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || cluster == nil {
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
	const limit = time.Minute // of patience: a busy machine takes its time
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
