package controllers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// says tells what is missing to a condition with that reason whose message has all of words.
func (w *simWorld) says(kind, status, reason string, words ...string) string {
	c := meta.FindStatusCondition(w.partition().Status.Conditions, kind)
	if c == nil {
		return "there is no " + kind
	}
	got := fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
	if string(c.Status) != status || c.Reason != reason {
		return got
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			return fmt.Sprintf("%s; it should say %q", got, word)
		}
	}
	return ""
}

// stuck lets the partition come to a standstill, and checks that it tells so, in a condition
// and one event, that it serves as before, and that standing still costs next to nothing.
func (w *simWorld) stuck(o *operator, reason string, words ...string) {
	w.t.Helper()
	drain(o)
	w.must(w.settle(o, nil, func() string { return w.says(v1alpha1.ConditionProgressing, "False", reason, words...) }))
	if n := strings.Count(drain(o), "Warning "+reason+" "); n != 1 {
		w.t.Errorf("%d events tell of %s, want one", n, reason)
	}
	if got := w.kstatus(); got != status.FailedStatus {
		w.t.Errorf("kstatus calls it %s, want %s", got, status.FailedStatus)
	}
	before, began := o.wire.written(), w.clock.now()
	for w.clock.now().Sub(began) < 10*time.Minute {
		w.step()
		res, err := o.look(w.ctx(), w.request())
		w.must(err)
		w.clock.advance(max(res.RequeueAfter, 10*time.Second))
	}
	// Each look offers again what was refused: three pods and their status at the most.
	if n := o.wire.written() - before; n > 4*20+4 {
		w.t.Errorf("%d writes in ten minutes of standstill", n)
	}
	if n := strings.Count(drain(o), "Warning "+reason+" "); n != 0 {
		w.t.Errorf("%d more events tell of %s", n, reason)
	}
}

// drain empties the recorder.
func drain(o *operator) string {
	var all []string
	for {
		select {
		case e := <-o.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// servesStill checks that what stands still serves as before.
func (w *simWorld) servesStill() {
	w.t.Helper()
	if why := w.says(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing); why != "" {
		w.t.Error(why)
	}
}

// heals lets it go on, now that the surroundings are mended, to the usual end.
func (w *simWorld) heals(o *operator) {
	w.t.Helper()
	w.must(w.settle(o, nil, w.serves))
	if got := w.kstatus(); got != status.CurrentStatus {
		w.t.Errorf("kstatus calls it %s in the end, want %s", got, status.CurrentStatus)
	}
	for _, f := range w.faults {
		w.t.Error(f)
	}
}

// served is a partition at rest in a world of its own.
func served(t *testing.T, change func(*v1alpha1.ReplicatedPartition)) (*simWorld, *operator) {
	t.Helper()
	w := newWorld(t, needsBareCluster(t), &fakeClock{at: time.Now()}, change)
	t.Cleanup(w.forget)
	o := w.newOperator()
	w.must(w.settle(o, nil, w.serves))
	return w, o
}

func TestAQuotaThatIsExceededIsToldAndHealsWhenRaised(t *testing.T) {
	w, o := served(t, replicas(1))
	// As if the quota controller had counted: there is none here.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.rp.Namespace, Name: "small"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	w.must(w.api.Create(t.Context(), quota))
	count := func(limit string) {
		quota.Status = corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(limit)}, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}
		w.must(w.api.Status().Update(t.Context(), quota))
	}
	count("1")
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonQuotaExceeded, "Pod orders-1", "small", "raise the quota")
	w.servesStill()
	count("10")
	w.heals(o)
}

// H53
func TestAnImageThatCannotBePulledLeavesTheOthersAlone(t *testing.T) {
	w, o := served(t, replicas(1))
	o.Defaults.PullSecrets = []string{"registry-key"}
	// The Secret is part of the pod: the one that serves is replaced last, which cannot be yet.
	w.starts = func(pod *corev1.Pod) bool {
		if pod.Name == "orders-0" {
			return true
		}
		waits(pod, "ImagePullBackOff", "Back-off pulling image: 401 Unauthorized")
		return false
	}
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonImagePull, "orders-1", "example.test/tidemark:1", "401 Unauthorized", "registry-key", w.rp.Namespace)
	w.servesStill()
	w.starts = nil
	w.heals(o)
}

func TestAStorageClassThatDoesNotExistIsNamed(t *testing.T) {
	b := needsBareCluster(t)
	w := newWorld(t, b, &fakeClock{at: time.Now()}, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.StorageClassName = ptr.To("fast") })
	defer w.forget()
	o := w.newOperator()
	w.starts = func(pod *corev1.Pod) bool {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulerError",
			Message: `storageclass.storage.k8s.io "fast" not found`}}
		return false
	}
	w.stuck(o, v1alpha1.ReasonVolumePending, "data-orders-0", "storage class fast", "not found")
	w.starts = nil
	w.heals(o)
}

func TestAPodThatFindsNoNodeSaysWhatTheSchedulerSays(t *testing.T) {
	w, o := served(t, replicas(2))
	w.starts = func(pod *corev1.Pod) bool {
		if pod.Spec.NodeName == "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/3 nodes are available: 3 Insufficient memory."}}
			return false
		}
		return true
	}
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonUnschedulable, "orders-2", "Insufficient memory")
	w.servesStill()
	w.starts = nil
	w.heals(o)
}

// waits is what a kubelet says of a container that it cannot start.
func waits(pod *corev1.Pod, reason, message string) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: pod.Spec.Containers[0].Image,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
}

// Whatever the operator may not do is named with verb, resource and namespace, and done once
// it may.
func TestAMissingPermissionIsNamed(t *testing.T) {
	b := needsBareCluster(t)
	for _, tc := range []struct {
		verb, group, resource string
		change                func(*simWorld)
		reading               bool
	}{
		{verb: "create", resource: "pods", change: scaleTo(3)},
		{verb: "patch", resource: "services", change: func(w *simWorld) {
			w.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "orders-replicas"}})
		}},
		{verb: "create", group: rbacv1.GroupName, resource: "rolebindings", change: func(w *simWorld) {
			w.remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "orders-replica"}})
		}},
		{verb: "update", group: "coordination.k8s.io", resource: "leases", change: scaleTo(3)},
		{verb: "get", resource: "services", change: func(*simWorld) {}, reading: true},
	} {
		t.Run(tc.verb+" "+tc.resource, func(t *testing.T) {
			w := newWorld(t, b, &fakeClock{at: time.Now()}, replicas(1))
			defer w.forget()
			as, may := w.limitedUser(tc.group, tc.resource, tc.verb)
			may(true)
			o := w.newOperatorAs(as)
			w.must(w.settle(o, nil, w.serves))
			may(false)
			w.reads.dropAll()
			tc.change(w)
			w.stuck(o, v1alpha1.ReasonPermissionMissing, "cannot "+tc.verb, tc.resource, w.rp.Namespace, "role")
			w.servesStill()
			may(true)
			w.heals(o)
		})
	}
}

// limitedUser may do all in the world's namespace but some things with one resource, and those
// when allowed.
func (w *simWorld) limitedUser(group, resource string, verbs ...string) (*rest.Config, func(bool)) {
	w.t.Helper()
	name := w.rp.Namespace
	user, err := w.b.env.AddUser(envtest.User{Name: name}, &rest.Config{QPS: -1})
	w.must(err)
	role, err := operatorRole()
	w.must(err)
	role.Name = name
	all := role.Rules
	w.must(w.api.Create(w.ctx(), role))
	w.must(w.api.Create(w.ctx(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}))
	probe, _ := w.b.clients(w.t, user.Config(), func(next http.RoundTripper) http.RoundTripper { return next })
	return user.Config(), func(allowed bool) {
		role.Rules = all
		if !allowed {
			role.Rules = without(all, group, resource, verbs)
		}
		w.must(w.api.Update(w.ctx(), role))
		// The authorizer learns of it by a watch.
		await(w.t, "the role to be in force", func() string {
			review := selfReview(w.rp.Namespace, verbs[0], group, resource)
			if err := probe.Create(w.ctx(), review); err != nil {
				return err.Error()
			}
			if review.Status.Allowed != allowed {
				return fmt.Sprintf("allowed: %t", review.Status.Allowed)
			}
			return ""
		})
	}
}

// H62: a class without expansion refuses growth in the API server.
func TestAClassWithoutExpansionIsToldOnce(t *testing.T) {
	w, o := served(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.Replicas = 1
		rp.Spec.Storage.Size = resource.MustParse("1Gi")
	})
	w.provide("1Gi")
	w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.Size = resource.MustParse("2Gi") })
	w.stuck(o, v1alpha1.ReasonStorageResizeRefused, "data-orders-0", "allows expansion", "spec.storage.size")
	w.servesStill()
	w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.Size = resource.MustParse("1Gi") })
	w.heals(o)
}

// H59: a size that the provider refuses can be taken back to what the volume has, and no
// further.
func TestAGrowthThatTheProviderRefusesCanBeTakenBack(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "grows-"}, Provisioner: "example.test/disks", AllowVolumeExpansion: ptr.To(true)}
	if err := needsBareCluster(t).api.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w, o := served(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.Replicas = 1
		rp.Spec.Storage = v1alpha1.StorageSpec{Size: resource.MustParse("1Gi"), StorageClassName: &class.Name}
	})
	size := func(s string) func(*v1alpha1.ReplicatedPartition) {
		return func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Storage.Size = resource.MustParse(s) }
	}
	w.provide("1Gi")
	w.edit(size("4Gi"))
	w.must(w.settle(o, nil, func() string {
		return w.says(v1alpha1.ConditionProgressing, "True", v1alpha1.ReasonResizing, "data-orders-0", "1Gi of 4Gi", "provider")
	}))
	w.provide("1Gi", corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue})
	w.must(w.settle(o, nil, func() string {
		return w.says(v1alpha1.ConditionProgressing, "True", v1alpha1.ReasonResizing, "file system")
	}))
	w.provide("1Gi", corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "4Gi is more than the pool has"})
	w.stuck(o, v1alpha1.ReasonStorageResizeRefused, "data-orders-0", "4Gi is more than the pool has", "1Gi at least")
	w.servesStill()
	rp := w.partition()
	size("512Mi")(rp)
	if err := w.api.Update(t.Context(), rp); err == nil || !strings.Contains(err.Error(), "status.storageCapacity") {
		t.Errorf("a size below the volume's own: got %v, want a refusal that says how far it can be taken back", err)
	}
	w.edit(size("2Gi"))
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.settle(o, nil, func() string {
		w.must(w.api.Get(t.Context(), w.key("data-orders-0"), claim))
		if got := claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "2Gi" {
			return "the claim asks for " + got.String()
		}
		return w.says(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonStorageResizeRefused)
	}))
	w.edit(size("1Gi"))
	w.heals(o)
}

// Of two partitions of one topic the second is not started, and is once the first is gone.
func TestASecondPartitionOfATopicWaitsForTheFirstToGo(t *testing.T) {
	w, o := served(t, nil)
	second := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: w.rp.Namespace, Name: "again"}}
	second.Spec.Topic = "orders"
	w.must(w.api.Create(t.Context(), second))
	other := *w
	other.rp = second
	for range 3 {
		_, err := o.look(t.Context(), other.request())
		w.must(err)
	}
	if why := other.says(v1alpha1.ConditionReady, "False", v1alpha1.ReasonTopicTaken, "topic orders", "ReplicatedPartition orders", w.rp.Namespace); why != "" {
		t.Error(why)
	}
	if _, there := other.record(); there {
		t.Error("the second partition has a record")
	}
	w.must(w.settle(o, nil, w.serves))
	w.remove(w.partition())
	for range 10 {
		w.step()
		_, err := o.look(t.Context(), other.request())
		w.must(err)
	}
	if _, there := other.record(); !there {
		t.Errorf("the second partition is not started: %s", other.progressing())
	}
}

// While one partition stands still another of the same operator is worked on as ever.
func TestAStandstillIsThePartitionsOwn(t *testing.T) {
	w, o := served(t, replicas(1))
	w.starts = func(pod *corev1.Pod) bool {
		waits(pod, "ErrImagePull", "not found")
		return pod.Name == "orders-0"
	}
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonImagePull)
	other := newWorld(t, w.b, w.clock, nil)
	defer other.forget()
	o.Client, o.APIReader, o.Leases = other.api, other.api, other.leases
	other.must(other.settle(o, nil, other.serves))
}

func without(rules []rbacv1.PolicyRule, group, resource string, verbs []string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				one := rbacv1.PolicyRule{APIGroups: []string{g}, Resources: []string{res}}
				for _, v := range r.Verbs {
					if g != group || res != resource || !slices.Contains(verbs, v) {
						one.Verbs = append(one.Verbs, v)
					}
				}
				out = append(out, one)
			}
		}
	}
	return out
}

func selfReview(namespace, verb, group, resource string) *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource}}}
}

// provide says what the provider of the volumes has provided, and conditions of theirs.
func (w *simWorld) provide(capacity string, conditions ...corev1.PersistentVolumeClaimCondition) {
	w.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	w.list(&claims)
	for i := range claims.Items {
		c := &claims.Items[i]
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		c.Status.Conditions = conditions
		w.must(w.api.Status().Update(w.ctx(), c))
	}
}
