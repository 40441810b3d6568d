//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

const (
	namespace         = "default"
	operatorNamespace = "tidemark-system"
)

var (
	// api reads the cluster without a cache.
	api client.Client
	// labScript is hack/lab/cluster.sh, which also makes the faults.
	labScript = os.Getenv("TIDEMARK_LAB")
)

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	status := m.Run()
	printTable(os.Stdout)
	os.Exit(status)
}

func connect() error {
	if labScript == "" {
		return fmt.Errorf("TIDEMARK_LAB is unset: run these tests with make e2e, which starts the cluster that they need")
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	api, err = client.New(cfg, client.Options{Scheme: scheme})
	return err
}

// command runs a program to its end and returns its output, trimmed; the test ends if it fails.
func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func lab(t testing.TB, args ...string) string { t.Helper(); return command(t, labScript, args...) }

func kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return command(t, "kubectl", append([]string{"-n", namespace}, args...)...)
}

// killPod kills the first process of a pod's container and returns when.
func killPod(t testing.TB, namespace, pod, container string) time.Time {
	t.Helper()
	ns, err := strconv.ParseInt(lab(t, "kill-pod", namespace, pod, container), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ns)
}

// eventually waits until check returns nil, and fails with its last error after the limit.
func eventually(t testing.TB, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s did not come within %s: %v", what, limit, last)
	}
}
