package processes

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/internal/selftest"
)

// What `helm test` runs: it says what it has done, leaves nothing behind, and touches no
// partition but its own.
func TestSelftest(t *testing.T) {
	p := newNamespace(t, "trial")
	var out strings.Builder
	cfg := selftest.Config{Namespace: p.key.Namespace, Name: p.key.Name, Replicas: 3, Records: 500, StorageSize: "64Mi", Out: &out,
		Options: []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, p.key.Name+"."+p.key.Namespace+".svc:") {
				address = p.anyReady()
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		})}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := selftest.Run(ctx, env.api, cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"produced 500 records", "consumed the same 500 records", "removed the partition"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says nothing of %q:\n%s", want, out.String())
		}
	}
	if err := env.api.Get(t.Context(), p.key, &v1alpha1.ReplicatedPartition{}); !apierrors.IsNotFound(err) {
		t.Errorf("the partition is still there: %v", err)
	}

	// From here on there is a partition of that name that is a user's.
	own := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}, Spec: threeReplicas()}
	if err := env.api.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := selftest.Run(ctx, env.api, cfg); err == nil || !strings.Contains(err.Error(), "not a test's") {
		t.Errorf("got %v, want a refusal to touch the user's partition", err)
	}
	if err := env.api.Get(t.Context(), p.key, own); err != nil || own.DeletionTimestamp != nil {
		t.Errorf("the user's partition was touched: %v", err)
	}
}

// A test that cannot end tells what it has waited for, and removes its partition.
func TestSelftestTellsWhyItFails(t *testing.T) {
	skipWithoutAPI(t)
	p := &partition{t: t, key: types.NamespacedName{Namespace: "nothing-runs-here", Name: "trial"}}
	if _, err := env.clientset.CoreV1().Namespaces().Create(t.Context(), namespace(p.key.Namespace), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg := selftest.Config{Namespace: p.key.Namespace, Name: p.key.Name, Replicas: 3, Records: 1, StorageSize: "64Mi", Out: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- selftest.Run(ctx, env.api, cfg) }()
	p.await("a status", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.Conditions) > 0 })
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "not ready") || !strings.Contains(err.Error(), "trial") {
		t.Errorf("got %v, want an error that says what is not ready", err)
	}
	if err := env.api.Get(t.Context(), p.key, &v1alpha1.ReplicatedPartition{}); !apierrors.IsNotFound(err) {
		t.Errorf("the partition is still there: %v", err)
	}
}
