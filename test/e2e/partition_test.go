//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// partition is a ReplicatedPartition of one test.
type partition struct {
	name string
}

// newPartition makes a partition of three replicas, waits until all are in sync, and removes it with its volumes when the
// test ends.
func newPartition(t testing.TB, name string, change ...func(*v1alpha1.ReplicatedPartition)) partition {
	t.Helper()
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	rp.Spec.Storage.Size = quantity("1Gi")
	for _, c := range change {
		c(rp)
	}
	if err := api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	p := partition{name}
	t.Cleanup(func() { p.remove(t) })
	t.Cleanup(func() { p.explain(t) })
	p.awaitInSync(t)
	return p
}

// explain shows what the cluster knew, if the test failed.
func (p partition) explain(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, args := range [][]string{
		{"get", "rp", p.name, "-o", "yaml"},
		{"get", "lease", p.name, "-o", "yaml"},
		{"get", "pods", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "--prefix", "--tail=40", "-l", v1alpha1.LabelPartition + "=" + p.name},
		{"-n", operatorNamespace, "logs", "--prefix", "--tail=20", "-l", v1alpha1.LabelName + "=tidemark-operator"},
	} {
		out := strings.Split(output("kubectl", append([]string{"-n", namespace}, args...)...), "\n")
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), strings.Join(out[max(0, len(out)-150):], "\n"))
	}
}

func (p partition) remove(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}
	if err := client.IgnoreNotFound(api.Delete(ctx, rp)); err != nil {
		t.Errorf("delete partition %s: %v", p.name, err)
	}
	if out := output("kubectl", "-n", namespace, "wait", "--for=delete", "pod", "-l", v1alpha1.LabelPartition+"="+p.name, "--timeout=90s"); out != "" {
		t.Logf("after the deletion of %s: %s", p.name, out)
	}
	claims := &corev1.PersistentVolumeClaim{}
	err := api.DeleteAllOf(ctx, claims, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPartition: p.name})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("delete the volumes of %s: %v", p.name, err)
	}
}

func (p partition) get(ctx context.Context) (*v1alpha1.ReplicatedPartition, error) {
	rp := &v1alpha1.ReplicatedPartition{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.name}, rp)
	return rp, err
}

// status returns the status as it is now.
func (p partition) status(t testing.TB) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	rp, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rp.Status
}

// await waits for a status that satisfies ok.
func (p partition) await(t testing.TB, what string, ok func(v1alpha1.ReplicatedPartitionStatus) bool) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	var got v1alpha1.ReplicatedPartitionStatus
	eventually(t, 3*time.Minute, fmt.Sprintf("%s of partition %s", what, p.name), func(ctx context.Context) error {
		rp, err := p.get(ctx)
		if err != nil {
			return err
		}
		got = rp.Status
		if !ok(got) {
			return fmt.Errorf("leader %q, epoch %d, ISR %v, conditions %+v", got.Leader, got.LeaderEpoch, got.ISR, got.Conditions)
		}
		return nil
	})
	return got
}

// awaitInSync waits until every replica is a live member of the ISR and acks=all succeeds.
func (p partition) awaitInSync(t testing.TB) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	return p.await(t, "all replicas in sync", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return s.Leader != "" && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInSync) &&
			meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable)
	})
}

// awaitEpochAfter waits until a leader of a newer epoch serves.
func (p partition) awaitEpochAfter(t testing.TB, epoch int32) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	return p.await(t, fmt.Sprintf("a leader after epoch %d", epoch), func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return s.Leader != "" && s.LeaderEpoch > epoch && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable)
	})
}

// brokers are the bootstrap addresses: each replica by its own name, so that it does not matter which of them live.
func (p partition) brokers(t testing.TB) []string {
	t.Helper()
	rp, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bs []string
	for _, r := range rp.Status.Replicas {
		bs = append(bs, fmt.Sprintf("%s.%s.%s.svc.cluster.local:%d", r.Name, rp.ReplicasServiceName(), namespace, v1alpha1.PortKafka))
	}
	return bs
}

// nodeNumber gives the lab's number of the node that a pod runs on.
func nodeNumber(t testing.TB, namespace, pod string) string {
	t.Helper()
	var p corev1.Pod
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(p.Spec.NodeName, "node")
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }
