package processes

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// TestScalingUnderLoadLosesNothing adds two replicas, and takes them and the leader's
// turn away again.
func TestScalingUnderLoadLosesNothing(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	for _, want := range []string{"5", "3"} {
		rp := &v1alpha1.ReplicatedPartition{}
		rp.Namespace, rp.Name = p.key.Namespace, p.key.Name
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+want+`}}`))
		if err := env.api.Patch(t.Context(), rp, patch); err != nil {
			t.Fatal(err)
		}
		p.await(want+" replicas in sync", func(rp *v1alpha1.ReplicatedPartition) bool {
			n := int(want[0] - '0')
			return len(rp.Status.ISR) == n && len(rp.Status.Replicas) == n && rp.Status.Leader != ""
		})
	}
	l.check()
}
