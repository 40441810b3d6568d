package controllers

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// eventsBetween tells which events the step from one observation to the next sends.
func eventsBetween(before, after *Observation) []string {
	recorder := events.NewFakeRecorder(20)
	r := &Reconciler{Events: recorder}
	old := project(before, Progress{})
	after.Partition.Status = *old.DeepCopy()
	r.tellTransitions(after.Partition, old, project(after, Progress{}))
	close(recorder.Events)
	var out []string
	for e := range recorder.Events {
		fields := strings.Fields(e)
		out = append(out, fields[0]+" "+fields[1])
	}
	return out
}

func TestEventsTellTransitionsOnly(t *testing.T) {
	starting := func(o *Observation) {
		o.Record.Leader, o.Record.LeaderEpoch, o.Record.Progress = epoch.NoReplica, 0, nil
	}
	for _, tc := range []struct {
		name          string
		before, after func(*Observation)
		want          []string
	}{
		{"nothing new", nil, nil, nil},
		{"offsets moved", nil, func(o *Observation) { o.Record.Progress.HighWatermark++ }, nil},
		{"first leader that has not reported yet", starting, func(o *Observation) { o.Record.Progress = nil }, []string{"Normal LeaderElected"}},
		{"first leader that serves", starting, nil, []string{"Normal LeaderElected", "Normal Serving"}},
		{"leader dead", nil, func(o *Observation) { killContainer(o.Pods[0]) }, []string{"Warning LeaderLost"}},
		{"ISR shrunk", nil, func(o *Observation) { o.Record.ISR = []epoch.ReplicaID{0, 1} }, []string{"Normal ISRChanged"}},
		{"min ISR raised", nil, func(o *Observation) { o.Record.MinISR = 3 }, []string{"Normal AssignmentChanged"}},
		{"record gone", nil, func(o *Observation) { o.RecordState = RecordMissing }, []string{"Warning RecordMissing"}},
		{"a name is taken from the start", starting, func(o *Observation) { o.Foreign = []string{"Service orders"} }, []string{"Normal LeaderElected", "Warning NameConflict"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := world(), world()
			if tc.before != nil {
				tc.before(before)
			}
			if tc.after != nil {
				tc.after(after)
			}
			if got := eventsBetween(before, after); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOneReplicaIsWarnedOfOnce(t *testing.T) {
	before, after := world(), world()
	for _, o := range []*Observation{before, after} {
		o.Partition.Spec.Replicas = 1
	}
	before.RecordState, before.Partition.Status.TopicID = RecordMissing, ""
	if got := eventsBetween(before, after); !slices.Contains(got, "Warning "+v1alpha1.EventSingleReplica) {
		t.Errorf("got %q, want a warning", got)
	}
	if got := eventsBetween(after, after); len(got) != 0 {
		t.Errorf("got %q again", got)
	}
}
