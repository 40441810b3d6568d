package controllers

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// world is a serving partition of three, led by replica 0, for the tests of pure
// functions; each test changes it to what it is about.
func world() *Observation {
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name, rp.UID = "shop", "orders", types.UID("11111111-2222-3333-4444-555555555555")
	rp.Generation = 1
	topic, err := topicID(rp)
	if err != nil {
		panic(err)
	}
	r := servingRecord(topic)
	rp.Status.TopicID = topic.String()
	o := &Observation{Partition: rp, RecordState: RecordPresent, Record: r, Pods: map[epoch.ReplicaID]*corev1.Pod{},
		Claims: map[epoch.ReplicaID]*corev1.PersistentVolumeClaim{}, Deleting: map[types.UID]time.Duration{}}
	o.render()
	for id := range epoch.ReplicaID(3) {
		o.Pods[id] = readyPod(o, id)
	}
	for _, c := range o.Desired.Children {
		o.Children = append(o.Children, c)
		if claim, ok := c.(*corev1.PersistentVolumeClaim); ok {
			id, _ := replicaIDOf(claim)
			o.Claims[id] = claim
		}
	}
	return o
}

// servingRecord is of three registered replicas, of which 0 leads, at partition
// epoch 4 and leader epoch 1.
func servingRecord(topic epoch.UUID) epoch.Record {
	r := epoch.New(topic, []epoch.ReplicaID{0, 1, 2}, 2, "c1")
	p := epoch.Progress{HighWatermark: 90, LogStartOffset: 5, TookOver: 1}
	for id := range epoch.ReplicaID(3) {
		var err error
		r, err = epoch.Register(r, epoch.Registration{ID: id, DirectoryID: epoch.UUID{byte(id + 1)}, VolumeID: epoch.UUID{byte(id + 1)},
			StartID: epoch.StartID("s" + id.String()), PodUID: podUID(id), LastEpoch: epoch.NoEpoch, Change: epoch.ChangeID("r" + id.String())})
		if err != nil {
			panic(err)
		}
		p.Replicas = append(p.Replicas, epoch.ReplicaProgress{ID: id, LogEndOffset: 100 - epoch.Offset(id), HighWatermark: 90, LeaderEpoch: 1, Live: true})
	}
	return epoch.Renew(r, time.Unix(1000, 0), 10*time.Second, p)
}

func (o *Observation) render() {
	var err error
	if o.Desired, err = Render(o.Partition, o.Record, ReplicaDefaults{Image: "example.test/tidemark:1"}); err != nil {
		panic(err)
	}
}

func podUID(id epoch.ReplicaID) string { return "pod-" + id.String() }

func readyPod(o *Observation, id epoch.ReplicaID) *corev1.Pod {
	pod := o.Desired.Pods[id].DeepCopy()
	pod.UID = types.UID(podUID(id))
	runPod(0)(pod)
	return pod
}

func container(restarts int32, state, last corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-0"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: containerName, RestartCount: restarts, State: state, LastTerminationState: last}}}}
}

func TestProcessEnded(t *testing.T) {
	up := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	dead := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	registered := epoch.Replica{ID: 0, Session: 7, PodUID: "pod-0", RestartCount: 2}
	for _, tc := range []struct {
		name    string
		replica epoch.Replica
		pod     *corev1.Pod
		want    bool
	}{
		{"running as registered", registered, container(2, up, dead), false},
		{"terminated", registered, container(2, dead, corev1.ContainerState{}), true},
		{"restarted since", registered, container(3, up, dead), true},
		{"restarted since, and ready", registered, func() *corev1.Pod {
			p := container(3, up, dead)
			p.Status.ContainerStatuses[0].Ready = true
			return p
		}(), false},
		{"restarted and terminated since", registered, container(3, dead, dead), true},
		{"status older than the registration", registered, container(1, dead, corev1.ContainerState{}), false},
		{"backing off", registered, container(2, waiting, dead), true},
		{"waiting for its first start", registered, container(2, waiting, corev1.ContainerState{}), false},
		{"no status yet", registered, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-0"}}, false},
		{"no pod", registered, nil, true},
		{"another pod", registered, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-x"}}, true},
		{"failed pod", registered, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-0"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}, true},
		{"known to be gone", epoch.Replica{Session: 7, PodUID: "pod-0", Gone: true}, container(0, up, dead), true},
		{"never registered", epoch.Replica{ID: 0}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			why, got := processEnded(tc.replica, tc.pod)
			if got != tc.want {
				t.Errorf("got %t (%s), want %t", got, why, tc.want)
			}
			if got && why == "" {
				t.Error("it does not say why")
			}
		})
	}
}

func TestElectable(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		except epoch.ReplicaID
		want   []epoch.ReplicaID
	}{
		{"all well", nil, 0, []epoch.ReplicaID{1, 2}},
		{"one out of the ISR", func(o *Observation) { o.Record.ISR = []epoch.ReplicaID{0, 2} }, 0, []epoch.ReplicaID{2}},
		{"one behind, by the leader's word", func(o *Observation) { o.Record.Progress.Replicas[1].Live = false }, 0, []epoch.ReplicaID{2}},
		{"nobody live by the leader's word", func(o *Observation) { o.Record.Progress = nil }, 0, []epoch.ReplicaID{1, 2}},
		{"one on a dead node", func(o *Observation) { o.Pods[1].Status.Conditions[0].Status = corev1.ConditionFalse }, 0, []epoch.ReplicaID{2}},
		{"one on its way out", func(o *Observation) { o.Pods[2].DeletionTimestamp = &metav1.Time{} }, 0, []epoch.ReplicaID{1}},
		{"one without a pod", func(o *Observation) { delete(o.Pods, 2) }, 0, []epoch.ReplicaID{1}},
		{"one of a newer pod that has not registered", func(o *Observation) { o.Pods[2].UID = "other" }, 0, []epoch.ReplicaID{1}},
		{"one restarted that has not registered", func(o *Observation) { restartContainer(o.Pods[2]) }, 0, []epoch.ReplicaID{1}},
		{"both restarted: better than nobody", func(o *Observation) { restartContainer(o.Pods[1]); restartContainer(o.Pods[2]) }, 0, []epoch.ReplicaID{1, 2}},
		{"both terminated", func(o *Observation) { killContainer(o.Pods[1]); killContainer(o.Pods[2]) }, 0, nil},
		{"never registered", func(o *Observation) { o.Record.Replicas[1].Session = epoch.NoSession }, 0, []epoch.ReplicaID{2}},
		{"nobody is excepted", nil, epoch.NoReplica, []epoch.ReplicaID{0, 1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			if tc.change != nil {
				tc.change(o)
			}
			if got := o.electable(tc.except); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLiveMembersCountOnlyUnderALeaderThatServes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		want   int
	}{
		{"all well", nil, 3},
		{"a follower's process is dead", func(o *Observation) { killContainer(o.Pods[2]) }, 2},
		{"a follower is behind", func(o *Observation) { o.Record.Progress.Replicas[1].Live = false }, 2},
		{"the leader is dead", func(o *Observation) { killContainer(o.Pods[0]) }, 0},
		{"the lease has expired", func(o *Observation) { o.Silence = 10 * time.Second }, 0},
		{"the leader's own lease is longer", func(o *Observation) {
			o.Silence, o.Record.Heartbeat.Duration = 10*time.Second, 20*time.Second
		}, 3},
		{"the progress is of an earlier leader", func(o *Observation) { o.Record.LeaderEpoch = 2 }, 0},
		{"nobody leads", func(o *Observation) { o.Record.Leader = epoch.NoReplica }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			if tc.change != nil {
				tc.change(o)
			}
			if got := len(o.liveMembers()); got != tc.want {
				t.Errorf("got %d live members, want %d", got, tc.want)
			}
		})
	}
}
