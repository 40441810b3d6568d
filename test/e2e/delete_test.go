//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

type statusType = v1alpha1.ReplicatedPartitionStatus

func TestDeletionKeepsVolumesUnlessToldOtherwise(t *testing.T) {
	tests := []struct {
		name   string
		policy v1alpha1.RetentionPolicyType
		claims int
	}{
		{name: "retain", policy: v1alpha1.RetainVolume, claims: 3},
		{name: "delete", policy: v1alpha1.DeleteVolume, claims: 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := newPartition(t, "gone-"+tc.name, func(rp *v1alpha1.ReplicatedPartition) {
				rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = tc.policy
			})
			kcatProduce(t, p, text(100))
			kubectl(t, "delete", "rp", p.name, "--timeout=90s")
			for _, list := range []client.ObjectList{
				&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &coordinationv1.LeaseList{},
				&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
			} {
				p.awaitCount(t, list, 0)
			}
			p.awaitCount(t, &corev1.PersistentVolumeClaimList{}, tc.claims)
		})
	}
}

// awaitCount waits until the partition has so many objects of a kind.
func (p partition) awaitCount(t testing.TB, list client.ObjectList, want int) {
	t.Helper()
	eventually(t, 90*time.Second, fmt.Sprintf("%d objects in %T of %s", want, list, p.name), func(ctx context.Context) error {
		if err := api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPartition: p.name}); err != nil {
			return err
		}
		if n := meta.LenList(list); n != want {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// A namespace must go away with the operator gone, or its users are stuck.
func TestNamespaceGoesAwayWithoutTheOperator(t *testing.T) {
	const ns = "short-lived"
	kubectl(t, "create", "namespace", ns)
	t.Cleanup(func() { output("kubectl", "delete", "namespace", ns, "--wait=false") })
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "log"}}
	rp.Spec.Storage.Size = quantity("1Gi")
	if err := api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	command(t, "kubectl", "-n", ns, "wait", "--for=condition=Ready", "rp/log", "--timeout=120s")
	deployment := command(t, "kubectl", "-n", operatorNamespace, "get", "deployment", "-o", "name")
	scale := func(n string) {
		output("kubectl", "-n", operatorNamespace, "scale", deployment, "--replicas="+n)
		output("kubectl", "-n", operatorNamespace, "rollout", "status", deployment, "--timeout=90s")
	}
	t.Cleanup(func() { scale("2") })
	scale("0")
	command(t, "kubectl", "delete", "namespace", ns, "--timeout=120s")
}
