package plugin

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// plainUser may do nothing but what a test allows.
const plainUser = "somebody"

// lab is the one API server that this package's tests share, with a node on which pods are
// reached as on a real one; nil when KUBEBUILDER_ASSETS is unset.
var lab *testLab

type testLab struct {
	api        client.WithWatch
	leases     rest.Interface
	kubeconfig string
	node       *node
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	Quiet()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tidemark-plugin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server of the test environment:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	if lab, err = newLab(env, cfg, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer lab.node.server.Close()
	return m.Run()
}

func newLab(env *envtest.Environment, cfg *rest.Config, dir string) (*testLab, error) {
	cfg.QPS = -1
	l := &testLab{kubeconfig: filepath.Join(dir, "kubeconfig")}
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(l.kubeconfig, text, 0o600); err != nil {
		return nil, err
	}
	scheme, _, err := kinds()
	if err != nil {
		return nil, err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if l.api, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if l.leases, err = lease.NewClient(cfg); err != nil {
		return nil, err
	}
	l.node, err = startNode(l.api)
	return l, err
}

// needsLab skips a test when there is no API server.
func needsLab(t *testing.T) {
	t.Helper()
	// Asked here as well, so that the cache of test results knows that it matters.
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || lab == nil {
		t.Skip("KUBEBUILDER_ASSETS is unset: no kube-apiserver to test against (make test sets it)")
	}
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}}
	if err := lab.api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// stream is an output that tests look at while it is written.
type stream struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// invocation is one run of the plugin.
type invocation struct {
	out, err stream
	code     int
	stop     context.CancelFunc
	done     chan struct{}
}

// begin starts the plugin against the lab, with a namespace.
func begin(t *testing.T, namespace, stdin string, args ...string) *invocation {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	i := &invocation{stop: cancel, done: make(chan struct{})}
	args = append(args, "--kubeconfig", lab.kubeconfig, "-n", namespace)
	go func() {
		defer close(i.done)
		i.code = Run(ctx, genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &i.out, ErrOut: &i.err}, args)
	}()
	t.Cleanup(i.end)
	return i
}

// end interrupts the plugin, if it still runs, and waits for it.
func (i *invocation) end() {
	i.stop()
	<-i.done
}

// run runs the plugin to its end.
func run(t *testing.T, namespace, stdin string, args ...string) (out, errOut string, code int) {
	t.Helper()
	i := begin(t, namespace, stdin, args...)
	select {
	case <-i.done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%v does not end; it has printed:\n%s%s", args, i.out.String(), i.err.String())
	}
	return i.out.String(), i.err.String(), i.code
}

// mustRun is run for what has to succeed.
func mustRun(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	out, errOut, code := run(t, namespace, stdin, args...)
	if code != 0 {
		t.Fatalf("%v: exit status %d\n%s%s", args, code, out, errOut)
	}
	return out
}

// mustFail is run for what has to be refused, in one line that says why.
func mustFail(t *testing.T, namespace, want string, args ...string) {
	t.Helper()
	out, errOut, code := run(t, namespace, "", args...)
	if code != 1 || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: ") {
		t.Errorf("%v: exit status %d\n%s%s\nwant status 1, and one line of an error with %q", args, code, out, errOut, want)
	}
}

// await waits for a condition, and reports the last reason why it did not hold.
func await(t *testing.T, what string, holds func() error) {
	t.Helper()
	const limit = 60 * time.Second
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-tick.C
	}
}

func contains(i *invocation, text string) func() error {
	return func() error {
		if out := i.out.String(); !strings.Contains(out, text) {
			return errors.New("it has printed:\n" + out + i.err.String())
		}
		return nil
	}
}

// golden compares a text with a file, which -rewrite writes.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand now it would be\n%s", file, want, got)
	}
}
