package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../charts/tidemark"
	release   = "tidemark"
	namespace = "tidemark-system"
)

// api is the one API server that the tests share; nil when KUBEBUILDER_ASSETS is unset.
var api *apiServer

type apiServer struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
}

func TestMain(m *testing.M) { os.Exit(runSuite(m)) }

func runSuite(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	// A busy machine takes longer than envtest's 20 seconds.
	env := &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server of the test environment:", err)
		return 1
	}
	defer env.Stop()
	dir, err := os.MkdirTemp("", "tidemark-chart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, env.KubeConfig, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	api = &apiServer{config: cfg, client: kubernetes.NewForConfigOrDie(cfg), kubeconfig: path}
	return m.Run()
}

// run runs one of the lab's programs with its own settings, and not the user's.
func run(t *testing.T, stdin, program string, args ...string) (string, error) {
	t.Helper()
	// Asked for again: what a test asks for decides whether its old result is shown.
	bin := os.Getenv("KUBEBUILDER_ASSETS")
	if bin == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	if api != nil {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+api.kubeconfig)
	}
	cmd.Stdin = strings.NewReader(stdin)
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, failure.String())
	}
	return out.String(), nil
}

func mustRun(t *testing.T, stdin, program string, args ...string) string {
	t.Helper()
	out, err := run(t, stdin, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// render renders a chart with --set arguments.
func render(t *testing.T, chart string, set ...string) objects {
	t.Helper()
	return parse(t, mustRun(t, "", "helm", renderArgs(chart, set...)...))
}

func renderArgs(chart string, set ...string) []string {
	args := []string{"template", release, chart, "--namespace", namespace}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return args
}

// everything are the arguments that turn every option on.
var everything = []string{
	"networkPolicy.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true",
	"metrics.rules.enabled=true", "metrics.dashboard.enabled=true",
}

// objects are those of a rendering, by kind, namespace and name.
type objects map[string]*unstructured.Unstructured

func key(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

func parse(t *testing.T, text string) objects {
	t.Helper()
	out := objects{}
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o.Object == nil {
			continue
		}
		if out[key(o)] != nil {
			t.Errorf("%s is there twice", key(o))
		}
		out[key(o)] = o
	}
	if len(out) == 0 {
		t.Fatalf("nothing in %q", text)
	}
	return out
}

func (os objects) keys() []string { return slices.Sorted(maps.Keys(os)) }

// ofKind are the objects of a kind, by key.
func (os objects) ofKind(kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, k := range os.keys() {
		if os[k].GetKind() == kind {
			out = append(out, os[k])
		}
	}
	return out
}

func (os objects) must(t *testing.T, key string) *unstructured.Unstructured {
	t.Helper()
	if os[key] == nil {
		t.Fatalf("there is no %s in %q", key, os.keys())
	}
	return os[key]
}
