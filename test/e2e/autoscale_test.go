//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// hpaCondition waits until a HorizontalPodAutoscaler says so.
func hpaCondition(t testing.TB, hpa *autoscalingv2.HorizontalPodAutoscaler, kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%s %s because of %s", kind, status, reason), func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(hpa), hpa); err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == kind && c.Status == status && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", hpa.Status.Conditions)
	})
}

// A HorizontalPodAutoscaler works through the scale subresource. There are no metrics in this cluster, so it is its bounds
// that move it; that it asks for metrics shows that it found the pods' selector.
func TestAnAutoscalerChangesTheNumberOfReplicas(t *testing.T) {
	p := newPartition(t, "autoscaled", func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Replicas = 2 })
	l := startLoad(t, p)
	p.awaitInSync(t)
	at := time.Now()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ReplicatedPartition", Name: p.name}
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = ptr.To[int32](3), 5
	if err := api.Create(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output("kubectl", "-n", namespace, "delete", "hpa", p.name, "--ignore-not-found") })
	p.await(t, "three replicas", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.CurrentReplicas == 3 })
	if s := p.awaitComplete(t); len(s.Replicas) != 3 {
		t.Errorf("%d replicas, want 3", len(s.Replicas))
	}
	hpaCondition(t, hpa, autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric")
	hpaCondition(t, hpa, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale")
	l.await(t, time.Now())
	l.report(t, "HorizontalPodAutoscaler with minReplicas 3 over 2 replicas", at)

	at = time.Now()
	kubectl(t, "patch", "hpa", p.name, "--type=merge", "-p", `{"spec":{"minReplicas":1,"maxReplicas":2}}`)
	p.await(t, "two replicas", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.CurrentReplicas == 2 })
	p.awaitComplete(t)
	p.awaitCount(t, &corev1.PodList{}, 2)
	l.await(t, time.Now())
	l.report(t, "HorizontalPodAutoscaler with maxReplicas 2 over 3 replicas", at)
	l.finish(t)
}
