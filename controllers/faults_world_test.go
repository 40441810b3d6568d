package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// simWorld is everything around one partition but the operator: kubelets, the volume and
// garbage controllers, and the replicas, which follow the record by the rules that real
// ones go by. It moves only when step is called, and watches that nothing happens that
// must not.
type simWorld struct {
	t     *testing.T
	b     *bareCluster
	clock *fakeClock
	reads *reads
	// api and leases are what kubelets, users and replicas work with.
	api    client.Client
	leases rest.Interface
	rp     *v1alpha1.ReplicatedPartition

	procs map[types.UID]*process // by pod
	// dirs and known are on the volumes, by claim: the directory id, and the newest record
	// that was acted on.
	dirs  map[types.UID]epoch.UUID
	known map[types.UID]epoch.Record
	// claims that were seen, by name, to notice one that goes.
	claims map[string]types.UID
	// nodesLost are nodes without a kubelet.
	nodesLost map[string]bool
	// local gives each volume a node that it cannot leave.
	local bool
	// mayGo names the claims that may be deleted.
	mayGo map[string]bool
	// starts is asked before a container starts; it may say something in the pod's status
	// instead. nil starts all.
	starts func(*corev1.Pod) bool
	// roll allows one pod at a time to be away.
	roll bool

	seen   epoch.Record // the newest record
	faults []string
}

// process is a replica's process in a pod's container.
type process struct {
	id       epoch.ReplicaID
	pod      types.UID
	claim    types.UID
	start    epoch.StartID
	restarts int32
	dead     bool
}

const worldLease = 300 // seconds; nothing in it expires unless a test lets it

func newWorld(t *testing.T, b *bareCluster, clock *fakeClock, change func(*v1alpha1.ReplicatedPartition)) *simWorld {
	t.Helper()
	w := &simWorld{t: t, b: b, clock: clock, procs: map[types.UID]*process{}, dirs: map[types.UID]epoch.UUID{}, known: map[types.UID]epoch.Record{},
		claims: map[string]types.UID{}, nodesLost: map[string]bool{}, mayGo: map[string]bool{}}
	w.reads = newReads()
	w.api, w.leases = b.clients(t, b.config, w.reads.over)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	w.must(w.api.Create(t.Context(), ns))
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = ns.Name, "orders"
	rp.Spec.LeaderElection.LeaseDurationSeconds = worldLease
	if change != nil {
		change(rp)
	}
	w.must(w.api.Create(t.Context(), rp))
	w.rp = rp
	return w
}

func (w *simWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// fault notes what must not have happened.
func (w *simWorld) fault(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(w.faults, s) {
		w.faults = append(w.faults, s)
	}
}

func (w *simWorld) ctx() context.Context { return w.t.Context() }

func (w *simWorld) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.rp.Namespace, Name: name}
}

func (w *simWorld) request() ctrl.Request { return ctrl.Request{NamespacedName: w.key(w.rp.Name)} }

func (w *simWorld) partition() *v1alpha1.ReplicatedPartition {
	w.t.Helper()
	rp := &v1alpha1.ReplicatedPartition{}
	w.must(client.IgnoreNotFound(w.api.Get(w.ctx(), w.key(w.rp.Name), rp)))
	return rp
}

// edit changes the partition as a user does.
func (w *simWorld) edit(change func(*v1alpha1.ReplicatedPartition)) {
	w.t.Helper()
	for {
		rp := w.partition()
		change(rp)
		err := w.api.Update(w.ctx(), rp)
		if !apierrors.IsConflict(err) {
			w.must(err)
			return
		}
	}
}

func (w *simWorld) store() *lease.Store {
	topic, err := topicID(w.rp)
	w.must(err)
	s, err := lease.New(lease.Config{Client: w.leases, Namespace: w.rp.Namespace, Name: w.rp.LeaseName(), TopicID: topic})
	w.must(err)
	return s
}

// record is what the Lease says now, ok if it is there.
func (w *simWorld) record() (s epoch.Snapshot, ok bool) {
	w.t.Helper()
	s, err := w.store().Get(w.ctx())
	if errors.Is(err, epoch.ErrNotFound) {
		return s, false
	}
	w.must(err)
	return s, true
}

// write changes the record as a replica does; it reports whether there was something to
// change and the rules allowed it.
func (w *simWorld) write(change func(epoch.Record) (epoch.Record, error)) bool {
	w.t.Helper()
	for {
		base, ok := w.record()
		if !ok {
			return false
		}
		next, err := change(base.Record)
		if err != nil {
			return false
		}
		_, err = w.store().Update(w.ctx(), base, next)
		if errors.Is(err, epoch.ErrConflict) {
			continue
		}
		w.must(err)
		return true
	}
}

func (w *simWorld) list(list client.ObjectList) {
	w.t.Helper()
	w.must(w.api.List(w.ctx(), list, client.InNamespace(w.rp.Namespace)))
}

// step lets everything but the operator go on by what it sees, and reports whether that
// changed anything. A mere heartbeat is no change.
func (w *simWorld) step() bool {
	w.t.Helper()
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	w.list(&claims)
	w.list(&pods)
	moved := w.collectGarbage(&pods, &claims)
	w.watchClaims(claims.Items)
	w.watchPods(pods.Items)
	for i := range pods.Items {
		if w.kubelet(&pods.Items[i], claims.Items) {
			moved = true
		}
	}
	for i := range claims.Items {
		if w.volumes(&claims.Items[i], pods.Items) {
			moved = true
		}
	}
	for _, p := range w.running() {
		if w.replica(p) {
			moved = true
		}
	}
	w.check()
	return moved
}

// collectGarbage deletes what a deleted partition owned.
func (w *simWorld) collectGarbage(lists ...client.ObjectList) bool {
	if w.partition().UID == w.rp.UID {
		return false
	}
	moved := false
	for _, list := range append(lists, ownedLists()...) {
		w.list(list)
		for _, obj := range objectsOf(list) {
			owned := slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == w.rp.UID })
			if owned && obj.GetDeletionTimestamp() == nil {
				w.must(client.IgnoreNotFound(w.api.Delete(w.ctx(), obj)))
				moved = true
			}
		}
	}
	return moved
}

// watchClaims notices volumes that are being given up.
func (w *simWorld) watchClaims(now []corev1.PersistentVolumeClaim) {
	left := maps.Clone(w.claims)
	for i := range now {
		c := &now[i]
		if c.DeletionTimestamp == nil {
			delete(left, c.Name)
			w.claims[c.Name] = c.UID
		}
	}
	for name := range left {
		if !w.mayGo[name] {
			w.fault("the volume claim %s was deleted", name)
		}
		delete(w.claims, name)
	}
}

// watchPods notices pods that were taken away without the kubelet's having ended them, and
// replicas that are kept from work while another still is.
func (w *simWorld) watchPods(now []corev1.Pod) {
	find := func(p *process) int {
		return slices.IndexFunc(now, func(pod corev1.Pod) bool { return pod.UID == p.pod })
	}
	atWork := 0
	live := w.live(w.seen)
	for _, p := range w.procs {
		switch i := find(p); {
		case i < 0 && !p.dead:
			w.fault("the pod of replica %d is gone from the API while its process runs", p.id)
		case i >= 0 && !p.dead && now[i].DeletionTimestamp == nil && slices.Contains(live, p.id):
			atWork++
		}
	}
	if away := len(w.seen.Replicas) - atWork; w.roll && away > 1 {
		w.fault("%d replicas of %d were away at once", away, len(w.seen.Replicas))
	}
}

// kubelet plays scheduler and kubelet for one pod.
func (w *simWorld) kubelet(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim) bool {
	id, ok := replicaIDOf(pod)
	if !ok || w.nodesLost[pod.Spec.NodeName] {
		return false
	}
	p := w.procs[pod.UID]
	if pod.DeletionTimestamp != nil {
		if p != nil && !p.dead && w.handOver(p) {
			return true
		}
		if p != nil {
			p.dead = true
		}
		w.must(client.IgnoreNotFound(w.api.Delete(w.ctx(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		return true
	}
	claim := claimOf(pod, claims)
	was := pod.DeepCopy()
	switch {
	case podTerminal(pod):
		return false
	case w.starts != nil && (p == nil || p.dead) && !w.starts(pod):
		if equality.Semantic.DeepEqual(was.Status, pod.Status) {
			return false
		}
		w.must(w.api.Status().Update(w.ctx(), pod))
		return true
	case pod.Spec.NodeName == "":
		if claim == nil || claim.DeletionTimestamp != nil {
			return false // the scheduler waits for it
		}
		node := w.node(id)
		if w.nodesLost[node] {
			node += "b"
		}
		w.addNode(node)
		bind := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		w.must(client.IgnoreNotFound(w.api.SubResource("binding").Create(w.ctx(), pod, bind)))
		return true
	case p == nil:
		return w.start(pod, claim, id, 0)
	case p.dead:
		return w.start(pod, claim, id, p.restarts+1)
	}
	return false
}

func claimOf(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	for i := range claims {
		if claims[i].Name == pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName {
			return &claims[i]
		}
	}
	return nil
}

// node is the name of a replica's node.
func (w *simWorld) node(id epoch.ReplicaID) string {
	return fmt.Sprintf("%s-node-%d", w.rp.Namespace, id)
}

// addNode makes the node object, which only local volumes ask for.
func (w *simWorld) addNode(name string) {
	if w.local {
		w.must(client.IgnoreAlreadyExists(w.api.Create(w.ctx(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
}

// start starts a pod's container, and tells so.
func (w *simWorld) start(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, id epoch.ReplicaID, restarts int32) bool {
	if claim == nil {
		return false
	}
	if w.local && claim.Spec.VolumeName == "" {
		return false // it is bound first
	}
	for _, q := range w.procs {
		if !q.dead && q.pod != pod.UID && (q.claim == claim.UID || q.id == id && !w.nodesLost[w.node(id)]) {
			w.fault("two processes at once for replica %d", id)
		}
	}
	runPod(restarts)(pod)
	err := w.api.Status().Update(w.ctx(), pod)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true
	}
	w.must(err)
	w.procs[pod.UID] = &process{id: id, pod: pod.UID, claim: claim.UID, start: epoch.StartID(newID(w.t)), restarts: restarts}
	return true
}

// volumes binds local volumes and lets go of deleted claims that nobody uses, as the
// controllers of Kubernetes do.
func (w *simWorld) volumes(claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) bool {
	used := slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == claim.Name && !podTerminal(&p)
	})
	switch {
	case claim.DeletionTimestamp != nil && !used && len(claim.Finalizers) > 0:
		claim.Finalizers = nil
		w.must(client.IgnoreNotFound(w.api.Update(w.ctx(), claim)))
		return true
	case w.local && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "":
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.NodeName != "" && p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == claim.Name
		})
		if i < 0 {
			return false
		}
		pv := localVolume(string(claim.UID), pods[i].Spec.NodeName)
		w.must(client.IgnoreAlreadyExists(w.api.Create(w.ctx(), pv)))
		claim.Spec.VolumeName = pv.Name
		w.must(w.api.Update(w.ctx(), claim))
		return true
	}
	return false
}

// kill ends a replica's process; the kubelet tells, and starts it again.
func (w *simWorld) kill(id epoch.ReplicaID) {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.must(w.api.Get(w.ctx(), w.key(w.rp.ReplicaName(int32(id))), pod))
	w.procs[pod.UID].dead = true
	killContainer(pod)
	w.must(w.api.Status().Update(w.ctx(), pod))
}

// running holds the processes at work, in order of replica id.
func (w *simWorld) running() []*process {
	var out []*process
	for _, p := range w.procs {
		if !p.dead {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(p, q *process) int { return int(p.id) - int(q.id) })
	return out
}

// check compares the record with what was seen before.
func (w *simWorld) check() {
	s, ok := w.record()
	if !ok {
		return
	}
	r := s.Record
	if r.PartitionEpoch < w.seen.PartitionEpoch || r.LeaderEpoch < w.seen.LeaderEpoch {
		w.fault("epochs went back from %d and %d to %d and %d", w.seen.PartitionEpoch, w.seen.LeaderEpoch, r.PartitionEpoch, r.LeaderEpoch)
	}
	if w.seen.MinISR > 0 && len(w.seen.ISR) >= w.seen.MinISR && len(r.ISR) < r.MinISR && !w.struck(r) {
		w.fault("the ISR went from %v to %v, below the minimum of %d", w.seen.ISR, r.ISR, r.MinISR)
	}
	w.seen = r
}

// struck tells whether a replica came back on another volume, which takes it out whatever
// the minimum.
func (w *simWorld) struck(r epoch.Record) bool {
	for _, q := range r.Replicas {
		if p, ok := w.seen.Replica(q.ID); ok && !p.DirectoryID.IsZero() && p.DirectoryID != q.DirectoryID {
			return true
		}
	}
	return false
}

// heartbeatEvery is a third of the lease.
const heartbeatEvery = worldLease * time.Second / 3
