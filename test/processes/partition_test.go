package processes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// patience is how long a condition may take to come true; it bounds a test that has failed, and measures nothing.
const patience = 2 * time.Minute

// partition is a ReplicatedPartition whose pods a kubelet of this package runs.
type partition struct {
	t       *testing.T
	kubelet *kubelet
	key     types.NamespacedName
}

// newPartition creates one in a namespace of its own, and waits until it is ready.
func newPartition(t *testing.T, spec v1alpha1.ReplicatedPartitionSpec) *partition {
	t.Helper()
	p := newNamespace(t, "orders")
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}, Spec: spec}
	if err := env.api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool {
		return len(rp.Status.ISR) == rp.EffectiveReplicas() && rp.Status.Leader != ""
	})
	return p
}

func skipWithoutAPI(t *testing.T) {
	t.Helper()
	// Asked for again: what a test asks for decides whether its old result is shown.
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || env == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
}

// newNamespace makes a namespace with a kubelet, for one partition of that name.
func newNamespace(t *testing.T, name string) *partition {
	t.Helper()
	skipWithoutAPI(t)
	ns := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	p := &partition{t: t, key: types.NamespacedName{Namespace: ns, Name: name}}
	if _, err := env.clientset.CoreV1().Namespaces().Create(t.Context(), namespace(ns), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.kubelet = newKubelet(t, ns)
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
	return p
}

// tell shows what happened.
func (p *partition) tell() {
	rp := &v1alpha1.ReplicatedPartition{}
	if err := env.api.Get(context.Background(), p.key, rp); err == nil {
		p.t.Logf("status: %+v", rp.Status)
	}
	for _, name := range p.logFiles() {
		b, _ := os.ReadFile(name)
		p.t.Logf("%s:\n%s", filepath.Base(name), tail(b, 8000))
	}
}

// logFiles are those of the replicas and of the operators.
func (p *partition) logFiles() []string {
	replicas, _ := filepath.Glob(filepath.Join(p.kubelet.logs, "*.log"))
	operators, _ := filepath.Glob(filepath.Join(env.logs, "*.log"))
	return append(replicas, operators...)
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// await polls the object until it is as wanted.
func (p *partition) await(what string, ok func(*v1alpha1.ReplicatedPartition) bool) *v1alpha1.ReplicatedPartition {
	p.t.Helper()
	var found *v1alpha1.ReplicatedPartition
	p.poll(what, func() bool {
		rp := &v1alpha1.ReplicatedPartition{}
		if err := env.api.Get(p.t.Context(), p.key, rp); err != nil {
			return false
		}
		found = rp
		return ok(rp)
	})
	return found
}

// poll waits until a condition holds.
func (p *partition) poll(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			p.t.Fatalf("waited in vain for: %s", what)
		}
	}
}
