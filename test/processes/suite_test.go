package processes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/test/network"

	// What the binaries are made of: a change makes Go run these tests again instead of showing an old result.
	_ "github.com/tidemark-io/tidemark/controllers"
	_ "github.com/tidemark-io/tidemark/pkg/replica/incluster"
	_ "github.com/tidemark-io/tidemark/pkg/replica/standalone"
)

// env is the one API server, with the operator running against it, that the tests
// share; nil when KUBEBUILDER_ASSETS is unset.
var env *environment

type environment struct {
	api        client.Client
	clientset  kubernetes.Interface
	config     *rest.Config
	kubeconfig string
	bin        string
	logs       string
	server     *apiServer
	operator   *operator
	network    *network.Network // nil on a machine without namespaces
}

// workDir names, in the environment, the directory with the binaries.
const workDir = "TIDEMARK_TEST_PROCESSES_DIR"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the binaries, and then runs the tests in namespaces of their own if the
// machine can do that: the Go compiler may need the network, the processes must not.
func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	if network.Inside() {
		if _, _, err := network.Enter(); err != nil {
			return fail(err)
		}
		return runWith(m, os.Getenv(workDir))
	}
	dir, err := os.MkdirTemp("", "tidemark-processes-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-race", "-o", filepath.Join(dir, "bin")+"/", "./../../cmd/replica", "./../../cmd/manager")
	if out, err := build.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("build the binaries: %w\n%s", err, out))
	}
	if network.Missing() != nil {
		return runWith(m, dir)
	}
	if err := os.Setenv(workDir, dir); err != nil {
		return fail(err)
	}
	code, _, err := network.Enter()
	if err != nil {
		return fail(err)
	}
	return code
}

func runWith(m *testing.M, dir string) int {
	// A connection to an API server that stands still is given up within a lease.
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if err := os.Setenv(name, "3"); err != nil {
			return fail(err)
		}
	}
	var n *network.Network
	if network.Inside() {
		var err error
		if n, err = network.New(apiAddress); err != nil {
			return fail(err)
		}
	}
	server, err := startAPIServer(n != nil)
	if err != nil {
		return fail(err)
	}
	defer server.stop()
	if env, err = newEnvironment(dir, server, n); err != nil {
		return fail(err)
	}
	if env.operator, err = env.newOperator("operator"); err != nil {
		return fail(err)
	}
	if err := env.operator.start(); err != nil {
		return fail(err)
	}
	defer env.operator.end()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "cannot set up the processes:", err)
	return 1
}

func newEnvironment(dir string, server *apiServer, n *network.Network) (*environment, error) {
	cfg := rest.CopyConfig(server.config)
	cfg.QPS, cfg.Timeout = -1, callTimeout
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	user, err := server.env.AddUser(envtest.User{Name: "processes", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	e := &environment{api: api, clientset: clientset, config: cfg, kubeconfig: filepath.Join(dir, "kubeconfig"), bin: filepath.Join(dir, "bin"), logs: dir, server: server, network: n}
	return e, os.WriteFile(e.kubeconfig, kubeconfig, 0o600)
}

// command makes one of a binary of ours, on a host if there is a network.
func (e *environment) command(host *network.Link, binary string, args ...string) *exec.Cmd {
	path := filepath.Join(e.bin, binary)
	if host == nil {
		return exec.Command(path, args...)
	}
	return host.Command(path, args...)
}

// join makes a host, or none on a machine without namespaces.
func (e *environment) join() (*network.Link, error) {
	if e.network == nil {
		return nil, nil
	}
	return e.network.Join()
}
