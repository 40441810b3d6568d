package main

import (
	"io"
	"testing"

	"github.com/tidemark-io/tidemark/hack/bench/report"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

func TestGoalsAreRatiosOfOneRun(t *testing.T) {
	b := &bench{json: io.Discard, plan: plan{flushes: []system.Flush{system.FlushNever, system.FlushEveryBatch}, sizes: []int{1024}, producers: []int{16}}}
	c := shape{system.FlushNever, system.AcksAll, 1024, 16}
	row := func(kind, name string, c shape, s report.Sample) {
		b.rows = append(b.rows, c.row(kind, name, []report.Sample{s}))
	}
	row(measureProduce, tidemarkName, c, report.Sample{recordsPerCPU: 200, megabytesPerSecond: 60})
	row(measureProduce, kafkaName, c, report.Sample{recordsPerCPU: 50})
	row(measureLatency, tidemarkName, c, report.Sample{p99: 6})
	row(measureLatency, kafkaName, c, report.Sample{p99: 4})
	b.rows = append(b.rows, report.Row{Kind: kindCopy, Samples: []report.Sample{{megabytesPerSecond: 100}}})
	every := c
	every.flush = system.FlushEveryBatch
	row(measureProduce, tidemarkName, every, report.Sample{recordsPerSecond: 900})
	row(kindGathered, tidemarkName, every, report.Sample{recordsPerSecond: 1000})
	row(measureMemory, tidemarkName, shape{}, report.Sample{residentMiB: 65})
	b.rows[len(b.rows)-1].Note = "largest server, idle"
	b.goals()

	var got []string
	for _, r := range b.rows {
		if r.Kind == kindGoal {
			m, _ := r.Median(measured)
			got = append(got, report.Number(m)+" "+reached(r))
		}
	}
	want := []string{"4.00 reached", "1.50 missed", "0.600 reached", "0.900 missed", "65.0 missed"}
	if len(got) != len(want) {
		t.Fatalf("goals are %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("goal %d is %q, want %q", i, got[i], want[i])
		}
	}
}
