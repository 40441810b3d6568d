package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/hack/bench/franz"
	"github.com/tidemark-io/tidemark/hack/bench/report"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

const tidemarkName, kafkaName = "Tidemark", "Apache Kafka"

func text(head string, of func(report.Row) string) report.Column {
	return report.Column{Head: head, Text: of}
}

// write writes everything for a person.
func (b *bench) write(w io.Writer) {
	d := b.machine
	fmt.Fprintf(w, "# Benchmark of %s\n\n", d.Time.Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(w, "Commit %s, %s. %d cores (%s), %.1f GiB of memory, %s, %s on %s. Load average before: %s.\n\n", d.Commit, d.Go, d.Cores, d.Processor,
		d.MemoryGiB, d.Kernel, d.FileSystem, d.Disk, d.LoadBefore)
	fmt.Fprintf(w, "Everything, servers and client, ran on the same %d cores, over loopback, with all data on one disk. ", d.Cores)
	fmt.Fprintf(w, "Each case: %d runs, each on a new log, of %v to warm up and %v to measure, but of no more than %d MiB; medians, and in parentheses how far the runs lie apart, as (max − min) ÷ median.\n\n",
		b.repeat, b.warmup, b.duration, b.runBytes>>20)
	fmt.Fprintf(w, "    make bench-system ARGS='%s'\n\n", strings.Join(shown(os.Args[1:]), " "))
	fmt.Fprintf(w, "Client: %s. Closed loop: %d bytes or %d records under way, whichever is less, of all producers together. Seed %d.\n",
		franz.Options{Linger: b.linger}.Settings(), b.inFlightBytes, b.inFlightRecords, b.seed)
	for _, i := range b.infos {
		fmt.Fprintf(w, "\n- %s %s", i.Name, i.Version)
		for _, k := range sortedKeys(i.Settings) {
			fmt.Fprintf(w, "; %s: %s", k, i.Settings[k])
		}
	}
	for _, m := range b.missing {
		fmt.Fprintf(w, "\n- Left out: %s", m)
	}
	fmt.Fprintln(w)
	b.rows.Table(w, kindGoal, "Goals", text("goal", func(r report.Row) string { return r.Note }), report.Value("measured", measured),
		report.Value("wanted", wanted), text("", reached))
	systemName := text("system", func(r report.Row) string { return r.System })
	flush := text("flush", func(r report.Row) string { return r.Flush })
	acks := text("acks", func(r report.Row) string { return r.Acks })
	producers := text("producers", func(r report.Row) string { return fmt.Sprint(r.Producers) })
	note := func(head string) report.Column { return text(head, func(r report.Row) string { return r.Note }) }
	b.rows.Table(w, measureProduce, "Produce, closed loop", systemName, flush, acks, report.Size("record"), producers,
		report.ValueSpread("records/s", recordsPerSecond), report.Value("MB/s", megabytesPerSecond), report.Value("records per batch", recordsPerBatch),
		report.Value("records per leader's fsync", recordsPerFlush),
		report.Value("CPU s/GiB: leader", leaderCPU), report.Value("followers", followersCPU), report.Value("client", clientCPU),
		report.Value("records per server CPU s", recordsPerCPU))
	b.rows.Table(w, measureLatency, "Latency at half of that rate, open loop, in milliseconds", systemName, flush, acks, report.Size("record"), producers,
		report.Value("offered records/s", offeredPerSecond), report.Value("acknowledged records/s", recordsPerSecond),
		report.ValueSpread("p50", p50), report.ValueSpread("p99", p99), report.ValueSpread("p99.9", p999))
	b.rows.Table(w, measureFetch, "Fetch, one consumer from the log's begin", systemName, report.Size("record"), note("pages"), report.ValueSpread("MB/s", megabytesPerSecond),
		report.Value("records/s", recordsPerSecond), report.Value("CPU s/GiB: servers", serversCPU), report.Value("client", clientCPU), report.Value("share read from disk", fromDisk))
	b.rows.Table(w, measureRestart, "Kill -9 of a follower, flush Never", systemName, report.Value("GiB in the log", gib), report.ValueSpread("s to ready", readySeconds),
		report.Value("s to ready per GiB", readyPerGiB), report.ValueSpread("s to in sync", inSyncSeconds))
	b.rows.Table(w, measureMemory, "Resident memory", systemName, note("when"), report.Value("MiB", residentMiB))
	b.rows.Table(w, kindCopy, "Floor: the same bytes through three processes to three files, no protocol", report.ValueSpread("MB/s", megabytesPerSecond),
		report.Value("CPU s/GiB: leader", leaderCPU), report.Value("followers", followersCPU))
	b.rows.Table(w, kindPages, "Floor: writes to new files, that is to the page cache", report.Value("MB/s of the first 256 MiB", firstMegabytes), report.Value("after 2 GiB", laterMegabytes))
	b.rows.Table(w, kindSync, "Floor: append and fsync", report.Value("files at once", files), report.Size("append"), report.ValueSpread("per second and file", perSecond),
		report.Value("MB/s per file", megabytesPerSecond), report.Value("fsync p50 ms", p50), report.Value("p99 ms", p99))
	b.rows.Table(w, kindGathered, "Floor: append and fsync of what the leader's group commit gathered, three files at once", report.Size("record"), producers,
		report.Value("records per fsync", recordsPerFlush), report.ValueSpread("fsyncs/s", perSecond), report.Value("records/s", recordsPerSecond))
}

// shown leaves out what says where things are.
func shown(args []string) []string {
	places := []string{"dir", "replica", "nats", "kafka", "out", "json"}
	var kept []string
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-") || !slices.Contains(places, name):
			kept = append(kept, args[i])
		case !whole:
			i++ // its value is the next one
		}
	}
	return kept
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Goals, as ratios in one run.
const (
	kindGoal         = "goal"
	measured, wanted = "measured", "wanted"
)

// reached reads a goal's direction from its limit: memory and latency are to be below.
func reached(r report.Row) string {
	m, _ := r.Median(measured)
	w, _ := r.Median(wanted)
	if r.Flush == below && m <= w || r.Flush != below && m >= w {
		return "reached"
	}
	return "missed"
}

const below = "below"

// goals computes what can be computed from the rows that are there.
func (b *bench) goals() {
	find := func(kind, name string, flush system.Flush, acks system.Acks, size, producers int) (report.Row, bool) {
		return b.rows.Find(func(r report.Row) bool {
			return r.Kind == kind && r.System == name && r.Flush == string(flush) && r.Acks == string(acks) && r.Size == size && r.Producers == producers
		})
	}
	goal := func(note, direction string, got, want float64) {
		_ = b.add(report.Row{Kind: kindGoal, Flush: direction, Note: note, Samples: []report.Sample{{measured: got, wanted: want}}})
	}
	ratio := func(kind, value string, flush system.Flush, producers int) (float64, bool) {
		t, ok := find(kind, tidemarkName, flush, system.AcksAll, 1024, producers)
		k, ok2 := find(kind, kafkaName, flush, system.AcksAll, 1024, producers)
		a, ok3 := t.Median(value)
		c, ok4 := k.Median(value)
		return a / c, ok && ok2 && ok3 && ok4 && c > 0
	}
	for _, flush := range b.flushes {
		for _, n := range b.plan.producers {
			if r, ok := ratio(measureProduce, recordsPerCPU, flush, n); ok {
				goal(fmt.Sprintf("records per server CPU second ÷ Kafka's: acks=all, 1 KiB, flush %s, %d producers", flush, n), "", r, 3)
			}
		}
	}
	for _, flush := range b.flushes {
		for _, n := range b.plan.producers {
			if r, ok := ratio(measureLatency, p99, flush, n); ok {
				goal(fmt.Sprintf("p99 at half load ÷ Kafka's at its half: acks=all, 1 KiB, flush %s, %d producers", flush, n), below, r, 1)
			}
		}
	}
	if f, ok := b.rows.Find(func(r report.Row) bool { return r.Kind == kindCopy }); ok {
		bare, _ := f.Median(megabytesPerSecond)
		for _, size := range b.sizes {
			for _, n := range b.plan.producers {
				if r, ok := find(measureProduce, tidemarkName, system.FlushNever, system.AcksAll, size, n); ok {
					m, _ := r.Median(megabytesPerSecond)
					goal(fmt.Sprintf("MB/s ÷ bare copy's: acks=all, flush Never, %d bytes, %d producers", size, n), "", m/bare, 0.5)
				}
			}
		}
	}
	for _, f := range b.rows {
		if f.Kind != kindGathered {
			continue
		}
		if r, ok := find(measureProduce, tidemarkName, system.FlushEveryBatch, system.AcksAll, f.Size, f.Producers); ok {
			m, _ := r.Median(recordsPerSecond)
			w, _ := f.Median(recordsPerSecond)
			goal(fmt.Sprintf("records/s ÷ (fsyncs/s of three files at once × gathered batch): acks=all, EveryBatch, %d bytes, %d producers", f.Size, f.Producers), "", m/w, 1)
		}
	}
	for note, limit := range map[string]float64{"largest server, idle": 64, "largest server, at most in any case": 256} {
		if r, ok := b.rows.Find(func(r report.Row) bool { return r.Kind == measureMemory && r.System == tidemarkName && r.Note == note }); ok {
			m, _ := r.Median(residentMiB)
			goal("resident MiB: "+note, below, m, limit)
		}
	}
}
