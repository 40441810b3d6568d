package node

import (
	"bytes"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// send produces one batch and waits until it is committed.
func (p *proc) send(b []byte, appendTime bool) Produced {
	p.w.t.Helper()
	out := Produced{Err: errWaiting}
	p.n.Produce([]Produce{{Batch: b, AppendTime: appendTime, Acks: core.AcksAll, Timeout: time.Hour, Done: func(r Produced) { out = r }}})
	p.w.run("a batch to be committed", func() bool { return out.Err == nil })
	return out
}

func (w *world) wall() int64 { return w.now.Milliseconds() }

func (w *world) pass(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.step()
	}
}

func startAll(t *testing.T, w *world) *proc {
	t.Helper()
	ids := make([]epoch.ReplicaID, 0, len(w.procs))
	for _, p := range w.procs {
		must(t, p.start())
		ids = append(ids, p.id)
	}
	w.run("all in sync", w.inSync(ids...))
	w.run("a leader that serves", func() bool {
		return w.record.Record.Leader >= 0 && w.procs[w.record.Record.Leader].n.View().Role == core.Leader
	})
	return w.procs[w.record.Record.Leader]
}

func everything(t *testing.T, l *log.Log) []byte {
	t.Helper()
	b, err := l.Read(l.StartOffset(), l.EndOffset(), 1<<20, true)
	must(t, err)
	return b
}

// With LogAppendTime the leader's time is in the batch and in the answer, a batch that is
// sent again is answered with that of its first copy, followers write what they get, and a
// search by time finds it: in memory, and by the index after a start.
func TestTheTimeOfTheAppendIsTheRecords(t *testing.T) {
	w := newWorld(t, 2, 2, nil)
	p := startAll(t, w)
	const clients = int64(5) // the client's clock is far behind
	first := func(sequence int32) []byte {
		return batch.NewBuilder().Producer(7, 0, sequence).Record(clients, []byte("k"), []byte("v")).Record(clients+1, nil, nil).Build()
	}
	var times []int64
	for i := range 3 {
		w.pass(time.Minute)
		before := w.wall()
		r := p.send(first(int32(2*i)), true)
		if r.AppendTime != before || r.BaseOffset != epoch.Offset(2*i) {
			t.Fatalf("answered %+v, want the time %d", r, before)
		}
		times = append(times, r.AppendTime)
	}
	w.pass(time.Minute)
	if r := p.send(first(2), true); r.AppendTime != times[1] || r.BaseOffset != 2 {
		t.Errorf("sent again, it is answered %+v, want the time %d of the first copy", r, times[1])
	}
	if r := p.send(first(6), false); r.AppendTime != batch.NoTimestamp {
		t.Errorf("with the client's time, the answer tells %d", r.AppendTime)
	}
	search := func(when string) {
		t.Helper()
		for _, q := range w.procs {
			for i, ts := range times {
				if off, at, found, err := q.n.Log().OffsetForTimestamp(ts, q.n.Log().EndOffset()); off != epoch.Offset(2*i) || at != ts || !found || err != nil {
					t.Errorf("%s, replica %d finds %d as of %d at %d (%v, %v), want offset %d", when, q.id, ts, at, off, found, err, 2*i)
				}
			}
			if _, at, _, err := q.n.Log().MaxTimestamp(q.n.Log().EndOffset()); at != times[2] || err != nil {
				t.Errorf("%s, replica %d has %d as its greatest time (%v), want %d", when, q.id, at, err, times[2])
			}
		}
	}
	search("while it runs")
	if !bytes.Equal(everything(t, w.procs[0].n.Log()), everything(t, w.procs[1].n.Log())) {
		t.Error("the replicas hold different bytes")
	}
	for rest := everything(t, p.n.Log()); len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		must(t, err)
		must(t, b.CheckCRC())
		if b.LogAppendTime() != (b.BaseSequence() < 6) {
			t.Errorf("the batch at %d: log append time is %v", b.BaseOffset(), b.LogAppendTime())
		}
		rest = tail
	}
	for _, q := range w.procs {
		must(t, q.stop())
	}
	startAll(t, w)
	search("after a start")
}

// What the log keeps to follows the settings while it is open.
func TestTheLogFollowsChangedSettings(t *testing.T) {
	w := newWorld(t, 2, 2, func(s *Settings) { s.SegmentAge = time.Minute })
	p := startAll(t, w)
	configure := func(change func(*Settings)) {
		change(&w.settings)
		for _, q := range w.procs {
			q.n.Configure(w.settings)
		}
	}
	at := func(ts time.Duration) []byte {
		return batch.NewBuilder().Producer(3, 0, 0).Record(ts.Milliseconds(), nil, bytes.Repeat([]byte("v"), 100)).Build()
	}
	plain := func(ts time.Duration) {
		t.Helper()
		p.send(batch.NewBuilder().Record(ts.Milliseconds(), nil, bytes.Repeat([]byte("v"), 100)).Build(), false)
	}
	segments := func(what string, want int) {
		t.Helper()
		w.run(what, func() bool {
			for _, q := range w.procs {
				if len(segmentFiles(t, q.disk)) != want {
					return false
				}
			}
			return true
		})
	}
	begun := w.now
	plain(begun)
	plain(begun + 59*time.Second)
	segments("one segment, of less than a minute", 1)
	configure(func(s *Settings) { s.SegmentAge = 30 * time.Second })
	plain(begun + 59*time.Second)
	segments("a segment that is too old is closed on both", 2)
	configure(func(s *Settings) { s.SegmentBytes = 1000 })
	for range 10 {
		plain(begun + 60*time.Second)
	}
	segments("small segments", 4)

	configure(func(s *Settings) { s.RetentionBytes = 1000 })
	w.run("retention by size", func() bool { return p.n.Log().Size() < 2000 && p.n.Log().StartOffset() > 0 })
	w.run("the follower to take the start over", func() bool { return w.procs[1-p.id].n.Log().StartOffset() == p.n.Log().StartOffset() })
	end := p.n.Log().EndOffset()
	configure(func(s *Settings) { s.Retention = time.Minute })
	w.pass(3 * time.Minute)
	if a, b := w.procs[0].n.Log().StartOffset(), w.procs[1].n.Log().StartOffset(); a != end || b != end {
		t.Errorf("the logs begin at %d and %d, and everything below %d is too old", a, b, end)
	}

	p.send(at(w.now), false)
	configure(func(s *Settings) { s.ProducerExpiry = 10 * time.Minute })
	known := func() int { return w.procs[0].n.Log().Producers().Len() + w.procs[1].n.Log().Producers().Len() }
	w.pass(8 * time.Minute)
	if known() != 2 {
		t.Errorf("after 8 minutes %d replicas know the producer", known())
	}
	w.pass(4 * time.Minute) // it is looked once a minute, and the first look begins the count
	if known() != 0 {
		t.Errorf("after 12 minutes %d replicas know the producer", known())
	}
}

// segmentFiles are the names of a replica's segments.
func segmentFiles(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	all, err := fs.List("/data/orders-0")
	must(t, err)
	for _, name := range all {
		if len(name) == 24 && name[20:] == ".log" {
			names = append(names, name)
		}
	}
	return names
}
