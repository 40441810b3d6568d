package controllers

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// shown is the value of a gauge of one partition, or "none".
func shown(t *testing.T, name string, o *Observation) string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] == o.Partition.Namespace && labels["partition"] == o.Partition.Name {
				return fmt.Sprint(m.GetGauge().GetValue())
			}
		}
	}
	return "none"
}

// What the alerts are made of, in the situations that they are for.
func TestGaugesTellTheState(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		change                  func(*Observation)
		leader, live, available string
	}{
		{"all well", func(*Observation) {}, "1", "3", "1"},
		{"nobody leads", func(o *Observation) { o.Record.Leader = epoch.NoReplica }, "0", "0", "0"},
		{"the leader's process has ended", func(o *Observation) { killContainer(o.Pods[0]) }, "0", "0", "0"},
		{"one member is left", func(o *Observation) {
			o.Record.Progress.Replicas[1].Live, o.Record.Progress.Replicas[2].Live = false, false
		}, "1", "1", "0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			o.Partition.Name = t.Name()
			defer dropMetrics(o.Partition.Namespace, o.Partition.Name)
			tc.change(o)
			showMetrics(o, isAvailable(project(o, MakePlan(o).Progress)))
			for name, want := range map[string]string{
				"tidemark_partition_has_leader": tc.leader, "tidemark_partition_live_in_sync_replicas": tc.live,
				"tidemark_partition_available": tc.available, "tidemark_partition_min_in_sync_replicas": "2", "tidemark_partition_assigned_replicas": "3",
			} {
				if got := shown(t, name, o); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

func TestAPartitionWithoutARecordHasNoLeader(t *testing.T) {
	o := world()
	o.Partition.Name = t.Name()
	showMetrics(o, true)
	o.RecordState = RecordMissing
	showMetrics(o, false)
	for _, name := range []string{"tidemark_partition_has_leader", "tidemark_partition_available"} {
		if got := shown(t, name, o); got != "0" {
			t.Errorf("%s is %s, want 0", name, got)
		}
	}
	dropMetrics(o.Partition.Namespace, o.Partition.Name)
	if got := shown(t, "tidemark_partition_has_leader", o); got != "none" {
		t.Errorf("tidemark_partition_has_leader of a partition that is gone is %s", got)
	}
}
