//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// follower is an in-sync replica that does not lead.
func follower(s v1alpha1.ReplicatedPartitionStatus) v1alpha1.ReplicaStatus {
	return s.Replicas[slices.IndexFunc(s.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.InSync && r.Name != s.Leader })]
}

// awaitLeader waits until a replica leads and all are in sync with it.
func (p partition) awaitLeader(t testing.TB, name string) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	p.await(t, name+" to lead", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.Leader == name })
	return p.awaitInSync(t)
}

// awaitProgressing waits until the condition has this reason, and returns its message.
func (p partition) awaitProgressing(t testing.TB, reason string) string {
	t.Helper()
	s := p.await(t, "Progressing because of "+reason, func(s v1alpha1.ReplicatedPartitionStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
		return c != nil && c.Reason == reason
	})
	return meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing).Message
}

// The user asks for another leader, under load: no write fails, and nothing is lost or written twice.
func TestLeadershipGoesWhereTheUserWantsIt(t *testing.T) {
	p := newPartition(t, "promote")
	l := startLoad(t, p)
	for range 3 {
		before := p.awaitInSync(t)
		to := follower(before)
		at := time.Now()
		kubectl(t, "annotate", "rp", p.name, "--overwrite", fmt.Sprintf("%s=%d/%d", v1alpha1.AnnotationPromote, before.LeaderEpoch, to.ID))
		after := p.awaitLeader(t, to.Name)
		if after.LeaderEpoch != before.LeaderEpoch+1 || after.LastElection != "Switchover" {
			t.Errorf("%s leads epoch %d after %d, by %s; want the next one, by a switchover", after.Leader, after.LeaderEpoch, before.LeaderEpoch, after.LastElection)
		}
		l.await(t, time.Now())
		l.report(t, "switchover to "+to.Name, at)
	}
	before := p.awaitInSync(t)
	kubectl(t, "annotate", "rp", p.name, "--overwrite", fmt.Sprintf("%s=%d/7", v1alpha1.AnnotationPromote, before.LeaderEpoch))
	if said := p.awaitProgressing(t, v1alpha1.ReasonSwitchoverRefused); !containsAll(said, "replica 7 is not assigned") {
		t.Errorf("the condition says %q", said)
	}
	kubectl(t, "annotate", "rp", p.name, v1alpha1.AnnotationPromote+"-")
	p.awaitProgressing(t, v1alpha1.ReasonComplete)
	l.finish(t)
}

// The preferred leader leads again when it is back.
func TestThePreferredLeaderGetsTheLeadershipBack(t *testing.T) {
	p := newPartition(t, "preferred")
	l := startLoad(t, p)
	to := follower(p.awaitInSync(t))
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"leaderElection":{"preferredLeader":%d}}}`, to.ID))
	p.awaitLeader(t, to.Name)
	at := time.Now()
	before := p.status(t)
	kubectl(t, "delete", "pod", to.Name, "--wait=false")
	p.await(t, "another leader meanwhile", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return s.Leader != to.Name && s.Leader != "" && s.LeaderEpoch > before.LeaderEpoch
	})
	p.awaitLeader(t, to.Name)
	l.await(t, time.Now())
	l.report(t, "preferred leader deleted and back", at)
	l.finish(t)
}

// Paused, the operator makes no pod, and elects nevertheless.
func TestAPausedPartitionIsLeftAlone(t *testing.T) {
	p := newPartition(t, "paused")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	kubectl(t, "annotate", "rp", p.name, v1alpha1.AnnotationPaused+"=true")
	p.awaitProgressing(t, v1alpha1.ReasonPaused)
	at := time.Now()
	kubectl(t, "delete", "pod", before.Leader)
	p.awaitEpochAfter(t, before.LeaderEpoch)
	l.await(t, time.Now())
	l.report(t, "the leader's pod is deleted while paused", at)
	if out := kubectl(t, "get", "pods", "-l", v1alpha1.LabelPartition+"="+p.name, "-o", "name"); containsAll(out, "pod/"+before.Leader+"\n") {
		t.Errorf("a pod was made while paused:\n%s", out)
	}
	kubectl(t, "annotate", "rp", p.name, v1alpha1.AnnotationPaused+"-")
	p.awaitInSync(t)
	l.finish(t)
}

// Suspended, no pod runs. Then the log goes on where it was.
func TestASuspendedPartitionGoesOnWhereItWas(t *testing.T) {
	p := newPartition(t, "suspended")
	kcatProduce(t, p, text(1000))
	before := p.awaitInSync(t)
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	p.awaitReason(t, v1alpha1.ReasonSuspended)
	if out := kubectl(t, "get", "pods", "-l", v1alpha1.LabelPartition+"="+p.name, "-o", "name"); out != "" {
		t.Errorf("pods run:\n%s", out)
	}
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	after := p.awaitInSync(t)
	if after.LeaderEpoch <= before.LeaderEpoch || after.HighWatermark == nil || *after.HighWatermark != 1000 {
		t.Errorf("leader epoch %d after %d, high watermark %v; want a higher one, and 1000", after.LeaderEpoch, before.LeaderEpoch, after.HighWatermark)
	}
	if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
		p.await(t, "it to be ready", func(s v1alpha1.ReplicatedPartitionStatus) bool {
			return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
		})
	}
	if got, want := kcatConsume(t, p), text(1000); got != want {
		t.Errorf("what is there is not what was written: %s", firstDifference(got, want))
	}
}

// A node is lost for good, with the volume that cannot leave it: the replica is made anew on another node, and the volume
// that comes back with the node later is nobody's.
func TestAReplicaLostWithItsNodeIsMadeAnew(t *testing.T) {
	p := newPartition(t, "lost-node", func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.StorageClassName = ptr.To("local") })
	l := startLoad(t, p)
	victim := follower(p.awaitInSync(t))
	old := p.claim(t, victim.Name)
	number := nodeNumber(t, namespace, victim.Name)
	node := "node" + number
	lab(t, "cut-node", number)
	t.Cleanup(func() {
		t.Log(output(labScript, "start-node", number))
		output("kubectl", "taint", "node", node, corev1.TaintNodeOutOfService+"-")
	})
	p.await(t, "the leader to go on without it", func(s v1alpha1.ReplicatedPartitionStatus) bool { return !slices.Contains(s.ISR, victim.ID) })
	if now := p.claim(t, victim.Name); now.UID != old.UID || now.DeletionTimestamp != nil {
		t.Fatal("the volume of a node that may come back is given up")
	}
	at := time.Now()
	kubectl(t, "taint", "node", node, corev1.TaintNodeOutOfService+"=lost:NoExecute")
	after := p.await(t, "it to be in sync on another node", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		i := slices.IndexFunc(s.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Name == victim.Name })
		return i >= 0 && s.Replicas[i].InSync && s.Replicas[i].Node != node && s.Replicas[i].DirectoryID != victim.DirectoryID
	})
	if now := p.claim(t, victim.Name); now.UID == old.UID {
		t.Error("it has its old volume claim")
	}
	l.await(t, time.Now())
	l.report(t, fmt.Sprintf("%s lost with %s, in sync elsewhere after %s", victim.Name, node, time.Since(at).Round(time.Second)), at)
	p.awaitInSync(t)
	if after.Leader == "" {
		t.Error("nobody leads")
	}
	l.finish(t)
}

// claim reads the volume claim of a replica.
func (p partition) claim(t testing.TB, replica string) corev1.PersistentVolumeClaim {
	t.Helper()
	var c corev1.PersistentVolumeClaim
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data-" + replica}, &c); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return c
}
