package controllers

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func storageRequest(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

// versions reads the resourceVersion of everything in the partition's namespace
// that the operator could write.
func (p *partition) versions() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.ReplicatedPartitionList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{}, &coordinationv1.LeaseList{},
	} {
		if err := cluster.api.List(p.t.Context(), list, client.InNamespace(p.rp.Namespace)); err != nil {
			p.t.Fatal(err)
		}
		for _, obj := range objectsOf(list) {
			out[fmt.Sprintf("%T %s", obj, obj.GetName())] = obj.GetResourceVersion()
		}
	}
	return out
}

// H65: a converged partition, looked at fifty times, is not written once.
func TestConvergedPartitionCausesNoWrites(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.LeaderElection.LeaseDurationSeconds = 300
		rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteVolume
	})
	p.serve(3)
	p.condition(v1alpha1.ConditionInSync, "True", v1alpha1.ReasonAllInSync)
	r := newTestReconciler(t)
	before := p.versions()
	for i := range 50 {
		o := r.mustObserve(t, p)
		if plan := MakePlan(o); len(plan.Actions) > 0 {
			t.Fatalf("look %d plans %+v", i, plan.Actions)
		}
		if _, err := r.Reconcile(t.Context(), p.request()); err != nil {
			t.Fatal(err)
		}
	}
	after := p.versions()
	for what, version := range before {
		if after[what] != version {
			t.Errorf("%s was written: resourceVersion %s became %s", what, version, after[what])
		}
	}
	if len(after) != len(before) {
		t.Errorf("got %d objects, want %d as before", len(after), len(before))
	}
}

func TestDriftIsRepaired(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	svc := &corev1.Service{}
	p.exists("orders-replicas", svc)
	svc.Spec.PublishNotReadyAddresses = false
	if err := cluster.api.Update(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	await(t, "the Service to be repaired", func() string {
		p.exists("orders-replicas", svc)
		if !svc.Spec.PublishNotReadyAddresses {
			return "publishNotReadyAddresses is false"
		}
		return ""
	})
	claim := &corev1.PersistentVolumeClaim{}
	p.exists("data-orders-1", claim)
	claim.Finalizers = nil
	if err := cluster.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := cluster.api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	await(t, "the claim to be made anew", func() string {
		again := &corev1.PersistentVolumeClaim{}
		p.exists("data-orders-1", again)
		if again.UID == claim.UID {
			return "it is the old one"
		}
		return ""
	})
}

func TestScaleUpAddsAReplicaThatJoins(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Replicas = 2 })
	p.serve(2)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Replicas = 3 })
	p.setPod(2, runPod(0))
	if q, ok := p.record().Replica(2); !ok || !q.Adding {
		t.Errorf("replica 2 is %+v in the record, want it to be there as adding", q)
	}
	p.condition(v1alpha1.ConditionProgressing, "True", v1alpha1.ReasonReassigning)
	p.register(2)
	p.join(0, 1, 2)
	p.renew(10, 0, 1, 2)
	p.condition(v1alpha1.ConditionInSync, "True", v1alpha1.ReasonAllInSync)
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
}

func TestScaleDownKeepsVolumesUnlessAskedToDelete(t *testing.T) {
	needsCluster(t)
	for _, policy := range []v1alpha1.RetentionPolicyType{v1alpha1.RetainVolume, v1alpha1.DeleteVolume} {
		t.Run(string(policy), func(t *testing.T) {
			needsCluster(t)
			p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
				rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = policy
			})
			p.serve(3)
			p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Replicas = 2 })
			await(t, "replica 2 to leave the record", func() string {
				r := p.record()
				if len(r.Replicas) != 2 || len(r.ISR) != 2 {
					return fmt.Sprintf("replicas %v, ISR %v", assigned(r), r.ISR)
				}
				return ""
			})
			if r := p.record(); r.Leader != 0 || r.LeaderEpoch != 2 {
				t.Errorf("replica %d leads in epoch %d, want 0 in epoch 2: fetches of the dropped replica must not count", r.Leader, r.LeaderEpoch)
			}
			p.finishDeletion("orders-2")
			claim := &corev1.PersistentVolumeClaim{}
			if policy == v1alpha1.DeleteVolume {
				await(t, "the claim to be deleted", func() string {
					if err := cluster.api.Get(t.Context(), p.key("data-orders-2"), claim); err != nil || claim.DeletionTimestamp != nil {
						return ""
					}
					return "it is still wanted"
				})
			} else {
				p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
				p.exists("data-orders-2", claim)
				if claim.DeletionTimestamp != nil {
					t.Error("the claim is being deleted")
				}
			}
			p.exists("data-orders-1", claim)
		})
	}
}

// finishDeletion plays the kubelet's part in the deletion of a pod.
func (p *partition) finishDeletion(name string) {
	p.t.Helper()
	pod := &corev1.Pod{}
	await(p.t, "the deletion of pod "+name, func() string {
		if err := cluster.api.Get(p.t.Context(), p.key(name), pod); err != nil {
			return ""
		}
		if pod.DeletionTimestamp == nil {
			c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionProgressing)
			return fmt.Sprintf("it has not begun; %s/%s progresses: %+v", p.rp.Namespace, p.rp.Name, c)
		}
		if err := cluster.api.Delete(p.t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		return ""
	})
}

func TestScaleToOneAndBackLeavesNoBudgetBehind(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Replicas = 2 })
	p.serve(2)
	p.exists("orders", &policyv1.PodDisruptionBudget{})
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Replicas = 1 })
	p.gone("orders", &policyv1.PodDisruptionBudget{})
	await(t, "min ISR to be 1", func() string {
		if r := p.record(); r.MinISR != 1 || len(r.Replicas) != 1 {
			return fmt.Sprintf("min ISR %d, replicas %v", r.MinISR, assigned(r))
		}
		return ""
	})
}

func TestMinISRReachesTheRecord(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.serve(3)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.MinInSyncReplicas = ptr.To[int32](3) })
	await(t, "min ISR to be 3", func() string { return differs(p.record().MinISR, 3) })
	await(t, "the status to show it", func() string { return differs(int(p.status().MinInSyncReplicas), 3) })
}

func differs(got, want int) string {
	if got != want {
		return fmt.Sprintf("got %d, want %d", got, want)
	}
	return ""
}

// H39 and H40: a bad image stops the roll at its first pod, and going back heals.
func TestRollStopsAtABadImageAndHealsWhenTakenBack(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	uids := p.podUIDs()
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Image = "example.test/tidemark:bad" })
	p.finishDeletion("orders-1") // The first that does not lead.
	p.setPod(1, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	})
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonImagePull)
	now := p.podUIDs()
	if now[0] != uids[0] || now[2] != uids[2] {
		t.Error("more than one pod was replaced for an image that does not work")
	}
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Image = "" })
	p.finishDeletion("orders-1")
	p.setPod(1, runPod(0))
	p.register(1)
	p.renew(10, 0, 1, 2)
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
	if now := p.podUIDs(); now[0] != uids[0] || now[2] != uids[2] {
		t.Error("pods of the good image were replaced")
	}
}

func (p *partition) podUIDs() [3]string {
	p.t.Helper()
	var out [3]string
	for id := range out {
		pod := &corev1.Pod{}
		if err := cluster.api.Get(p.t.Context(), p.key(p.name(id)), pod); err == nil {
			out[id] = string(pod.UID)
		}
	}
	return out
}

func TestRollReplacesTheLeaderLastAndWaitsForTheISR(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Image = "example.test/tidemark:2" })
	for _, id := range []int{1, 2} {
		p.finishDeletion(p.name(id))
		p.setPod(id, runPod(0))
		// It runs, and has not registered: the next one has to wait.
		p.condition(v1alpha1.ConditionProgressing, "True", v1alpha1.ReasonWaitingForReplicas)
		p.register(id)
		p.renew(10, 0, 1, 2)
	}
	p.finishDeletion("orders-0")
	p.leads(1, 2, epoch.ReasonProcessDied)
}

func TestEndedPodIsMadeAnew(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.serve(3)
	before := p.podUIDs()
	p.setPod(2, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	await(t, "a new pod", func() string {
		if now := p.podUIDs(); now[2] == before[2] || now[2] == "" {
			return "it is the old one"
		}
		return ""
	})
}

func TestFirstLeaderIsFoundAmongThoseThatRegistered(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, nil)
	p.setPod(2, runPod(0))
	p.register(2)
	p.leads(2, 1, epoch.ReasonFirstLeader)
}

func TestVacancyIsFilled(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.LeaderElection.LeaseDurationSeconds = 300 })
	p.serve(3)
	var pod corev1.Pod
	p.exists("orders-0", &pod)
	// The leader comes back on another volume: it is struck from ISR and leadership.
	p.write(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Register(r, epoch.Registration{ID: 0, DirectoryID: epoch.UUID{9}, VolumeID: epoch.UUID{9}, StartID: epoch.StartID(newID(t)),
			PodUID: string(pod.UID), LastEpoch: epoch.NoEpoch, Change: newID(t), Now: time.Now()})
	})
	p.leads(1, 2, epoch.ReasonProcessDied)
	if r := p.record(); r.InSync(0) {
		t.Errorf("replica 0 is in the ISR %v on an empty volume", r.ISR)
	}
}

func TestVolumeGrowsWithTheSpec(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.Size = resource.MustParse("1Gi") })
	claim := &corev1.PersistentVolumeClaim{}
	p.exists("data-orders-0", claim)
	// There is no storage class here, so that the API server refuses to grow a claim.
	p.update(func(s *v1alpha1.ReplicatedPartitionSpec) { s.Storage.Size = resource.MustParse("2Gi") })
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonStorageResizeRefused)
}
