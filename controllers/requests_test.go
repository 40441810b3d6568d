package controllers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// ask puts a request on the partition.
func ask(o *Observation, annotation, value string) {
	o.Partition.Annotations = map[string]string{annotation: value}
}

// freeze marks the record as older than one that replica 0 knows, at partition epoch 4.
func freeze(o *Observation, reporters ...epoch.ReplicaID) {
	newer, err := epoch.ChangeISR(o.Record, epoch.ISRChange{Leader: 0, Session: o.Record.LeaderSession, LeaderEpoch: 1,
		ISR: []epoch.Member{{ID: 0, Session: o.Record.LeaderSession}, {ID: 2, Session: 4}}, Change: "newer"})
	if err != nil {
		panic(err)
	}
	for _, id := range reporters {
		known := &o.Record
		if id == 0 {
			known = &newer
		}
		if o.Record, err = epoch.MarkRecovery(o.Record, epoch.RecoveryOf(id, known, 0)); err != nil {
			panic(err)
		}
	}
}

// beginRound is a round that this process has begun, with these reports.
func beginRound(o *Observation, reporters ...epoch.ReplicaID) {
	o.Round = "round"
	r, err := epoch.AskReports(o.Record, o.Round)
	for _, id := range reporters {
		if err != nil {
			panic(err)
		}
		r, err = epoch.MarkRecovery(r, epoch.RecoveryOf(id, &o.Record, 0))
	}
	o.Record = r
}

func TestPlanRecovery(t *testing.T) {
	lost := func(o *Observation) {
		o.RecordState, o.Partition.Status.PartitionEpoch = RecordMissing, 4
		clear(o.Pods)
	}
	runPlanCases(t, []planCase{
		{"not asked for", func(o *Observation) { freeze(o, 0, 1, 2) }, nil, v1alpha1.ReasonRecoveryRequired, 0},
		{"asked for, no round of reports has begun", func(o *Observation) {
			freeze(o, 0, 1, 2)
			ask(o, v1alpha1.AnnotationRecover, "4")
		}, []string{"ask reports at 4"}, v1alpha1.ReasonRecovering, 0},
		{"asked for, the round in the record was begun by somebody else", func(o *Observation) {
			freeze(o, 0, 1, 2)
			ask(o, v1alpha1.AnnotationRecover, "4")
			beginRound(o, 0, 1, 2)
			o.Round = "mine"
		}, []string{"ask reports at 4"}, v1alpha1.ReasonRecovering, 0},
		{"asked for, all have reported", func(o *Observation) {
			freeze(o, 0, 1, 2)
			ask(o, v1alpha1.AnnotationRecover, "4")
			beginRound(o, 0, 1, 2)
		}, []string{"recover 4"}, v1alpha1.ReasonRecovering, recordRecheck},
		{"asked for, one has not reported", func(o *Observation) {
			freeze(o, 0, 1, 2)
			ask(o, v1alpha1.AnnotationRecover, "4")
			beginRound(o, 0, 1)
		}, nil, v1alpha1.ReasonRecovering, 0},
		{"an old request", func(o *Observation) {
			freeze(o, 0, 1, 2)
			ask(o, v1alpha1.AnnotationRecover, "3")
		}, nil, v1alpha1.ReasonRecoveryRequired, 0},
		{"a forgotten request on a sound record", func(o *Observation) { ask(o, v1alpha1.AnnotationRecover, "4") }, nil, v1alpha1.ReasonComplete, 0},
		{"a request that says nothing", func(o *Observation) { ask(o, v1alpha1.AnnotationRecover, "please") }, nil, v1alpha1.ReasonRequestInvalid, 0},
		{"the pod of an awaited replica is made, and none is deleted", func(o *Observation) {
			freeze(o, 0, 1)
			delete(o.Pods, 2)
			killContainer(o.Pods[0])
			ask(o, v1alpha1.AnnotationRecover, "4")
			beginRound(o, 0, 1)
		}, []string{"create pod 2"}, v1alpha1.ReasonRecovering, 0},
		{"the pod of a replica that only a newer record assigns is made", func(o *Observation) {
			freeze(o, 0, 1, 2)
			o.Record.Recovery.Assigned = append(o.Record.Recovery.Assigned, 3)
			ask(o, v1alpha1.AnnotationRecover, "4")
			beginRound(o, 0, 1, 2)
		}, []string{"create pod 3"}, v1alpha1.ReasonRecovering, 0},
		{"record lost, not asked for", lost, nil, v1alpha1.ReasonRecordMissing, recordRecheck},
		{"record lost, asked for", func(o *Observation) {
			lost(o)
			ask(o, v1alpha1.AnnotationRecover, "4")
		}, []string{"remake record at 4"}, v1alpha1.ReasonRecovering, recordRecheck},
		{"record lost, an old request", func(o *Observation) {
			lost(o)
			ask(o, v1alpha1.AnnotationRecover, "3")
		}, nil, v1alpha1.ReasonRecordMissing, recordRecheck},
	})
}

func TestPlanUncleanElections(t *testing.T) {
	alone := func(o *Observation) { // replica 0 was the whole ISR, and is dead
		killContainer(o.Pods[0])
		o.Record.ISR = []epoch.ReplicaID{0}
		ask(o, v1alpha1.AnnotationElectUnclean, "1")
	}
	runPlanCases(t, []planCase{
		{"asked for", alone, []string{"elect Unclean of [1 2]"}, "", 0},
		{"asked for one", func(o *Observation) {
			alone(o)
			ask(o, v1alpha1.AnnotationElectUnclean, "1/2")
		}, []string{"elect Unclean of [1 2]"}, "", 0},
		{"asked for one that is down", func(o *Observation) {
			alone(o)
			killContainer(o.Pods[2])
			ask(o, v1alpha1.AnnotationElectUnclean, "1/2")
		}, nil, "", 0},
		{"asked for in an earlier epoch", func(o *Observation) {
			alone(o)
			ask(o, v1alpha1.AnnotationElectUnclean, "0")
		}, nil, "", 0},
		{"asked for while the leader is well", func(o *Observation) { ask(o, v1alpha1.AnnotationElectUnclean, "1") }, nil, v1alpha1.ReasonComplete, 0},
		{"asked for while a member of the ISR can lead", func(o *Observation) {
			killContainer(o.Pods[0])
			ask(o, v1alpha1.AnnotationElectUnclean, "1")
		}, []string{"elect ProcessDied of [1 2]"}, "", 0},
		{"a request that says nothing", func(o *Observation) { ask(o, v1alpha1.AnnotationElectUnclean, "now") }, nil, v1alpha1.ReasonRequestInvalid, 0},
	})
}

func TestStatusSaysWhatIsLostAndHowToAsk(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		reason string
		want   []string
	}{
		{"before an unclean election", func(o *Observation) {
			killContainer(o.Pods[0])
			o.Record.ISR = []epoch.ReplicaID{0}
			o.Record.Replicas[2].LastEpoch, o.Record.Replicas[2].LogEndOffset = 1, 80
		}, v1alpha1.ReasonLeaderLost, []string{"orders-2", "offsets 80 to 89", "tidemark.io/elect-unclean=1"}},
		{"before an unclean election, no high watermark known", func(o *Observation) {
			o.Record.Leader, o.Record.LeaderSession, o.Record.ISR, o.Record.Progress = epoch.NoReplica, epoch.NoSession, nil, nil
		}, v1alpha1.ReasonNoLeader, []string{"from offset 0 on", "tidemark.io/elect-unclean=1"}},
		{"waiting for a report", func(o *Observation) {
			freeze(o, 0, 1)
			killContainer(o.Pods[2])
			delete(o.Pods, 2)
		}, v1alpha1.ReasonRecoveryRequired, []string{"orders-0 knows 5", "orders-1 knows 4", "go on from 5 with the ISR [0 2]", "waiting for the reports of replicas [2] (the pod orders-2 is not there)", "tidemark.io/recover=4"}},
		{"asked for", func(o *Observation) {
			freeze(o, 0, 1)
			ask(o, v1alpha1.AnnotationRecover, "4")
		}, v1alpha1.ReasonRecovering, []string{"waiting for the reports of replicas [2]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			tc.change(o)
			c := meta.FindStatusCondition(project(o, MakePlan(o).Progress).Conditions, v1alpha1.ConditionAvailable)
			if c.Reason != tc.reason {
				t.Errorf("got reason %s, want %s", c.Reason, tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(c.Message, want) {
					t.Errorf("got message %q, want it to contain %q", c.Message, want)
				}
			}
		})
	}
}

func TestStatusShowsTheLossOfAnUncleanElection(t *testing.T) {
	o := world()
	end := epoch.Offset(80)
	o.Record.UncleanElection = &epoch.UncleanElection{LeaderEpoch: 1, Leader: 2, HighWatermark: 90}
	if u := project(o, Progress{}).UncleanElection; u.LostRecords != nil || *u.HighWatermark != 90 {
		t.Errorf("before the takeover: %+v", u)
	}
	o.Record.UncleanElection.LogEndOffset = &end
	if u := project(o, Progress{}).UncleanElection; u.LostRecords == nil || *u.LostRecords != 10 || *u.LogEndOffset != 80 || u.Leader != "orders-2" {
		t.Errorf("after the takeover: %+v, want 10 lost from 80", u)
	}
}
