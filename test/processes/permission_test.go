package processes

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// TestAReplicaWithoutItsRoleIsNotReady takes the permissions of a partition's replicas away while
// no operator runs, and lets one start anew (H06): it says what is missing and is not ready, and
// goes on by itself when the operator has put the permissions back.
func TestAReplicaWithoutItsRoleIsNotReady(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	rp := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
	follower := "orders-0"
	if rp.Status.Leader == follower {
		follower = "orders-1"
	}
	if err := env.operator.kill(); err != nil {
		t.Fatal(err)
	}
	start := sync.OnceValue(env.operator.start)
	t.Cleanup(func() { _ = start() })
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: rp.AccessName()}}
	if err := env.api.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	c := p.kubelet.container(follower)
	c.crash(nil)()
	log := filepath.Join(p.kubelet.logs, follower+".log")
	const missing = `cannot get resource \"replicatedpartitions\"` // what it reads first
	p.poll("its log to say what is missing", func() bool {
		b, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(b), missing)
	})
	if c.isReady() {
		t.Error("it is ready")
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	p.await("every replica in sync again", func(now *v1alpha1.ReplicatedPartition) bool {
		return now.Status.PartitionEpoch > rp.Status.PartitionEpoch && len(now.Status.ISR) == 3
	})
	l.check()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), missing); n != 1 {
		t.Errorf("its log says so %d times, want once:\n%s", n, b)
	}
}
