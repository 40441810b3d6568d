package processes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
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
	server     *envtest.Environment
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tidemark-processes-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	server := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	cfg, err := server.Start()
	if err != nil {
		return fail(err)
	}
	defer func() { _ = server.Stop() }()
	if env, err = newEnvironment(dir, server, cfg); err != nil {
		return fail(err)
	}
	manager, err := env.startManager()
	if err != nil {
		return fail(err)
	}
	defer func() {
		_ = manager.Process.Signal(syscall.SIGTERM)
		_ = manager.Wait()
	}()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "cannot set up the processes:", err)
	return 1
}

func newEnvironment(dir string, server *envtest.Environment, cfg *rest.Config) (*environment, error) {
	cfg.QPS = -1
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
	user, err := server.AddUser(envtest.User{Name: "processes", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	e := &environment{api: api, clientset: clientset, config: cfg, kubeconfig: filepath.Join(dir, "kubeconfig"), bin: filepath.Join(dir, "bin"), logs: dir, server: server}
	if err := os.WriteFile(e.kubeconfig, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-race", "-o", e.bin+"/", "./../../cmd/replica", "./../../cmd/manager")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	return e, nil
}

// startManager starts the operator.
func (e *environment) startManager() (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(e.bin, "manager"), "--replica-image=tidemark:test", "--metrics-address=0", "--health-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig)
	log, err := os.Create(filepath.Join(e.logs, "manager.log"))
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// partition is a ReplicatedPartition whose pods a kubelet of this package runs.
type partition struct {
	t       *testing.T
	kubelet *kubelet
	key     types.NamespacedName
}

// newPartition creates one in a namespace of its own, and waits until it is ready.
func newPartition(t *testing.T, spec v1alpha1.ReplicatedPartitionSpec) *partition {
	t.Helper()
	if env == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	ns := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	p := &partition{t: t, key: types.NamespacedName{Namespace: ns, Name: "orders"}}
	if _, err := env.clientset.CoreV1().Namespaces().Create(t.Context(), namespace(ns), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.kubelet = &kubelet{t: t, client: env.clientset, namespace: ns, kubeconfig: env.kubeconfig, binary: filepath.Join(env.bin, "replica"),
		volumes: t.TempDir(), logs: t.TempDir(), pods: map[types.UID]*container{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.kubelet.run(ctx)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			p.tell()
		}
		cancel()
		<-done
	})
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: p.key.Name}, Spec: spec}
	if err := env.api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool {
		return len(rp.Status.ISR) == rp.EffectiveReplicas() && rp.Status.Leader != ""
	})
	return p
}

// tell shows what happened.
func (p *partition) tell() {
	rp := &v1alpha1.ReplicatedPartition{}
	if err := env.api.Get(context.Background(), p.key, rp); err == nil {
		p.t.Logf("status: %+v", rp.Status)
	}
	names, _ := filepath.Glob(filepath.Join(p.kubelet.logs, "*.log"))
	for _, name := range append(names, filepath.Join(env.logs, "manager.log")) {
		b, _ := os.ReadFile(name)
		p.t.Logf("%s:\n%s", filepath.Base(name), tail(b, 8000))
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// await polls the object until it is as wanted.
func (p *partition) await(what string, ok func(*v1alpha1.ReplicatedPartition) bool) *v1alpha1.ReplicatedPartition {
	p.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		rp := &v1alpha1.ReplicatedPartition{}
		if err := env.api.Get(p.t.Context(), p.key, rp); err == nil && ok(rp) {
			return rp
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			p.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// brokers are the addresses of all running replicas.
func (p *partition) brokers() []string {
	p.kubelet.mu.Lock()
	defer p.kubelet.mu.Unlock()
	var out []string
	for _, c := range p.kubelet.pods {
		out = append(out, c.ip+":9092")
	}
	return out
}
