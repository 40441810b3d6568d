package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// settle lets the world and an operator take turns until nothing moves any more and done
// has nothing to say against it, or the operator is dead. Time passes only when nothing
// else is to be done.
func (w *simWorld) settle(o *operator, c *crashed, done func() string) error {
	w.t.Helper()
	var why, last string
	quiet := 0
	for range 400 {
		moved := w.step()
		before := o.wire.taken()
		res, err := o.look(w.ctx(), w.request())
		if c != nil && c.dead() {
			return nil
		}
		w.check()
		if err != nil {
			last = err.Error()
		}
		switch wrote := o.wire.taken() != before; {
		case moved || wrote || err != nil:
			quiet = 0
			continue
		case quiet > 0: // a second look, after time has passed, had nothing to do either
			if why = done(); why == "" {
				return nil
			}
		}
		quiet++
		w.clock.advance(min(max(res.RequeueAfter, time.Second), heartbeatEvery))
	}
	return fmt.Errorf("it does not come to rest: %s; last error %q; Progressing says %q", why, last, w.progressing())
}

func (w *simWorld) progressing() string {
	for _, c := range w.partition().Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing {
			return fmt.Sprintf("%s (%s): %s", c.Status, c.Reason, c.Message)
		}
	}
	return "nothing"
}

// serves is the end of most scenarios: everything is as the spec says.
func (w *simWorld) serves() string {
	rp := w.partition()
	want := map[string]string{v1alpha1.ConditionReady: v1alpha1.ReasonServing, v1alpha1.ConditionInSync: v1alpha1.ReasonAllInSync,
		v1alpha1.ConditionProgressing: v1alpha1.ReasonComplete}
	return differsFrom(rp, want)
}

func differsFrom(rp *v1alpha1.ReplicatedPartition, want map[string]string) string {
	if rp.Status.ObservedGeneration != rp.Generation {
		return fmt.Sprintf("generation %d is observed, and %d is there", rp.Status.ObservedGeneration, rp.Generation)
	}
	for _, c := range rp.Status.Conditions {
		if reason, ok := want[c.Type]; ok && (c.Reason != reason || c.ObservedGeneration != rp.Generation) {
			return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if len(rp.Status.Conditions) == 0 {
		return "no conditions"
	}
	return ""
}

// kstatus is what tools that wait for any kind of object make of this one.
func (w *simWorld) kstatus() status.Status {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedPartition"))
	w.must(w.api.Get(w.ctx(), w.key(w.rp.Name), u))
	r, err := status.Compute(u)
	w.must(err)
	return r.Status
}

// picture is all that is there, without what differs from run to run.
func (s scenario) picture(w *simWorld) string {
	var lines []string
	rp := w.partition()
	for _, c := range rp.Status.Conditions {
		lines = append(lines, fmt.Sprintf("condition %s %s %s", c.Type, c.Status, c.Reason))
	}
	if s.anyISR {
		rp.Status.ISR = nil
	}
	lines = append(lines, fmt.Sprintf("status isr %v replicas %d min %d", rp.Status.ISR, rp.Status.CurrentReplicas, rp.Status.MinInSyncReplicas))
	if snap, ok := w.record(); ok {
		r := snap.Record
		if s.anyISR {
			r.ISR = nil
		}
		lines = append(lines, fmt.Sprintf("record isr %v min %d led %t recovery %t switchover %t", r.ISR, r.MinISR, r.Leader != epoch.NoReplica, r.Recovery != nil, r.Switchover != nil))
		for _, q := range r.Replicas {
			lines = append(lines, fmt.Sprintf("record replica %d adding %t removing %t registered %t", q.ID, q.Adding, q.Removing, q.Session != epoch.NoSession))
		}
	}
	for _, list := range append(ownedLists(), &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}) {
		w.list(list)
		for _, obj := range objectsOf(list) {
			a := obj.GetAnnotations()
			if len(obj.GetOwnerReferences()) == 0 && (obj.GetName() == "default" || strings.HasPrefix(obj.GetName(), "kube-")) {
				continue
			}
			lines = append(lines, fmt.Sprintf("%T %s owners %d leaving %t released %t", obj, obj.GetName(), len(obj.GetOwnerReferences()),
				obj.GetDeletionTimestamp() != nil, a[v1alpha1.AnnotationReleased] != ""))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// scenario is something that an operator brings about in several writes.
type scenario struct {
	name string
	spec func(*v1alpha1.ReplicatedPartition)
	// world prepares the surroundings; nil for plain ones.
	world func(*simWorld)
	// begin is what a user, or fate, does to a partition that serves; nil to make one.
	begin func(*simWorld)
	// done says what is still missing; nil for the usual: it serves, and all is as the
	// spec says.
	done func(*simWorld) string
	// anyISR says that who is in the ISR at the end is a matter of time.
	anyISR bool
}

func replicas(n int32) func(*v1alpha1.ReplicatedPartition) {
	return func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Replicas = n }
}

func scaleTo(n int32) func(*simWorld) {
	return func(w *simWorld) { w.edit(replicas(n)) }
}

func retain(policy v1alpha1.RetentionPolicyType) func(*v1alpha1.ReplicatedPartition) {
	return func(rp *v1alpha1.ReplicatedPartition) {
		rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = policy
	}
}

// scenarios is every action that takes the operator more than a look.
var scenarios = []scenario{
	{name: "create"},
	{name: "scale-up", spec: replicas(1), begin: scaleTo(3)},
	{name: "scale-down-delete", spec: retain(v1alpha1.DeleteVolume), begin: func(w *simWorld) {
		w.mayGo["data-orders-2"] = true
		scaleTo(2)(w)
	}, done: func(w *simWorld) string {
		if _, there := w.claims["data-orders-2"]; there {
			return "the volume of the removed replica is still there"
		}
		return w.serves()
	}},
	{name: "scale-down-retain", begin: scaleTo(2)},
	{name: "roll", begin: func(w *simWorld) {
		w.roll = true
		w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Image = "example.test/tidemark:2" })
	}},
	{name: "leader-death", begin: func(w *simWorld) { w.kill(w.seen.Leader) }},
	{name: "switchover", begin: func(w *simWorld) {
		to := (w.seen.Leader + 1) % 3
		w.edit(func(rp *v1alpha1.ReplicatedPartition) {
			rp.Annotations = map[string]string{v1alpha1.AnnotationPromote: fmt.Sprintf("%d/%d", w.seen.LeaderEpoch, to)}
		})
	}, done: func(w *simWorld) string {
		if w.seen.LeaderEpoch != 2 || w.seen.ElectionReason != epoch.ReasonSwitchover {
			return fmt.Sprintf("replica %d leads in epoch %d (%s)", w.seen.Leader, w.seen.LeaderEpoch, w.seen.ElectionReason)
		}
		return w.serves()
	}},
	// How far the leader takes out the others before it goes itself is a matter of time.
	{name: "suspend", anyISR: true, begin: suspend(true), done: func(w *simWorld) string {
		return differsFrom(w.partition(), map[string]string{v1alpha1.ConditionReady: v1alpha1.ReasonSuspended, v1alpha1.ConditionProgressing: v1alpha1.ReasonSuspended})
	}},
	{name: "resume", spec: func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Suspend = true }, begin: suspend(false)},
	{name: "lost-volume", begin: func(w *simWorld) {
		w.mayGo["data-orders-1"] = true
		w.remove(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-1"}})
		w.evict("orders-1")
	}},
	{name: "lost-node", world: func(w *simWorld) { w.local = true }, begin: func(w *simWorld) { w.loseNode(2) }},
	{name: "recovery", begin: func(w *simWorld) {
		at := w.partition().Status.PartitionEpoch
		w.remove(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: w.rp.LeaseName()}})
		w.edit(func(rp *v1alpha1.ReplicatedPartition) {
			rp.Annotations = map[string]string{v1alpha1.AnnotationRecover: fmt.Sprint(at)}
		})
	}},
	{name: "delete", begin: func(w *simWorld) {
		w.remove(&v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Name: w.rp.Name}})
	},
		done: func(*simWorld) string { return "" }},
}

func suspend(on bool) func(*simWorld) {
	return func(w *simWorld) { w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Suspend = on }) }
}

// remove deletes an object as a user does.
func (w *simWorld) remove(obj client.Object) {
	w.t.Helper()
	obj.SetNamespace(w.rp.Namespace)
	w.must(w.api.Delete(w.ctx(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// evict asks for the end of a pod, as a drain does.
func (w *simWorld) evict(name string) {
	w.t.Helper()
	w.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// loseNode takes a node away with what was on it, which the control plane notices: the
// pod is no longer ready, and nothing there will ever end it.
func (w *simWorld) loseNode(id epoch.ReplicaID) {
	w.t.Helper()
	w.mayGo[w.rp.VolumeClaimName(int32(id))] = true
	pod := &corev1.Pod{}
	w.must(w.api.Get(w.ctx(), w.key(w.rp.ReplicaName(int32(id))), pod))
	w.nodesLost[pod.Spec.NodeName] = true
	w.procs[pod.UID].dead = true
	w.must(w.api.Delete(w.ctx(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.must(w.api.Status().Update(w.ctx(), pod))
}

// ready makes a partition and lets it come to rest.
func (s scenario) ready(t *testing.T, b *bareCluster) (*simWorld, *operator) {
	t.Helper()
	clock := &fakeClock{at: time.Now()}
	w := newWorld(t, b, clock, s.spec)
	if s.world != nil {
		s.world(w)
	}
	if s.begin == nil {
		return w, nil
	}
	o := w.newOperator()
	rest := w.serves
	if w.rp.Spec.Suspend {
		w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Suspend = false })
		w.must(w.settle(o, nil, rest))
		w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Suspend = true })
		rest = func() string {
			return differsFrom(w.partition(), map[string]string{v1alpha1.ConditionReady: v1alpha1.ReasonSuspended})
		}
	}
	w.must(w.settle(o, nil, rest))
	s.begin(w)
	return w, o
}

func (s scenario) finished(w *simWorld) func() string {
	return func() string {
		if s.done != nil {
			return s.done(w)
		}
		return w.serves()
	}
}

// run runs a scenario without a fault: how many writes it takes, and how it ends.
func (s scenario) run(t *testing.T, b *bareCluster) (writes int, end string) {
	t.Helper()
	w, _ := s.ready(t, b)
	o := w.newOperator()
	w.must(w.settle(o, nil, s.finished(w)))
	if len(w.faults) > 0 {
		t.Fatalf("without any fault: %v", w.faults)
	}
	defer w.forget()
	return o.wire.written(), s.picture(w)
}

// trial runs a scenario in which the n-th write goes wrong, and compares the end with that
// of a run without a fault.
func (s scenario) trial(t *testing.T, b *bareCluster, n int, v variant, end string) {
	t.Helper()
	w, _ := s.ready(t, b)
	defer w.forget()
	o := w.newOperator()
	meddle, c := v.meddle(n)
	o.wire.meddle = meddle
	say := func(what any) { t.Errorf("%s: write %d, %s, %s: %v", s.name, n, c.at(), v.name, what) }
	if err := w.settle(o, c, s.finished(w)); err != nil {
		say(err)
	}
	if c.at() == "" {
		t.Errorf("%s: there was no write %d", s.name, n)
	}
	if c.dead() {
		o = w.newOperator()
		if err := w.settle(o, nil, s.finished(w)); err != nil {
			say(err)
		}
	}
	for _, f := range w.faults {
		say(f)
	}
	if got := s.picture(w); got != end {
		say("it ends as\n" + difference(end, got))
	}
}

// difference shows the lines that are in one picture only.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

// forget deletes what a run leaves, so that a hundred runs do not fill the API server.
func (w *simWorld) forget() {
	for _, obj := range []client.Object{&v1alpha1.ReplicatedPartition{}, &corev1.Pod{}} {
		_ = w.api.DeleteAllOf(context.Background(), obj, client.InNamespace(w.rp.Namespace), client.GracePeriodSeconds(0))
	}
}

// variant is a way in which a write goes wrong.
type variant struct {
	name   string
	meddle func(n int) (meddling, *crashed)
}

var crashes = []variant{
	{"killed before", func(n int) (meddling, *crashed) { return crash(n, false) }},
	{"killed after", func(n int) (meddling, *crashed) { return crash(n, true) }},
}

// The operator is killed at every write of every scenario. The next one, which knows
// nothing but what it finds, brings all to the same end, and nothing happens on the way that
// must not.
func TestAnOperatorKilledAtAnyStepIsTakenOverFrom(t *testing.T) {
	enumerate(t, needsBareCluster(t), crashes)
}

// trialsAtOnce is how many runs share the API server: most of their time is waiting for it.
const trialsAtOnce = 8

// enumerate tries every variant at every write of every scenario.
func enumerate(t *testing.T, b *bareCluster, variants []variant) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(trialsAtOnce)
	var trials atomic.Int64
	for _, s := range scenarios {
		var writes int
		var end string
		if !t.Run(s.name, func(t *testing.T) { writes, end = s.run(t, b) }) {
			continue
		}
		for _, v := range variants {
			for n := 1; n <= writes; n++ {
				g.Go(func() error {
					trials.Add(1)
					t.Run(fmt.Sprintf("%s/%s/%d", s.name, v.name, n), func(t *testing.T) { s.trial(t, b, n, v, end) })
					return nil
				})
			}
		}
	}
	_ = g.Wait()
	t.Logf("%d runs", trials.Load())
}
