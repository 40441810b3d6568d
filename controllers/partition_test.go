package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// partition is a ReplicatedPartition under test, with its replicas, which are
// played by the test: they write the record as real ones do.
type partition struct {
	t  *testing.T
	rp *v1alpha1.ReplicatedPartition
}

// newPartition makes one; change edits it first.
func newPartition(t *testing.T, change func(*v1alpha1.ReplicatedPartition)) *partition {
	t.Helper()
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = newNamespace(t), "orders"
	if change != nil {
		change(rp)
	}
	if err := cluster.api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	return &partition{t: t, rp: rp}
}

func (p *partition) name(id int) string { return p.rp.ReplicaName(int32(id)) }

func (p *partition) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.rp.Namespace, Name: name}
}

// exists waits for an object and reads it.
func (p *partition) exists(name string, obj client.Object) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("%T %s", obj, name), func() string {
		if err := cluster.api.Get(p.t.Context(), p.key(name), obj); err != nil {
			return err.Error()
		}
		return ""
	})
}

// gone waits until an object is not there.
func (p *partition) gone(name string, obj client.Object) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("%T %s to be gone", obj, name), func() string {
		if err := cluster.api.Get(p.t.Context(), p.key(name), obj); err == nil {
			return "it is still there"
		} else if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		return ""
	})
}

func (p *partition) status() v1alpha1.ReplicatedPartitionStatus {
	p.t.Helper()
	var rp v1alpha1.ReplicatedPartition
	if err := cluster.api.Get(p.t.Context(), p.key(p.rp.Name), &rp); err != nil {
		p.t.Fatal(err)
	}
	return rp.Status
}

// condition waits until a condition has that status and reason.
func (p *partition) condition(kind, status, reason string) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("condition %s=%s (%s)", kind, status, reason), func() string {
		c := meta.FindStatusCondition(p.status().Conditions, kind)
		if c == nil {
			return "no such condition"
		}
		if string(c.Status) != status || c.Reason != reason {
			return fmt.Sprintf("it is %s (%s): %s", c.Status, c.Reason, c.Message)
		}
		return ""
	})
}

// update changes the spec.
func (p *partition) update(change func(*v1alpha1.ReplicatedPartitionSpec)) {
	p.t.Helper()
	await(p.t, "update of the spec", func() string {
		var rp v1alpha1.ReplicatedPartition
		if err := cluster.api.Get(p.t.Context(), p.key(p.rp.Name), &rp); err != nil {
			return err.Error()
		}
		change(&rp.Spec)
		if err := cluster.api.Update(p.t.Context(), &rp); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (p *partition) store() *lease.Store {
	p.t.Helper()
	topic, err := topicID(p.rp)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := lease.New(lease.Config{Client: cluster.leases, Namespace: p.rp.Namespace, Name: p.rp.LeaseName(), TopicID: topic})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *partition) record() epoch.Record {
	p.t.Helper()
	s, err := p.store().Get(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Record
}

// write changes the record as a replica would.
func (p *partition) write(change func(epoch.Record) (epoch.Record, error)) epoch.Record {
	p.t.Helper()
	var written epoch.Record
	await(p.t, "write of the record", func() string {
		base, err := p.store().Get(p.t.Context())
		if err != nil {
			return err.Error()
		}
		next, err := change(base.Record)
		if errors.Is(err, epoch.ErrNoChange) {
			written = base.Record
			return ""
		}
		if err != nil {
			return err.Error()
		}
		s, err := p.store().Update(p.t.Context(), base, next)
		if err != nil {
			return err.Error()
		}
		written = s.Record
		return ""
	})
	return written
}

// leads waits until that replica leads in that epoch.
func (p *partition) leads(id epoch.ReplicaID, e epoch.LeaderEpoch, reason epoch.ElectionReason) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("replica %d to lead in epoch %d", id, e), func() string {
		r := p.record()
		if r.Leader != id || r.LeaderEpoch != e || r.ElectionReason != reason {
			return fmt.Sprintf("replica %d leads in epoch %d (%s)", r.Leader, r.LeaderEpoch, r.ElectionReason)
		}
		return ""
	})
}

// setPod sets what the kubelet would say of a pod, and waits for the pod first. The pod gets
// a node: one without would be gone as soon as it is deleted, and be made anew before a test
// could see it.
func (p *partition) setPod(id int, change func(*corev1.Pod)) {
	p.t.Helper()
	await(p.t, "status of pod "+p.name(id), func() string {
		var pod corev1.Pod
		if err := cluster.api.Get(p.t.Context(), p.key(p.name(id)), &pod); err != nil {
			return err.Error()
		}
		if pod.Spec.NodeName == "" {
			bind := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
			if err := cluster.api.SubResource("binding").Create(p.t.Context(), &pod, bind); err != nil {
				return err.Error()
			}
			return "it has just been scheduled"
		}
		change(&pod)
		if err := cluster.api.Status().Update(p.t.Context(), &pod); err != nil {
			return err.Error()
		}
		return ""
	})
}

// run lets a pod run, with that restart count.
func runPod(restarts int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		started := true
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: containerName, Ready: true, Started: &started, RestartCount: restarts,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
}

func killContainer(pod *corev1.Pod) {
	c := &pod.Status.ContainerStatuses[0]
	c.Ready = false
	c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

// register lets a replica register, as its process does at its start.
func (p *partition) register(id int) epoch.Record {
	p.t.Helper()
	var pod corev1.Pod
	p.exists(p.name(id), &pod)
	var restarts int32
	if c := replicaContainer(&pod); c != nil {
		restarts = c.RestartCount
	}
	start := newID(p.t)
	return p.write(func(r epoch.Record) (epoch.Record, error) {
		var dir epoch.UUID
		dir[0], dir[15] = byte(id+1), 1
		return epoch.Register(r, epoch.Registration{
			ID: epoch.ReplicaID(id), DirectoryID: dir, VolumeID: dir, StartID: epoch.StartID(start), PodUID: string(pod.UID), RestartCount: restarts,
			LastEpoch: epoch.NoEpoch, Change: newID(p.t), Now: time.Now(),
		})
	})
}

// renew lets the leader send a heartbeat in which the replicas of the given ids are
// live, all at that offset.
func (p *partition) renew(leo epoch.Offset, live ...epoch.ReplicaID) {
	p.t.Helper()
	p.write(func(r epoch.Record) (epoch.Record, error) {
		progress := epoch.Progress{HighWatermark: leo, TookOver: r.LeaderEpoch}
		for _, id := range live {
			progress.Replicas = append(progress.Replicas, epoch.ReplicaProgress{ID: id, LogEndOffset: leo, HighWatermark: leo, LeaderEpoch: r.LeaderEpoch, Live: true})
		}
		return epoch.Renew(r, time.Now(), p.rp.EffectiveLeaseDuration(), progress), nil
	})
}

// join lets the leader take the assigned replicas of the given ids into the ISR.
func (p *partition) join(ids ...epoch.ReplicaID) {
	p.t.Helper()
	p.write(func(r epoch.Record) (epoch.Record, error) {
		c := epoch.ISRChange{Leader: r.Leader, Session: r.LeaderSession, LeaderEpoch: r.LeaderEpoch, Change: newID(p.t)}
		for _, id := range ids {
			q, _ := r.Replica(id)
			c.ISR = append(c.ISR, epoch.Member{ID: id, Session: q.Session})
		}
		return epoch.ChangeISR(r, c)
	})
}

// serve brings a partition of n replicas to work, led by replica 0.
func (p *partition) serve(n int) {
	p.t.Helper()
	live := make([]epoch.ReplicaID, n)
	for id := range n {
		live[id] = epoch.ReplicaID(id)
		p.setPod(id, runPod(0))
		p.register(id)
	}
	p.leads(0, 1, epoch.ReasonFirstLeader)
	p.renew(10, live...)
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonComplete)
}

func newID(t *testing.T) epoch.ChangeID {
	t.Helper()
	id, err := newChangeID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
