package controllers

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestConditions(t *testing.T) {
	const ready, available, inSync = v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionInSync
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		want   map[string]string
	}{
		{"all well", nil, map[string]string{ready: "True Serving", available: "True Serving", inSync: "True AllInSync"}},
		{"record being made", func(o *Observation) { o.RecordState, o.Partition.Status.TopicID = RecordMissing, "" },
			map[string]string{ready: "Unknown Starting", available: "False Starting", inSync: "Unknown Starting"}},
		{"never led", func(o *Observation) {
			o.Record.Leader, o.Record.LeaderEpoch, o.Record.Progress = epoch.NoReplica, 0, nil
		}, map[string]string{ready: "Unknown Starting", available: "False Starting", inSync: "Unknown Starting"}},
		{"record missing", func(o *Observation) { o.RecordState = RecordMissing }, map[string]string{ready: "False RecordMissing"}},
		{"record foreign", func(o *Observation) { o.RecordState = RecordForeign }, map[string]string{ready: "False RecordForeign"}},
		{"record edited", func(o *Observation) { o.RecordState = RecordInvalid }, map[string]string{ready: "False RecordInvalid"}},
		{"recovery", func(o *Observation) { o.Record.Recovery = &epoch.Recovery{} }, map[string]string{ready: "False RecoveryRequired"}},
		{"nobody leads", func(o *Observation) { o.Record.Leader = epoch.NoReplica }, map[string]string{ready: "False NoLeader", available: "False NoLeader"}},
		{"leader dead", func(o *Observation) { killContainer(o.Pods[0]) }, map[string]string{ready: "False LeaderLost", inSync: "False OutOfSync"}},
		{"lease expired", func(o *Observation) { o.Silence = time.Minute }, map[string]string{ready: "False LeaderLost"}},
		{"taking over", func(o *Observation) { o.Record.LeaderEpoch = 2 }, map[string]string{ready: "False TakingOver"}},
		{"one follower dead", func(o *Observation) { killContainer(o.Pods[2]) }, map[string]string{ready: "True Serving", inSync: "False OutOfSync"}},
		{"two followers behind", func(o *Observation) {
			o.Record.Progress.Replicas[1].Live, o.Record.Progress.Replicas[2].Live = false, false
		}, map[string]string{ready: "False BelowMinInSyncReplicas", available: "False BelowMinInSyncReplicas", inSync: "False OutOfSync"}},
		{"the leader's volume is full", func(o *Observation) { o.Record.Progress.Replicas[0].Full = true },
			map[string]string{ready: "False VolumeFull", available: "False VolumeFull", inSync: "True AllInSync"}},
		{"the leader's log is damaged", func(o *Observation) { o.Record.Progress.Replicas[0].Damaged = true },
			map[string]string{ready: "False LogDamaged", available: "True Serving", inSync: "True AllInSync"}},
		{"a follower's volume is full, and it has fallen behind", func(o *Observation) {
			o.Record.Progress.Replicas[1].Live, o.Record.Progress.Replicas[1].Full = false, true
		}, map[string]string{ready: "True Serving", inSync: "False OutOfSync"}},
		{"a new replica is wanted", func(o *Observation) { o.Partition.Spec.Replicas = 4 }, map[string]string{ready: "True Serving", inSync: "False OutOfSync"}},
		{"a name is taken", func(o *Observation) { o.Foreign = []string{"Service orders"} }, map[string]string{ready: "False NameConflict", available: "True Serving"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			if tc.change != nil {
				tc.change(o)
			}
			s := project(o, MakePlan(o).Progress)
			for kind, want := range tc.want {
				c := meta.FindStatusCondition(s.Conditions, kind)
				if c == nil {
					t.Errorf("no condition %s", kind)
				} else if got := string(c.Status) + " " + c.Reason; got != want {
					t.Errorf("%s: got %s (%s), want %s", kind, got, c.Message, want)
				}
			}
			for _, kind := range []string{ready, available, inSync, v1alpha1.ConditionProgressing} {
				if meta.FindStatusCondition(s.Conditions, kind) == nil {
					t.Errorf("there is no %s: it is never absent", kind)
				}
			}
		})
	}
}

func TestStatusIsRebuiltFromNothing(t *testing.T) {
	o := world()
	full := project(o, Progress{Status: "False", Reason: v1alpha1.ReasonComplete})
	// H22: whatever was there before.
	o.Partition.Status = v1alpha1.ReplicatedPartitionStatus{Leader: "nonsense", ISR: []int32{7}, LeaderEpoch: 99}
	again := project(o, Progress{Status: "False", Reason: v1alpha1.ReasonComplete})
	for i := range full.Conditions {
		again.Conditions[i].LastTransitionTime = full.Conditions[i].LastTransitionTime
	}
	if !equality.Semantic.DeepEqual(full, again) {
		t.Errorf("got %+v, want %+v", again, full)
	}
	if full.Leader != "orders-0" || full.PartitionEpoch != 4 || *full.HighWatermark != 90 || *full.LogEndOffset != 100 || *full.LogStartOffset != 5 {
		t.Errorf("unexpected status %+v", full)
	}
	if lag := full.Replicas[2].Lag; lag == nil || *lag != 2 {
		t.Errorf("replica 2 has lag %v, want 2", lag)
	}
}

func TestRoles(t *testing.T) {
	o := world()
	killContainer(o.Pods[2])
	o.Record.Replicas[1].Adding = true
	s := project(o, Progress{})
	for i, want := range []v1alpha1.ReplicaRole{v1alpha1.RoleLeader, v1alpha1.RoleJoining, v1alpha1.RoleOffline} {
		if got := s.Replicas[i].Role; got != want {
			t.Errorf("replica %d: got %s, want %s", i, got, want)
		}
	}
	msg := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionInSync).Message
	if want := "orders-2 offline not in sync epoch 1 HW 90 LEO 98"; !strings.Contains(msg, want) {
		t.Errorf("got message %q, want it to contain %q", msg, want)
	}
}

func TestOffsetsAreNotAChangeOfState(t *testing.T) {
	o := world()
	before := project(o, Progress{Status: "False", Reason: v1alpha1.ReasonComplete})
	o.Partition.Status = before
	o.Record.Progress.HighWatermark += 50
	for i := range o.Record.Progress.Replicas {
		o.Record.Progress.Replicas[i].LogEndOffset += 50
	}
	after := project(o, Progress{Status: "False", Reason: v1alpha1.ReasonComplete})
	if equality.Semantic.DeepEqual(before, after) {
		t.Error("moved offsets do not show")
	}
	if !equality.Semantic.DeepEqual(withoutNumbers(before), withoutNumbers(after)) {
		t.Error("moved offsets count as a change of state")
	}
	o.Record.Progress.Replicas[2].Live = false
	if later := project(o, Progress{Status: "False", Reason: v1alpha1.ReasonComplete}); equality.Semantic.DeepEqual(withoutNumbers(after), withoutNumbers(later)) {
		t.Error("a member that is not live any more does not count as a change of state")
	}
}

func TestPace(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPace()
	p.now = func() time.Time { return now }
	if got := p.due("rp"); got != 0 {
		t.Errorf("never written: got %s, want 0", got)
	}
	p.written("rp")
	now = now.Add(2 * time.Second)
	if got, want := p.due("rp"), 3*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTruncateKeepsCharactersWhole(t *testing.T) {
	if got, want := truncate("häääääh", 8), "hää..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := truncate("short", 8); got != "short" {
		t.Errorf("got %q", got)
	}
}
