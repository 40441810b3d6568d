package controllers

import (
	"strings"
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
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestNewPartitionGetsItsChildren(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	for name, obj := range map[string]client.Object{
		"orders-replica": &corev1.ServiceAccount{}, "orders-replicas": &corev1.Service{},
	} {
		p.exists(name, obj)
		if !metav1.IsControlledBy(obj, p.rp) {
			t.Errorf("%s is not owned by the partition", name)
		}
	}
	p.exists("orders-replica", &rbacv1.Role{})
	p.exists("orders-replica", &rbacv1.RoleBinding{})
	p.exists("orders", &corev1.Service{})
	p.exists("orders", &policyv1.PodDisruptionBudget{})
	for id := range 3 {
		var pod corev1.Pod
		p.exists(p.name(id), &pod)
		if !metav1.IsControlledBy(&pod, p.rp) {
			t.Errorf("pod %s is not owned by the partition", pod.Name)
		}
		if len(pod.Finalizers) > 0 {
			t.Errorf("pod %s has finalizers %v: a namespace could not be deleted without the operator", pod.Name, pod.Finalizers)
		}
		var claim corev1.PersistentVolumeClaim
		p.exists(p.rp.VolumeClaimName(int32(id)), &claim)
		if len(claim.OwnerReferences) > 0 {
			t.Errorf("claim %s has owners %v: volumes are retained by default", claim.Name, claim.OwnerReferences)
		}
	}
	var l coordinationv1.Lease
	p.exists("orders", &l)
	if !metav1.IsControlledBy(&l, p.rp) || len(l.Finalizers) > 0 {
		t.Errorf("the Lease has owners %v and finalizers %v, want the partition and none", l.OwnerReferences, l.Finalizers)
	}
	p.condition(v1alpha1.ConditionReady, "Unknown", v1alpha1.ReasonStarting)
	if s := p.status(); s.TopicID == "" || s.PartitionEpoch != 1 || s.CurrentReplicas != 3 || s.MinInSyncReplicas != 2 || s.Flush != v1alpha1.FlushNever {
		t.Errorf("unexpected status %+v", s)
	}
}

func TestWhenDeletedDeleteGivesVolumesAnOwner(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.Replicas = 1
		rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteVolume
	})
	var claim corev1.PersistentVolumeClaim
	p.exists("data-orders-0", &claim)
	if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != p.rp.UID {
		t.Fatalf("got owners %v, want the partition", claim.OwnerReferences)
	}
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) {
		s.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.RetainVolume
	})
	await(t, "the owner to be taken back", func() string {
		p.exists("data-orders-0", &claim)
		if len(claim.OwnerReferences) > 0 {
			return "the claim still has an owner"
		}
		return ""
	})
}

func TestServingPartitionTellsTheWholeStory(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.serve(3)
	p.condition(v1alpha1.ConditionInSync, "True", v1alpha1.ReasonAllInSync)
	s := p.status()
	if s.Leader != "orders-0" || s.LeaderEpoch != 1 || len(s.ISR) != 3 || s.HighWatermark == nil || *s.HighWatermark != 10 || *s.LogEndOffset != 10 {
		t.Errorf("unexpected status %+v", s)
	}
	msg := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionInSync).Message
	for _, want := range []string{"orders-0 leader epoch 1 HW 10 LEO 10", "orders-2 follower epoch 1 HW 10 LEO 10"} {
		if !strings.Contains(msg, want) {
			t.Errorf("InSync says %q, want it to contain %q", msg, want)
		}
	}
}

func TestLeaderProcessDeathIsNotWaitedFor(t *testing.T) {
	needsCluster(t)
	// The lease is far longer than the test waits for anything.
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	killed := time.Now()
	p.setPod(0, killContainer)
	p.leads(1, 2, epoch.ReasonProcessDied)
	t.Logf("elected %s after the kubelet's word", time.Since(killed).Round(time.Millisecond))
	if q, _ := p.record().Replica(0); !q.Gone {
		t.Error("the dead session is not marked as gone")
	}
	p.renew(11, 0, 1, 2)
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.condition(v1alpha1.ConditionInSync, "False", v1alpha1.ReasonOutOfSync)
}

func TestLeaderRestartSeenOnlyAsACountIsNoticed(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	p.setPod(0, restartContainer)
	p.leads(1, 2, epoch.ReasonProcessDied)
}

func TestLeaderPodGoneIsNoticed(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	pod := &corev1.Pod{}
	p.exists("orders-0", pod)
	uid := pod.UID
	if err := cluster.api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.leads(1, 2, epoch.ReasonProcessDied)
	await(t, "the pod to be made anew", func() string {
		p.exists("orders-0", pod)
		if pod.UID == uid {
			return "it is the old one"
		}
		return ""
	})
}

func TestLeaderOnItsWayOutThatDoesNotHandOverIsReplaced(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	holdDeletion(p, "orders-0")
	p.leads(1, 2, epoch.ReasonPodTerminating)
}

// holdDeletion begins a deletion that does not end, as with a kubelet that is away.
func holdDeletion(p *partition, name string) {
	p.t.Helper()
	pod := &corev1.Pod{}
	p.exists(name, pod)
	pod.Finalizers = []string{"tidemark.test/hold"}
	if err := cluster.api.Update(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
	if err := cluster.api.Delete(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
}

func TestSilentLeaderIsReplacedWhenItsLeaseExpires(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 3 })
	p.serve(3)
	p.leads(1, 2, epoch.ReasonLeaseExpired)
}

func TestLeaderThatRenewsIsLeftAlone(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 6 })
	p.serve(3)
	renewals := 0
	await(t, "eight renewals, a second apart, which is longer than the lease", func() string {
		if r := p.record(); r.LeaderEpoch != 1 {
			t.Fatalf("an election was held under a leader that renews: %d leads in epoch %d (%s)", r.Leader, r.LeaderEpoch, r.ElectionReason)
		}
		if h := p.record().Heartbeat; h.Renewed.Unix() < metav1.Now().Unix() {
			p.renew(10, 0, 1, 2)
			renewals++
		}
		if renewals < 8 {
			return "not enough renewals"
		}
		return ""
	})
}

func TestMissingRecordIsNotMadeAnew(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.serve(3)
	l := &coordinationv1.Lease{}
	p.exists("orders", l)
	if err := cluster.api.Delete(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecordMissing)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Replicas = 2 })
	await(t, "the operator to see the new spec", func() string {
		if c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionReady); c.ObservedGeneration < 2 {
			return "not seen"
		}
		return ""
	})
	p.gone("orders", &coordinationv1.Lease{})
	for id := range 3 {
		pod := &corev1.Pod{}
		p.exists(p.name(id), pod)
		if pod.DeletionTimestamp != nil {
			t.Errorf("pod %s is being deleted", pod.Name)
		}
	}
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	needsCluster(t)
	ns := newNamespace(t)
	foreign := []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "payments"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "stock-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data-bills-0"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageRequest("1Gi")}},
	}
	before := map[string]string{}
	for _, obj := range foreign {
		if err := cluster.api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		before[obj.GetName()] = obj.GetResourceVersion()
	}
	for name, want := range map[string]struct{ condition, status, reason string }{
		"orders":   {v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonNameConflict},
		"payments": {v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecordForeign},
		"stock":    {v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonNameConflict},
		"bills":    {v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonNameConflict},
	} {
		rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if err := cluster.api.Create(t.Context(), rp); err != nil {
			t.Fatal(err)
		}
		p := &partition{t: t, rp: rp}
		p.condition(want.condition, want.status, want.reason)
	}
	for _, obj := range foreign {
		if err := cluster.api.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		if obj.GetResourceVersion() != before[obj.GetName()] || len(obj.GetOwnerReferences()) > 0 {
			t.Errorf("%T %s was touched", obj, obj.GetName())
		}
	}
}

// The garbage collector removes what a deleted partition owned, with or without the
// operator (there is none here, so that what the operator does shows).
func TestDeletedPartitionIsNotRebuilt(t *testing.T) {
	needsCluster(t)
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(propagation), func(t *testing.T) {
			needsCluster(t)
			p := newPartition(t, nil)
			p.serve(3)
			now := &v1alpha1.ReplicatedPartition{}
			p.exists("orders", now)
			if len(now.Finalizers) > 0 {
				t.Errorf("finalizers %v: a namespace could not be deleted without the operator", now.Finalizers)
			}
			if err := cluster.api.Delete(t.Context(), p.rp, client.PropagationPolicy(propagation)); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			p.exists("orders-2", pod)
			if err := cluster.api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			// Another partition that is made and served after it shows that the operator
			// had the time to do something.
			newPartition(t, nil).serve(3)
			p.gone("orders-2", &corev1.Pod{})
			claim := &corev1.PersistentVolumeClaim{}
			p.exists("data-orders-2", claim)
			if claim.DeletionTimestamp != nil {
				t.Error("the volume is being deleted, though volumes are retained by default")
			}
		})
	}
}
