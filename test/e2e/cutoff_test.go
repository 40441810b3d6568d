//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// operators are the pods of the operator by name.
func operators(t testing.TB) map[string]types.UID {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(operatorNamespace), client.MatchingLabels{v1alpha1.LabelName: "tidemark-operator"}); err != nil {
		t.Fatal(err)
	}
	pods := map[string]types.UID{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods[pod.Name] = pod.UID
		}
	}
	if len(pods) == 0 {
		t.Fatal("there is no operator")
	}
	return pods
}

// reaches tells whether a client in the network of an operator's pod gets through to every replica.
func (p partition) reaches(t testing.TB, operator string) error {
	t.Helper()
	pid := lab(t, "pod-pid", operatorNamespace, operator, "manager")
	for name, pod := range p.podsByName(t) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		address := fmt.Sprintf("%s:%d", pod.Status.PodIP, v1alpha1.PortKafka)
		if out, err := exec.CommandContext(ctx, "nsenter", "--net", "--target", pid, "kcat", "-b", address, "-L", "-m", "2").CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// H95: an operator that can reach no replica, and whom none can reach, does all of its work by what the API server says.
func TestAnOperatorCutOffFromThePodsDoesItsWork(t *testing.T) {
	p := newPartition(t, "cut-off")
	l := startLoad(t, p)
	before, those := p.awaitInSync(t), operators(t)
	t.Cleanup(func() { output(labScript, "join-pods") })
	for name := range those {
		if err := p.reaches(t, name); err != nil {
			t.Fatalf("%s does not reach the replicas before it is cut off: %v", name, err)
		}
		lab(t, "isolate-pod", operatorNamespace, name)
		if p.reaches(t, name) == nil {
			t.Fatalf("%s reaches replicas although it is cut off", name)
		}
	}

	at := killPod(t, namespace, before.Leader, "replica")
	l.await(t, at.Add(500*time.Millisecond))
	after := p.awaitEpochAfter(t, before.LeaderEpoch)
	l.report(t, fmt.Sprintf("operator cut off from the pods: kill -9 of %s, %s leads in epoch %d", before.Leader, after.Leader, after.LeaderEpoch), at)
	p.awaitInSync(t)

	at = time.Now()
	p.scale(t, 4)
	if s := p.awaitComplete(t); len(s.Replicas) != 4 {
		t.Errorf("%d replicas, want 4", len(s.Replicas))
	}
	l.await(t, time.Now())
	l.report(t, "operator cut off from the pods: kubectl scale to 4", at)

	at, old := time.Now(), p.podsByName(t)
	p.patch(t, `{"spec":{"resources":{"limits":{"memory":"640Mi"}}}}`)
	p.awaitComplete(t)
	for name, pod := range p.podsByName(t) {
		if pod.UID == old[name].UID {
			t.Errorf("pod %s was not replaced", name)
		}
	}
	l.await(t, time.Now())
	l.report(t, "operator cut off from the pods: all pods replaced by a change of resources", at)

	if now := operators(t); !maps.Equal(now, those) {
		t.Errorf("the operators are not those that were cut off: %v, before %v", now, those)
	}
	for name := range those {
		if p.reaches(t, name) == nil {
			t.Errorf("%s reaches replicas: it was not cut off all the time", name)
		}
	}
	l.finish(t)
}
