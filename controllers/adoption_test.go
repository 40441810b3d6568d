package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// keptClaim is the volume claim of a replica of "orders" that an earlier partition has left.
func keptClaim(id int32, topic string) *corev1.PersistentVolumeClaim {
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: rp.VolumeClaimName(id), Labels: replicaLabels(rp, epoch.ReplicaID(id))}}
	if topic != "" {
		c.Annotations = map[string]string{v1alpha1.AnnotationTopicID: topic}
	}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	return c
}

func TestPlanOverKeptVolumes(t *testing.T) {
	earlier, other := epoch.UUID{7}.String(), epoch.UUID{8}.String()
	fresh := func(o *Observation) {
		o.RecordState, o.Partition.Status = RecordMissing, v1alpha1.ReplicatedPartitionStatus{}
		o.Kept = map[epoch.ReplicaID]*corev1.PersistentVolumeClaim{0: keptClaim(0, earlier), 4: keptClaim(4, earlier)}
	}
	adopt := func(value string) func(*Observation) {
		return func(o *Observation) {
			fresh(o)
			ask(o, v1alpha1.AnnotationAdopt, value)
		}
	}
	runPlanCases(t, []planCase{
		{"nothing begins by itself", fresh, nil, v1alpha1.ReasonQuarantined, recordRecheck},
		{"adopted", adopt(earlier), []string{"adopt " + earlier}, v1alpha1.ReasonRecovering, 0},
		{"adopted by the id in the form of Kubernetes", adopt(epoch.UUID{7}.Canonical()), []string{"adopt " + earlier}, v1alpha1.ReasonRecovering, 0},
		{"an empty log is wanted", adopt(v1alpha1.AdoptNone), []string{"create record"}, v1alpha1.ReasonStarting, 0},
		{"another log is wanted than the one that is there", adopt(other), nil, v1alpha1.ReasonQuarantined, recordRecheck},
		{"a log is wanted and no volume is there", func(o *Observation) {
			adopt(earlier)(o)
			o.Kept = nil
		}, nil, v1alpha1.ReasonQuarantined, recordRecheck},
		{"a claim that does not tell whose log it holds may hold that one", func(o *Observation) {
			adopt(other)(o)
			o.Kept[2] = keptClaim(2, "")
		}, []string{"adopt " + other}, v1alpha1.ReasonRecovering, 0},
		{"a request that cannot be read", adopt("yes"), nil, v1alpha1.ReasonRequestInvalid, 0},
		{"claims that go with the earlier partition are waited for", func(o *Observation) {
			adopt(earlier)(o)
			o.Kept[4].OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicatedPartition", Name: o.Partition.Name, UID: "earlier"}}
		}, nil, v1alpha1.ReasonStarting, recordRecheck},
		{"claims that are being deleted are waited for", func(o *Observation) {
			adopt(v1alpha1.AdoptNone)(o)
			now := metav1.Now()
			o.Kept[0].DeletionTimestamp = &now
		}, nil, v1alpha1.ReasonStarting, recordRecheck},
	})
}

// leave makes the claims of an earlier partition, of these replicas, and returns a record
// that they may remember.
func leave(t *testing.T, namespace string, topic epoch.UUID, ids ...epoch.ReplicaID) epoch.Record {
	t.Helper()
	for _, id := range ids {
		c := keptClaim(int32(id), topic.String())
		c.Namespace = namespace
		if err := cluster.api.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	r := epoch.New(topic, ids, 2, newID(t))
	r.PartitionEpoch, r.LeaderEpoch = 40, 7
	r.Changes[0].PartitionEpoch, r.Changes[0].LeaderEpoch = 40, 7
	for i := range r.Replicas {
		r.Replicas[i].DirectoryID = epoch.UUID{byte(i + 1), 15: 1}
		r.Replicas[i].Session = 30 + epoch.Session(i)
	}
	return r
}

func TestKeptVolumesAreQuarantinedAndAdoptedWhenAsked(t *testing.T) {
	needsCluster(t)
	topic := epoch.UUID{7, 7, 7}
	var earlier epoch.Record
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		longLease(rp)
		earlier = leave(t, rp.Namespace, topic, 0, 1, 2)
	})
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonQuarantined)
	p.condition(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonQuarantined)
	c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionReady)
	for _, want := range []string{"data-orders-0", "data-orders-2", v1alpha1.AnnotationAdopt + "=" + topic.String(), v1alpha1.AnnotationAdopt + "=" + v1alpha1.AdoptNone} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the condition does not tell %q: %s", want, c.Message)
		}
	}
	var l coordinationv1.Lease
	if err := cluster.api.Get(t.Context(), p.key(p.rp.LeaseName()), &l); err == nil {
		t.Error("a record was made before the user had spoken")
	}

	p.annotate(v1alpha1.AnnotationAdopt, topic.String())
	p.rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: topic.String()}
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecovering)
	p.round()
	for id := range epoch.ReplicaID(3) {
		p.exists(p.name(int(id)), &corev1.Pod{})
		p.report(id, &earlier)
	}
	await(t, "the record to go on", func() string {
		r := p.record()
		if r.Recovered == nil || r.Recovered.From != earlier.LastChange() || !slices.Equal(r.ISR, earlier.ISR) || r.LeaderEpoch < earlier.LeaderEpoch+epoch.RecoveryMargin {
			return fmt.Sprintf("%+v, ISR %v, leader epoch %d", r.Recovered, r.ISR, r.LeaderEpoch)
		}
		return ""
	})
	await(t, "the topic id in the status", func() string {
		if got := p.status().TopicID; got != topic.String() {
			return fmt.Sprintf("%q, want %q", got, topic)
		}
		return ""
	})
	for id := range 3 {
		p.setPod(id, runPod(0))
		p.register(id)
	}
	await(t, "a leader in an epoch above all earlier ones", func() string {
		if r := p.record(); r.Leader == epoch.NoReplica || r.LeaderEpoch <= earlier.LeaderEpoch+epoch.RecoveryMargin {
			return fmt.Sprintf("replica %d leads in epoch %d", r.Leader, r.LeaderEpoch)
		}
		return ""
	})
}

func TestAnEmptyLogBeginsOverKeptVolumesWhenAsked(t *testing.T) {
	needsCluster(t)
	topic := epoch.UUID{7, 7, 8}
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		leave(t, rp.Namespace, topic, 0, 1, 2)
		rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: v1alpha1.AdoptNone}
	})
	p.serve(3)
	own, err := epoch.ParseUUID(string(p.rp.UID))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.status().TopicID; got != own.String() {
		t.Errorf("topic id %s, want %s, the object's own", got, own)
	}
	for id := range 3 {
		var c corev1.PersistentVolumeClaim
		p.exists(p.rp.VolumeClaimName(int32(id)), &c)
		if got := c.Annotations[v1alpha1.AnnotationTopicID]; got != own.String() {
			t.Errorf("claim %s says it holds topic id %s", c.Name, got)
		}
	}
}

// What the status shows is never more than that: a topic id that somebody wrote there
// becomes neither the record's nor a reason to stop.
func TestATopicIDWrittenIntoTheStatusIsPutRight(t *testing.T) {
	needsCluster(t)
	p := newPartition(t, longLease)
	p.serve(3)
	own := p.status().TopicID
	await(t, "the status to be edited", func() string {
		var rp v1alpha1.ReplicatedPartition
		if err := cluster.api.Get(t.Context(), p.key(p.rp.Name), &rp); err != nil {
			return err.Error()
		}
		rp.Status.TopicID = epoch.UUID{9}.String()
		if err := cluster.api.Status().Update(t.Context(), &rp); err != nil {
			return err.Error()
		}
		return ""
	})
	p.annotate("example.test/look", "now") // edits of the status are no reason to look
	await(t, "the topic id to be put right", func() string {
		if got := p.status().TopicID; got != own {
			return got
		}
		return ""
	})
	p.condition(v1alpha1.ConditionReady, "True", v1alpha1.ReasonServing)
	p.setPod(0, killContainer)
	p.leads(1, 2, epoch.ReasonProcessDied)
}

// A Lease of the topic id that is to be adopted may still be the earlier partition's own.
func TestTheEarlierPartitionsLeaseIsNotTaken(t *testing.T) {
	needsCluster(t)
	topic := epoch.UUID{7, 7, 9}
	p := newPartition(t, func(rp *v1alpha1.ReplicatedPartition) {
		earlier := leave(t, rp.Namespace, topic, 0, 1, 2)
		rp.Annotations = map[string]string{v1alpha1.AnnotationAdopt: topic.String()}
		was := &partition{t: t, rp: rp.DeepCopy()}
		old := was.rp
		old.UID = types.UID("11111111-2222-4333-8444-555555555555")
		// Its owner is gone: a real garbage collector, which this API server has not, would delete it.
		if _, err := was.store().Create(t.Context(), earlier, metav1.ObjectMeta{Labels: partitionLabels(old), OwnerReferences: []metav1.OwnerReference{*ownerReference(old)}}); err != nil {
			t.Fatal(err)
		}
	})
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecordForeign)
	var l coordinationv1.Lease
	p.exists(p.rp.LeaseName(), &l)
	if err := cluster.api.Delete(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	p.condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonRecovering)
}

func TestQuarantineIsToldWhateverTheClaimsTell(t *testing.T) {
	for _, topic := range []string{epoch.UUID{7}.String(), "", "no claim at all"} {
		o := world()
		o.RecordState, o.Partition.Status = RecordMissing, v1alpha1.ReplicatedPartitionStatus{}
		o.Kept = map[epoch.ReplicaID]*corev1.PersistentVolumeClaim{0: keptClaim(0, topic)}
		if topic == "no claim at all" {
			o.Kept = nil
			ask(o, v1alpha1.AnnotationAdopt, epoch.UUID{7}.String())
		}
		s := project(o, MakePlan(o).Progress)
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing} {
			if c := meta.FindStatusCondition(s.Conditions, kind); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonQuarantined {
				t.Errorf("claim of topic id %q: %s is %s (%s)", topic, kind, c.Status, c.Reason)
			}
		}
	}
}
