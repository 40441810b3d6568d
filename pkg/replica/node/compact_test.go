package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// compacting are settings under which a few records fill a segment.
func compacting(s *Settings) {
	s.Cleanup, s.SegmentBytes, s.FlushEveryBatch, s.DeleteRetention, s.MinDirtyPercent = CleanupCompact, 200, true, time.Second, 1
}

// put sends one record with a key; a value "" is a tombstone.
func (p *proc) put(key, value string) {
	p.w.t.Helper()
	r := batch.Record{Key: []byte(key), Value: []byte(value)}
	if value == "" {
		r.Value = nil
	}
	done := false
	p.n.Produce([]Produce{{Batch: batch.NewBuilder().Add(r).Build(), Acks: core.AcksAll, Timeout: time.Hour, Done: func(q Produced) {
		if done = true; q.Err != nil {
			p.w.t.Errorf("%s=%s: %v", key, value, q.Err)
		}
	}}})
	p.w.run("an answer for "+key, func() bool { return done })
}

func TestEveryReplicaCompactsItsOwnLog(t *testing.T) {
	w := newWorld(t, 3, 2, compacting)
	for _, p := range w.procs {
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}
	w.run("all in sync", w.inSync(0, 1, 2))
	p := w.procs[w.record.Record.Leader]
	for i := range 30 {
		p.put(fmt.Sprint("k", i%2), fmt.Sprint("v", i))
	}
	small := func() bool {
		return !slices.ContainsFunc(w.procs, func(p *proc) bool { return len(p.values()) > 6 })
	}
	w.run("every replica has compacted its log", small)
	for _, q := range w.procs {
		if got := q.values(); !slices.Contains(got, "v28") || !slices.Contains(got, "v29") || q.n.Compactions().Freed == 0 || q.n.Compactions().LastRun.IsZero() {
			t.Errorf("replica %d holds %v; %+v", q.id, got, q.n.Compactions())
		}
	}
	// Without the policy nothing is compacted any more, and retention counts again.
	s := w.settings
	s.Cleanup = CleanupDelete
	for _, q := range w.procs {
		q.n.Configure(s)
	}
	for i := range 30 {
		p.put("k0", fmt.Sprint("w", i))
	}
	end := w.now + time.Minute
	w.run("a minute", func() bool { return w.now > end })
	if got := p.values(); len(got) < 30 {
		t.Errorf("a log that is not compacted any more holds %v", got)
	}
}

func TestAReplicaThatIsAwayKeepsTombstones(t *testing.T) {
	w := newWorld(t, 3, 2, compacting)
	for _, p := range w.procs {
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}
	w.run("all in sync", w.inSync(0, 1, 2))
	p := w.procs[w.record.Record.Leader]
	p.put("deleted", "old")
	away := w.procs[(p.id+1)%3]
	w.run("all have it", func() bool { return away.n.Log().EndOffset() == 1 })
	away.kill()
	p.put("deleted", "")
	tombstone := func() bool {
		b, err := p.n.Log().Read(1, p.n.Log().EndOffset(), 1, true)
		return err == nil && batch.Batch(b).Count() == 1
	}
	more := func(rounds int) {
		for i := range rounds {
			for range 5 {
				p.put("k", fmt.Sprint(i))
			}
			end, runs := w.now+20*time.Second, p.n.Compactions().LastRun
			w.run("another compaction", func() bool { return w.now > end && p.n.Compactions().LastRun.After(runs) })
		}
	}
	more(4)
	if !tombstone() {
		t.Fatal("the tombstone is gone, and a replica has not seen it")
	}
	if err := away.start(); err != nil {
		t.Fatal(err)
	}
	w.run("all in sync again", w.inSync(0, 1, 2))
	more(3)
	if tombstone() {
		t.Error("everybody has seen the tombstone, and it is still there")
	}
	for _, q := range w.procs {
		if slices.Contains(q.values(), "old") {
			t.Errorf("replica %d holds what was deleted: %v", q.id, q.values())
		}
	}
}

// A replica has got the tombstone, and loses it with its machine before it is synced. What it was
// seen to have does not count while it is away.
func TestATombstoneThatIsLostWithItsMachineIsKeptForIt(t *testing.T) {
	w := newWorld(t, 3, 2, func(s *Settings) {
		compacting(s)
		s.FlushEveryBatch = false
	})
	p := startAll(t, w)
	p.put("deleted", "old")
	p.put("other", "1")
	w.pass(2 * time.Minute) // what is there is synced
	away := w.procs[(p.id+1)%3]
	p.put("deleted", "")
	w.run("all to have the tombstone", func() bool { return away.n.Log().EndOffset() == 3 })
	w.pass(time.Second) // and the record to say so
	away.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
	for i := range 6 {
		for range 5 {
			p.put("k", fmt.Sprint(i))
		}
		w.pass(90 * time.Second)
	}
	must(t, away.start())
	if got := away.n.Log().EndOffset(); got >= 3 {
		t.Fatalf("it came back with %d records: nothing is shown", got)
	}
	w.run("all in sync again", w.inSync(0, 1, 2))
	for i := range 4 {
		for range 5 {
			p.put("k", fmt.Sprint("again ", i))
		}
		w.pass(90 * time.Second)
	}
	for _, q := range w.procs {
		if q.n.Compactions().LastRun.IsZero() || slices.Contains(q.values(), "old") {
			t.Errorf("replica %d holds what was deleted: %v", q.id, q.values())
		}
	}
}

func TestOnlyTheDeletingPoliciesHaveRetention(t *testing.T) {
	s := Settings{RetentionBytes: 5, Retention: time.Hour}
	for policy, want := range map[CleanupPolicy]int64{CleanupDelete: 5, CleanupCompact: -1, CleanupCompactAndDelete: 5} {
		s.Cleanup = policy
		if bytes, age := s.retention(); bytes != want || (age > 0) != (want > 0) {
			t.Errorf("%s: %d bytes, %s", policy, bytes, age)
		}
	}
}
