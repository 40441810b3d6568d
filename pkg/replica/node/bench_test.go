package node

import (
	"fmt"
	"testing"
)

func benchWorld(b *testing.B, edit func(*Settings)) *world {
	b.Helper()
	w := newWorld(b, 3, 2, edit)
	for _, p := range w.procs {
		if err := p.start(); err != nil {
			b.Fatal(err)
		}
		w.step()
	}
	w.run("all in sync", w.inSync(0, 1, 2))
	return w
}

// 50 ms of three replicas at rest: three ticks, three views of the record, two fetches.
func BenchmarkIdleStep(b *testing.B) {
	w := benchWorld(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		w.step()
	}
}

// One record with acks=all on three replicas, until it is committed.
func BenchmarkProduceToAll(b *testing.B) {
	for name, edit := range map[string]func(*Settings){"never": nil, "everyBatch": everyBatch} {
		b.Run(name, func(b *testing.B) {
			w := benchWorld(b, edit)
			leader := w.procs[w.record.Record.Leader]
			b.ReportAllocs()
			for b.Loop() {
				r := leader.produce("value")
				w.run("the commit", func() bool { return r.Err == nil })
			}
		})
	}
}

// A kill and a start until it leads, on a log of so many records.
func BenchmarkStart(b *testing.B) {
	for _, records := range []int{0, 50} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			w := newWorld(b, 1, 1, func(s *Settings) { s.SegmentBytes = 1000 })
			p := w.procs[0]
			if err := p.start(); err != nil {
				b.Fatal(err)
			}
			w.run("it to lead", w.leads(0))
			for range records {
				r := p.produce("value")
				w.run("the commit", func() bool { return r.Err == nil })
			}
			b.ReportAllocs()
			for b.Loop() {
				p.kill()
				if err := p.start(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
