//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

func TestLeaderProcessIsKilledAgainAndAgain(t *testing.T) {
	p := newPartition(t, "killed")
	l := startLoad(t, p)
	for range 3 {
		before := p.awaitInSync(t)
		at := killPod(t, namespace, before.Leader, "replica")
		l.await(t, at.Add(500*time.Millisecond)) // records sent long after the kill
		after := p.awaitEpochAfter(t, before.LeaderEpoch)
		l.report(t, fmt.Sprintf("kill -9 of %s, %s leads in epoch %d", before.Leader, after.Leader, after.LeaderEpoch), at)
	}
	p.awaitInSync(t)
	l.finish(t)
}

func TestFollowerProcessIsKilled(t *testing.T) {
	p := newPartition(t, "follower")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	i := slices.IndexFunc(before.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Name != before.Leader })
	at := killPod(t, namespace, before.Replicas[i].Name, "replica")
	l.await(t, at.Add(500*time.Millisecond))
	l.report(t, "kill -9 of the follower "+before.Replicas[i].Name, at)
	after := p.awaitInSync(t)
	if after.LeaderEpoch != before.LeaderEpoch {
		t.Errorf("a follower's death caused an election: epoch %d, want %d", after.LeaderEpoch, before.LeaderEpoch)
	}
	l.finish(t)
}

func TestLeaderPodIsDeleted(t *testing.T) {
	p := newPartition(t, "deleted")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	old := pod(t, before.Leader)
	at := time.Now()
	kubectl(t, "delete", "pod", before.Leader, "--wait=false")
	l.await(t, at.Add(500*time.Millisecond))
	after := p.awaitEpochAfter(t, before.LeaderEpoch)
	if after.Leader == before.Leader {
		t.Errorf("%s still leads, want a switchover", after.Leader)
	}
	l.report(t, fmt.Sprintf("deletion of pod %s, %s leads in epoch %d", before.Leader, after.Leader, after.LeaderEpoch), at)
	eventually(t, 2*time.Minute, "a new pod "+before.Leader, func(ctx context.Context) error {
		if now := pod(t, before.Leader); now.UID == old.UID {
			return fmt.Errorf("the old pod is still there, deleted at %v", now.DeletionTimestamp)
		}
		return nil
	})
	p.awaitInSync(t)
	l.finish(t)
}

// pod reads a pod; a zero one if there is none.
func pod(t testing.TB, name string) corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return p
}

func TestNodeOfTheLeaderLosesPower(t *testing.T) {
	p := newPartition(t, "power")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	node := nodeNumber(t, namespace, before.Leader)
	at := time.Now()
	lab(t, "cut-node", node)
	restored := false
	restore := func() {
		if !restored {
			restored = true
			t.Log(output(labScript, "start-node", node))
		}
	}
	t.Cleanup(restore)
	l.await(t, at.Add(time.Second))
	after := p.awaitEpochAfter(t, before.LeaderEpoch)
	l.report(t, fmt.Sprintf("power cut of node %s with %s, %s leads in epoch %d", node, before.Leader, after.Leader, after.LeaderEpoch), at)
	restore()
	p.awaitInSync(t)
	l.finish(t)
}

func TestNodeOfTheLeaderIsDrained(t *testing.T) {
	p := newPartition(t, "drained")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	node := "node" + nodeNumber(t, namespace, before.Leader)
	t.Cleanup(func() { output("kubectl", "uncordon", node) })
	at := time.Now()
	command(t, "kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
	l.await(t, at.Add(500*time.Millisecond))
	after := p.awaitEpochAfter(t, before.LeaderEpoch)
	l.report(t, fmt.Sprintf("drain of %s, %s leads in epoch %d", node, after.Leader, after.LeaderEpoch), at)
	p.awaitInSync(t) // on the two nodes that are left
	for _, r := range p.status(t).Replicas {
		if r.Node == node {
			t.Errorf("replica %s is on %s, which was drained", r.Name, node)
		}
	}
	command(t, "kubectl", "uncordon", node)
	l.finish(t)
}

// With two of three replicas in sync, evicting one more would leave acks=all without its minimum.
func TestDrainWaitsWhileAReplicaIsMissing(t *testing.T) {
	p := newPartition(t, "budget")
	before := p.awaitInSync(t)
	victim := before.Replicas[0].Name
	kubectl(t, "wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/"+p.name, "--timeout=60s")
	node := "node" + nodeNumber(t, namespace, victim)
	command(t, "kubectl", "cordon", node)
	t.Cleanup(func() { output("kubectl", "uncordon", node) })
	for _, n := range []string{"node1", "node2", "node3"} { // nowhere to go
		command(t, "kubectl", "cordon", n)
		t.Cleanup(func() { output("kubectl", "uncordon", n) })
	}
	kubectl(t, "delete", "pod", victim)
	kubectl(t, "wait", "--for=jsonpath={.status.disruptionsAllowed}=0", "pdb/"+p.name, "--timeout=60s")
	other := "node" + nodeNumber(t, namespace, before.Replicas[1].Name)
	if out := output("kubectl", "drain", other, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5s",
		"--pod-selector="+v1alpha1.LabelPartition+"="+p.name); !containsAll(out, "disruption budget") {
		t.Errorf("drain of %s while %s is missing was not refused by the disruption budget:\n%s", other, victim, out)
	}
	for _, n := range []string{"node1", "node2", "node3"} {
		command(t, "kubectl", "uncordon", n)
	}
	p.awaitInSync(t)
}
