package controllers

import (
	"math"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// adoptedWorld is one whose record is of the log of an earlier partition, frozen for the
// adoption, and nobody has reported.
func adoptedWorld(topic epoch.UUID) *Observation {
	o := world()
	o.Record = epoch.Remake(topic, []epoch.ReplicaID{0, 1, 2}, 2, adoptedAt, 0, "adopted")
	o.Partition.Status.TopicID, o.Partition.Status.PartitionEpoch = topic.String(), 1
	ask(o, v1alpha1.AnnotationAdopt, topic.String())
	o.Pods, o.Round = map[epoch.ReplicaID]*corev1.Pod{}, "round"
	o.Record.Recovery.Round = o.Round
	return o
}

func TestWhatAnAdoptionWaitsForIsTold(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		want   string
	}{
		{"suspended", func(o *Observation) { o.Partition.Spec.Suspend = true }, "spec.suspend"},
		{"paused", func(o *Observation) { o.Partition.Annotations[v1alpha1.AnnotationPaused] = "true" }, v1alpha1.AnnotationPaused},
		{"what is left of the earlier partition is in the way", func(o *Observation) { o.Foreign = []string{"Service orders"} }, "Service orders"},
		{"a container that keeps exiting, as with a volume of another topic", func(o *Observation) {
			pod := world().Pods[0]
			notReady(pod, true)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
			o.Pods[0] = pod
		}, "see its log"},
		{"nobody remembers a record", func(o *Observation) {
			for id := range epoch.ReplicaID(3) {
				r, err := epoch.MarkRecovery(o.Record, epoch.RecoveryOf(id, nil, 0))
				if err != nil {
					t.Fatal(err)
				}
				o.Record = r
			}
		}, v1alpha1.AnnotationAdopt + "=" + v1alpha1.AdoptNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := adoptedWorld(epoch.UUID{7})
			tc.change(o)
			s := project(o, MakePlan(o).Progress)
			for _, c := range s.Conditions {
				if (c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionProgressing) && !strings.Contains(c.Message, tc.want) {
					t.Errorf("%s does not tell %q: %s", c.Type, tc.want, c.Message)
				}
			}
		})
	}
}

// The status may be lost or edited, and the annotation be removed, as nothing needs it any
// more: the record is the partition's all the same.
func TestTheRecordOfAnAdoptedLogIsKnown(t *testing.T) {
	adopted := epoch.UUID{7}
	for _, tc := range []struct {
		name, status, annotation string
	}{
		{"the status is lost", "", ""},
		{"the status is lost and an empty log was asked for since", "", v1alpha1.AdoptNone},
		{"the status is lost and another log was asked for since", "", epoch.UUID{9}.String()},
		{"the status is edited", epoch.UUID{8}.String(), adopted.String()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			o.Partition.Status.TopicID = tc.status
			if tc.annotation != "" {
				ask(o, v1alpha1.AnnotationAdopt, tc.annotation)
			}
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: o.Partition.LeaseName(), OwnerReferences: []metav1.OwnerReference{*ownerReference(o.Partition)}}}
			l, err := lease.Encode(epoch.New(adopted, []epoch.ReplicaID{0, 1, 2}, 2, "c"), l)
			if err != nil {
				t.Fatal(err)
			}
			r, err := o.decode(l)
			if err != nil || r.TopicID != adopted {
				t.Errorf("topic id %s, %v", r.TopicID, err)
			}
		})
	}
}

// A cached partition without the annotation, and the annotation in the API: an empty log
// must not begin under the topic id of the one that is wanted.
func TestNoEmptyLogBeginsUnderTheTopicIDThatIsToBeAdopted(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: epoch.UUID{7, 8}.String()}
	})
	cached := p.rp.DeepCopy()
	cached.Annotations = nil
	if _, err := newTestReconciler(t).createRecord(t.Context(), cached); err != nil {
		t.Fatal(err)
	}
	p.noRecord()
}

// A status that was lost with the Lease does not make the volumes an earlier partition's.
func TestAnEmptyLogDoesNotBeginOverThePartitionsOwn(t *testing.T) {
	o := world()
	own, err := epoch.ParseUUID(string(o.Partition.UID))
	if err != nil {
		t.Fatal(err)
	}
	o.RecordState, o.Partition.Status = RecordMissing, v1alpha1.ReplicatedPartitionStatus{}
	o.Kept = map[epoch.ReplicaID]*corev1.PersistentVolumeClaim{0: keptClaim(0, own.String())}
	ask(o, v1alpha1.AnnotationAdopt, v1alpha1.AdoptNone)
	p := MakePlan(o)
	if len(p.Actions) > 0 || p.Progress.Reason != v1alpha1.ReasonQuarantined {
		t.Errorf("got %q, %+v", tell(p), p.Progress)
	}
	if o.quarantine() == "" {
		t.Error("that is not told as a quarantine")
	}
}

func TestACopyThatHardlyMovesHasNoEndToTell(t *testing.T) {
	c := newCopies()
	now := time.Unix(1000, 0)
	c.now = func() time.Time { return now }
	look := func(bytes int64) (time.Duration, bool) {
		left, ok := c.observe("a", &epoch.Progress{Replicas: []epoch.ReplicaProgress{{ID: 2, BytesBehind: bytes, Session: 7}}})[2]
		return left, ok
	}
	look(math.MaxInt32 * 1000)
	now = now.Add(time.Minute)
	if left, ok := look(math.MaxInt32*1000 - 1); ok {
		t.Errorf("%s are left", left)
	}
}

// noRecord demands that there is none.
func (p *partition) noRecord() {
	p.t.Helper()
	var l coordinationv1.Lease
	if err := cluster.api.Get(p.t.Context(), p.key(p.rp.LeaseName()), &l); !apierrors.IsNotFound(err) {
		p.t.Errorf("the Lease: %v; want that there is none", err)
	}
}

// Caches may lag behind what decides on the first record, so each of it is read from the API
// before that is made.
func TestWhatDecidesOnTheFirstRecordIsReadFromTheAPI(t *testing.T) {
	needsCluster(t)
	topic, other := epoch.UUID{7, 1}, epoch.UUID{7, 2}
	r := newTestReconciler(t)
	adopt := func(p *partition, topic epoch.UUID) {
		p.t.Helper()
		if err := r.adoptLog(p.t.Context(), p.rp, Adopt{TopicID: topic}); err != nil {
			p.t.Fatal(err)
		}
	}
	asks := func(value string) func(*v1alpha1.ReplicatedPartition) {
		return func(rp *v1alpha1.ReplicatedPartition) {
			rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: value, v1alpha1.AnnotationPaused: "true"}
		}
	}
	paused := func(rp *v1alpha1.ReplicatedPartition) {
		rp.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	}
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.ReplicatedPartition)
		act    func(*partition)
	}{
		{"an empty log over claims that nobody has spoken of", func(rp *v1alpha1.ReplicatedPartition) {
			paused(rp)
			leave(t, rp.Namespace, topic, 0)
		}, func(p *partition) {
			if _, err := r.createRecord(p.t.Context(), p.rp); err != nil {
				p.t.Fatal(err)
			}
		}},
		{"a log that is not asked for any more", func(rp *v1alpha1.ReplicatedPartition) {
			paused(rp)
			leave(t, rp.Namespace, topic, 0)
		}, func(p *partition) { adopt(p, topic) }},
		{"a log other than the one that is asked for now", func(rp *v1alpha1.ReplicatedPartition) {
			asks(other.String())(rp)
			leave(t, rp.Namespace, topic, 0)
		}, func(p *partition) { adopt(p, topic) }},
		{"a log whose claims are gone", asks(topic.String()), func(p *partition) { adopt(p, topic) }},
		{"a log whose claims are about to go", func(rp *v1alpha1.ReplicatedPartition) {
			asks(topic.String())(rp)
			c := keptClaim(0, topic.String())
			c.Namespace = rp.Namespace
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ReplicatedPartition", Name: rp.Name, UID: "11111111-2222-4333-8444-555555555555"}}
			if err := cluster.api.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}, func(p *partition) { adopt(p, topic) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Paused, so that the suite's own operator leaves it alone.
			p := newPartition(t, tc.change)
			tc.act(p)
			p.noRecord()
		})
	}
}

// Nor does an empty log begin over claims that turn out to be this very partition's.
func TestAnEmptyLogIsNotMadeOverThePartitionsOwnClaims(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: v1alpha1.AdoptNone, v1alpha1.AnnotationPaused: "true"}
	})
	own, err := epoch.ParseUUID(string(p.rp.UID))
	if err != nil {
		t.Fatal(err)
	}
	leave(t, p.rp.Namespace, own, 0)
	if _, err := newTestReconciler(t).createRecord(t.Context(), p.rp); err != nil {
		t.Fatal(err)
	}
	p.noRecord()
}
