package chart

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/controllers"
)

// patience bounds a test that has failed, and measures nothing.
const patience = 2 * time.Minute

// startOperator runs the operator as a ServiceAccount, with its permissions and no more,
// until it is stopped. The client is the administrator's.
func startOperator(t *testing.T, account, electionNamespace string, namespaces ...string) (admin client.Client, stop func()) {
	t.Helper()
	cfg := rest.CopyConfig(api.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	scheme, err := controllers.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	caches, err := controllers.CacheOptions(namespaces, &controllers.Denials{})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "tidemark-operator", LeaderElectionNamespace: electionNamespace})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Setup(mgr, controllers.Options{Defaults: controllers.ReplicaDefaults{Image: "example.test/tidemark:1"}, Namespaces: namespaces}); err != nil {
		t.Fatal(err)
	}
	if admin, err = client.New(api.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return admin, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	}
}

// The Roles of the chart are all that the operator needs in namespaced mode: it is
// elected, sees its partitions, and makes all that they are made of. The API server
// enforces it, also that nobody grants to replicas what he does not have.
func TestNamespacedOperatorWorksWithItsRoles(t *testing.T) {
	if api == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	mustRun(t, "", "kubectl", "apply", "--server-side", "-f", "../../config/crd/bases")
	defer mustRun(t, "", "kubectl", "delete", "-f", "../../config/crd/bases")
	mustRun(t, "", "kubectl", "wait", "--for=condition=Established", "crd/replicatedpartitions.tidemark.io", "--timeout=60s")
	makeNamespaces(t, "roles", "within", "without")
	grants(t, "roles", "watchNamespaces={within}")
	admin, stop := startOperator(t, "roles:roles-operator", "roles", "within")
	defer stop()
	for _, ns := range []string{"without", "within"} {
		rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"}}
		if err := admin.Create(t.Context(), rp); err != nil {
			t.Fatal(err)
		}
	}
	awaitObjects(t, admin, "within")
	rp := &v1alpha1.ReplicatedPartition{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "without", Name: "orders"}, rp); err != nil || len(rp.Status.Conditions) > 0 {
		t.Errorf("a partition outside of its namespaces was looked at: %+v, %v", rp.Status, err)
	}
}

// awaitObjects waits until all that a partition is made of is there, and its status.
func awaitObjects(t *testing.T, admin client.Client, in string) {
	t.Helper()
	wanted := replicasObjects(t) // of a partition of the same name
	rp := &v1alpha1.ReplicatedPartition{}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for len(wanted) > 0 || len(rp.Status.Conditions) == 0 {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%q were not made; conditions %+v", wanted.keys(), rp.Status.Conditions)
		}
		for k, o := range wanted {
			found := &unstructured.Unstructured{}
			found.SetGroupVersionKind(o.GroupVersionKind())
			if admin.Get(t.Context(), client.ObjectKey{Namespace: in, Name: o.GetName()}, found) == nil {
				delete(wanted, k)
			}
		}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: in, Name: "orders"}, rp); err != nil {
			t.Fatal(err)
		}
	}
}
