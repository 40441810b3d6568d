//go:build e2e

package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// What the chart's README promises: helm test produces and consumes, and leaves nothing.
func TestHelmTestProducesAndConsumes(t *testing.T) {
	out := command(t, "helm", "test", "tidemark", "--namespace", operatorNamespace, "--timeout", "5m")
	if !strings.Contains(out, "Succeeded") {
		t.Errorf("helm says\n%s", out)
	}
	err := api.Get(t.Context(), types.NamespacedName{Namespace: operatorNamespace, Name: "tidemark-test"}, &v1alpha1.ReplicatedPartition{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the test's partition is still there: %v", err)
	}
}
