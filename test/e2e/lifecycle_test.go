//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// patch changes the spec, or anything else of the partition, by a merge patch.
func (p partition) patch(t testing.TB, patch string) {
	t.Helper()
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", patch)
}

// scale asks for so many replicas.
func (p partition) scale(t testing.TB, n int) {
	t.Helper()
	kubectl(t, "scale", "rp", p.name, fmt.Sprintf("--replicas=%d", n))
}

// podsByName are the partition's pods.
func (p partition) podsByName(t testing.TB) map[string]corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPartition: p.name}); err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// awaitComplete waits until the spec as it now is has been carried out, with all replicas in sync.
func (p partition) awaitComplete(t testing.TB) v1alpha1.ReplicatedPartitionStatus {
	t.Helper()
	rp, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.await(t, "everything as the spec says", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
		return s.ObservedGeneration >= rp.Generation && c != nil && c.Reason == v1alpha1.ReasonComplete
	})
	return p.awaitInSync(t)
}

// endOperators deletes the operator's pods without grace: as good as kill -9.
func endOperators(t testing.TB) {
	t.Helper()
	command(t, "kubectl", "-n", operatorNamespace, "delete", "pod", "-l", v1alpha1.LabelName+"=tidemark-operator", "--grace-period=0", "--force", "--wait=false")
}

// The pods are replaced one by one, under load, while the operators are killed whenever a pod has gone. A producer notices
// hand-overs.
func TestARollingChangeGoesOnThroughTheDeathOfOperators(t *testing.T) {
	p := newPartition(t, "rolled")
	l := startLoad(t, p)
	before, old := p.awaitInSync(t), p.podsByName(t)
	at := time.Now()
	p.patch(t, `{"spec":{"resources":{"limits":{"memory":"640Mi"}}}}`)
	replaced := func() (names []string) {
		for name, pod := range p.podsByName(t) {
			if pod.UID != old[name].UID {
				names = append(names, name)
			}
		}
		return names
	}
	for n := 1; n <= len(old); n++ {
		eventually(t, 3*time.Minute, fmt.Sprintf("%d pods to be replaced", n), func(context.Context) error {
			if got := replaced(); len(got) < n {
				return fmt.Errorf("only %q are; the status is %+v", got, p.status(t).Conditions)
			}
			return nil
		})
		if got := replaced(); n < len(old) && slices.Contains(got, before.Leader) {
			t.Errorf("%s led and was replaced before the others: %q", before.Leader, got)
		}
		endOperators(t)
	}
	after := p.awaitComplete(t)
	if after.LeaderEpoch != before.LeaderEpoch+1 {
		t.Errorf("leader epoch %d after %d: want one hand-over", after.LeaderEpoch, before.LeaderEpoch)
	}
	l.await(t, time.Now())
	l.report(t, "all pods replaced by a change of resources, operators killed after each", at)
	l.finish(t)
}

// A change to an image that cannot be pulled stops at the first pod, and is taken back.
func TestABadImageStopsTheRoll(t *testing.T) {
	p := newPartition(t, "bad-image")
	l := startLoad(t, p)
	old := p.podsByName(t)
	p.awaitInSync(t)
	at := time.Now()
	p.patch(t, `{"spec":{"image":"localhost/there-is-none:1"}}`)
	if said := p.awaitProgressing(t, v1alpha1.ReasonImagePull); !strings.Contains(said, "localhost/there-is-none:1") {
		t.Errorf("the condition does not name the image: %s", said)
	}
	same := 0
	for name, pod := range p.podsByName(t) {
		if pod.UID == old[name].UID {
			same++
		}
	}
	if same != 2 {
		t.Errorf("%d of 3 pods are left as they were, want 2", same)
	}
	if s := p.status(t); !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("it is not ready with two of three replicas: %+v", s.Conditions)
	}
	p.patch(t, `{"spec":{"image":null}}`)
	p.awaitComplete(t)
	l.await(t, time.Now())
	l.report(t, "a change to an image that does not exist, and back", at)
	l.finish(t)
}

// Replicas are added and taken away under load, and the user changes his mind half-way.
func TestAScaleIsTakenBackHalfWay(t *testing.T) {
	p := newPartition(t, "scaled", func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1alpha1.DeleteVolume
	})
	l := startLoad(t, p)
	p.awaitInSync(t)
	at := time.Now()
	p.scale(t, 5)
	p.await(t, "five replicas in the record", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.CurrentReplicas == 5 })
	p.scale(t, 2)
	p.await(t, "fewer than five replicas", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.CurrentReplicas < 5 })
	p.scale(t, 3)
	after := p.awaitComplete(t)
	if len(after.Replicas) != 3 {
		t.Errorf("%d replicas, want 3", len(after.Replicas))
	}
	p.awaitCount(t, &corev1.PodList{}, 3)
	p.awaitCount(t, &corev1.PersistentVolumeClaimList{}, 3)
	l.await(t, time.Now())
	l.report(t, "kubectl scale to 5, half-way to 2, then to 3; volumes deleted", at)
	l.finish(t)
}

// A volume that was kept when its replica was removed comes back with it, out of the ISR until it has what was written
// meanwhile.
func TestAKeptVolumeComesBackWithItsReplica(t *testing.T) {
	p := newPartition(t, "kept-volume")
	l := startLoad(t, p)
	p.awaitInSync(t)
	p.scale(t, 2)
	p.awaitComplete(t)
	p.awaitCount(t, &corev1.PodList{}, 2)
	claim := p.claim(t, p.name+"-2")
	if claim.UID == "" {
		t.Fatal("the volume claim was not kept")
	}
	l.await(t, time.Now())
	at := time.Now()
	p.scale(t, 3)
	p.awaitComplete(t)
	if now := p.claim(t, p.name+"-2"); now.UID != claim.UID {
		t.Error("it came back on another volume")
	}
	l.await(t, time.Now())
	l.report(t, "scaled from 2 back to 3 over a kept volume", at)
	l.finish(t)
}

// The volume claim of a follower is deleted by hand, and then its pod.
func TestALostVolumeIsMadeAnew(t *testing.T) {
	p := newPartition(t, "lost-volume")
	l := startLoad(t, p)
	victim := follower(p.awaitInSync(t))
	old := p.claim(t, victim.Name)
	at := time.Now()
	kubectl(t, "delete", "pvc", "data-"+victim.Name, "--wait=false")
	kubectl(t, "delete", "pod", victim.Name)
	p.await(t, "the replica in sync on a new volume", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		i := slices.IndexFunc(s.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Name == victim.Name })
		return i >= 0 && s.Replicas[i].InSync && s.Replicas[i].DirectoryID != victim.DirectoryID
	})
	if now := p.claim(t, victim.Name); now.UID == old.UID {
		t.Error("it has its old volume claim")
	}
	l.await(t, time.Now())
	l.report(t, "the volume claim of "+victim.Name+" deleted with its pod", at)
	p.awaitInSync(t)
	l.finish(t)
}

// Volumes grow while the partition serves, and no pod is replaced for it.
func TestVolumesGrowWhileTheyServe(t *testing.T) {
	p := newPartition(t, "grown")
	l := startLoad(t, p)
	p.awaitInSync(t)
	old := p.podsByName(t)
	at := time.Now()
	p.patch(t, `{"spec":{"storage":{"size":"2Gi"}}}`)
	for name := range old {
		eventually(t, 3*time.Minute, "a larger volume of "+name, func(context.Context) error {
			claim := p.claim(t, name)
			if got := claim.Status.Capacity.Storage(); got.Cmp(quantity("2Gi")) < 0 {
				return fmt.Errorf("it has %s", got)
			}
			return nil
		})
	}
	p.awaitComplete(t)
	for name, pod := range p.podsByName(t) {
		if pod.UID != old[name].UID {
			t.Errorf("pod %s was replaced", name)
		}
	}
	l.await(t, time.Now())
	l.report(t, "spec.storage.size from 1Gi to 2Gi", at)
	l.finish(t)
	if out := output("kubectl", "-n", namespace, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"storage":{"size":"1Gi"}}}`); !containsAll(out, "storage.size must not shrink") {
		t.Errorf("a smaller size was not refused: %s", out)
	}
}

// The object is deleted, its volumes are kept, and a new one of the same name goes on with the log when asked to.
func TestAKeptLogIsAdopted(t *testing.T) {
	p := newPartition(t, "adopted")
	l := startLoad(t, p)
	before := p.awaitInSync(t)
	l.await(t, time.Now().Add(2*time.Second))
	l.finish(t)
	written := l.end
	kubectl(t, "delete", "rp", p.name, "--timeout=90s")
	p.awaitCount(t, &corev1.PodList{}, 0)
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}
	rp.Spec.Storage.Size = quantity("1Gi")
	if err := api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	s := p.awaitReason(t, v1alpha1.ReasonQuarantined)
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); !containsAll(c.Message, v1alpha1.AnnotationAdopt+"="+before.TopicID) {
		t.Errorf("the condition says %q", c.Message)
	}
	p.awaitCount(t, &corev1.PodList{}, 0)
	kubectl(t, "annotate", "rp", p.name, v1alpha1.AnnotationAdopt+"="+before.TopicID)
	after := p.awaitInSync(t)
	if after.LeaderEpoch < before.LeaderEpoch+epoch.RecoveryMargin || after.TopicID != before.TopicID {
		t.Errorf("leader epoch %d after %d, topic id %s after %s", after.LeaderEpoch, before.LeaderEpoch, after.TopicID, before.TopicID)
	}
	l.start(t, "afterwards")
	l.tell(t, fmt.Sprintf("deleted and adopted by a new object, with the %d records of before", written))
	at := time.Now()
	killPod(t, namespace, after.Leader, "replica")
	p.awaitEpochAfter(t, after.LeaderEpoch)
	l.await(t, time.Now())
	l.report(t, "adopted, and its leader killed", at)
	p.awaitInSync(t)
	l.finish(t)
}

// One replica has no budget: its node can be drained, and it comes back elsewhere with its volume.
func TestASingleReplicaDoesNotHoldADrain(t *testing.T) {
	p := newPartition(t, "alone", func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.Replicas = 1
		rp.Spec.MinInSyncReplicas = ptr.To[int32](1)
	})
	l := startLoad(t, p)
	node := "node" + nodeNumber(t, namespace, p.name+"-0")
	t.Cleanup(func() { output("kubectl", "uncordon", node) })
	at := time.Now()
	command(t, "kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s", "--pod-selector="+v1alpha1.LabelPartition+"="+p.name)
	p.await(t, "it to serve elsewhere", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return len(s.Replicas) == 1 && s.Replicas[0].InSync && s.Replicas[0].Node != node
	})
	l.await(t, time.Now())
	l.report(t, "drain of the node of the only replica", at)
	l.finish(t)
}
