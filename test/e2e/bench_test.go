//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// benchmarkFault makes a fault again and again under load and reports the longest time without an acknowledged record.
// repair ends the fault; the next run begins when all replicas are in sync. The history is checked at the end.
func benchmarkFault(b *testing.B, name string, fault func(p partition, leader string) time.Time, repair func()) {
	p := newPartition(b, name)
	// One request at a time: a client waits for each one that is under way to a lost machine, one after the other, and
	// it is not the client that is measured.
	l := startLoad(b, p, kgo.MaxProduceRequestsInflightPerBroker(1))
	var times []time.Duration
	for b.Loop() {
		before := p.awaitInSync(b)
		at := fault(p, before.Leader)
		l.await(b, at.Add(500*time.Millisecond))
		p.awaitEpochAfter(b, before.LeaderEpoch)
		times = append(times, l.report(b, fmt.Sprintf("%s of %s", name, before.Leader), at).Length())
		repair()
	}
	p.awaitInSync(b)
	l.finish(b)
	slices.Sort(times)
	b.ReportMetric(0, "ns/op") // the length of a run says nothing
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "ms-median")
	b.ReportMetric(float64(times[len(times)-1].Milliseconds()), "ms-max")
}

func BenchmarkFailoverProcessKill(b *testing.B) {
	benchmarkFault(b, "bench-kill", func(_ partition, leader string) time.Time {
		return killPod(b, namespace, leader, "replica")
	}, func() {})
}

func BenchmarkFailoverPodDelete(b *testing.B) {
	benchmarkFault(b, "bench-delete", func(_ partition, leader string) time.Time {
		at := time.Now()
		kubectl(b, "delete", "pod", leader, "--wait=false")
		return at
	}, func() {})
}

// The operator may be on the node that loses power; then its own standby has to take over first.
func BenchmarkFailoverPowerCut(b *testing.B) {
	var cut string
	repair := func() {
		if cut != "" {
			output(labScript, "start-node", cut)
			cut = ""
		}
	}
	b.Cleanup(repair)
	benchmarkFault(b, "bench-power", func(_ partition, leader string) time.Time {
		cut = nodeNumber(b, namespace, leader)
		b.Logf("operators are on %v, power cut of node%s", operatorNodes(b), cut)
		at := time.Now()
		lab(b, "cut-node", cut)
		return at
	}, repair)
}

func operatorNodes(b *testing.B) []string {
	var pods corev1.PodList
	if err := api.List(b.Context(), &pods, client.InNamespace(operatorNamespace)); err != nil {
		b.Fatal(err)
	}
	var nodes []string
	for _, p := range pods.Items {
		nodes = append(nodes, p.Name+"@"+p.Spec.NodeName)
	}
	return nodes
}

const benchRecords, benchBytes = 500_000, 100

func BenchmarkProduceKcat(b *testing.B) {
	p := newPartition(b, "bench-kcat")
	line := strings.Repeat("x", benchBytes) + "\n"
	input := strings.Repeat(line, benchRecords)
	for b.Loop() {
		kcatProduce(b, p, input)
	}
	b.ReportMetric(float64(benchRecords*b.N)/b.Elapsed().Seconds(), "records/s")
	p.reportMemory(b)
}

func BenchmarkProduceFranz(b *testing.B) {
	p := newPartition(b, "bench-franz")
	c, err := kgo.NewClient(kgo.SeedBrokers(p.brokers(b)...), kgo.DefaultProduceTopic(p.name), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	value := []byte(strings.Repeat("x", benchBytes))
	for b.Loop() {
		for range benchRecords {
			c.Produce(b.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
		if err := c.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchRecords*b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkConsumeKcat(b *testing.B) {
	p := newPartition(b, "bench-consume")
	kcatProduce(b, p, strings.Repeat(strings.Repeat("x", benchBytes)+"\n", benchRecords))
	for b.Loop() {
		if n := strings.Count(kcatConsume(b, p), "\n"); n != benchRecords {
			b.Fatalf("read %d records, want %d", n, benchRecords)
		}
	}
	b.ReportMetric(float64(benchRecords*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkIdleMemory reports the resident memory of processes that have nothing to do.
func BenchmarkIdleMemory(b *testing.B) {
	p := newPartition(b, "bench-idle")
	for b.Loop() {
		p.reportMemory(b)
	}
	b.ReportMetric(0, "ns/op")
}

// reportMemory reports the largest resident set of the partition's replicas and of the operators.
func (p partition) reportMemory(b *testing.B) {
	var pods corev1.PodList
	if err := api.List(b.Context(), &pods); err != nil {
		b.Fatal(err)
	}
	most := map[string]int{}
	for _, pod := range pods.Items {
		unit, container := "MiB-operator", "manager"
		if pod.Labels[v1alpha1.LabelPartition] == p.name {
			unit, container = "MiB-replica", "replica"
		} else if pod.Namespace != operatorNamespace {
			continue
		}
		most[unit] = max(most[unit], residentMiB(b, lab(b, "pod-pid", pod.Namespace, pod.Name, container)))
	}
	for unit, n := range most {
		b.ReportMetric(float64(n), unit)
	}
}

func residentMiB(b *testing.B, pid string) int {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	b.Fatalf("process %s has no resident memory", pid)
	return 0
}
