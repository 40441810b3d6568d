package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// metric is the sum of a metric of one replica.
func (m *member) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := m.cfg.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, x := range f.GetMetric() {
				sum += x.GetCounter().GetValue() + x.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func (m *member) logBytes(t *testing.T) (sum int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(m.cfg.DataDir, "orders-0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			sum += st.Size()
		}
	}
	return sum
}

// The policy is changed while the replicas run. Two of them compact, a consumer finds the
// last record of every key, the third joins and gets what is left, and records without a key
// are refused.
func TestCompactionOfALogInUse(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	compacting := make(chan struct{})
	for _, m := range c.members {
		m.cfg.Registry = prometheus.NewRegistry()
		s := &m.cfg.Settings
		s.SegmentBytes, s.FlushEveryBatch = 4000, true
		later := *s
		later.Cleanup = node.CleanupCompact
		m.cfg.WatchSpec = func(ctx context.Context, onChange func(Spec)) {
			select {
			case <-compacting:
				onChange(Spec{Settings: later})
			case <-ctx.Done():
			}
		}
	}
	c.start(0, 1)
	c.await("two replicas in sync", func(r epoch.Record) bool { return len(r.ISR) >= 2 && r.InSync(0) && r.InSync(1) && r.Progress != nil })
	client := c.producer()
	want := map[string]string{}
	keyed := func(key, value string) {
		t.Helper()
		want[key] = value
		if err := client.ProduceSync(t.Context(), kgo.KeyStringRecord(key, value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		keyed(fmt.Sprint("key", i%10), fmt.Sprint("value", i))
	}
	before := c.members[0].logBytes(t)
	close(compacting)
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for i := range 2 {
		for c.members[i].metric(t, "tidemark_log_compaction_last_run_timestamp_seconds") == 0 {
			select {
			case <-ticker.C:
			case <-deadline:
				t.Fatalf("replica %d has not compacted its log of %d bytes", i, before)
			}
		}
		if freed, left := c.members[i].metric(t, "tidemark_log_compaction_freed_bytes_total"), c.members[i].logBytes(t); freed < float64(before)/2 || left > before/2 {
			t.Errorf("replica %d has freed %.0f of %d bytes, and has %d", i, freed, before, left)
		}
	}
	err := client.ProduceSync(t.Context(), kgo.StringRecord("without key")).FirstErr()
	if !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record without key: %v, want INVALID_RECORD", err)
	}
	c.start(2)
	c.awaitInSync()
	for id := range c.members { // and whoever leads
		keyed("end", fmt.Sprint(id))
		got := map[string]string{}
		reader := c.producer()
		for got["end"] != fmt.Sprint(id) {
			fetches := reader.PollFetches(t.Context())
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			fetches.EachRecord(func(r *kgo.Record) { got[string(r.Key)] = string(r.Value) })
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("read %v\nwant %v", got, want)
		}
		leader := int(c.awaitInSync().Leader)
		c.stop(leader)
		c.members[leader].cfg.Registry = prometheus.NewRegistry()
		c.start(leader)
		c.awaitInSync()
	}
	if left := c.members[2].logBytes(t); left > before/2 {
		t.Errorf("the replica that joined late has %d bytes, of %d before the compaction", left, before)
	}
}

func TestPacerKeepsToItsRateAndEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newPacer(ctx, 1000)
	if err := p.pace(1); err != nil {
		t.Fatal(err)
	}
	if p.next.IsZero() {
		t.Error("a byte costs no time")
	}
	if err := p.pace(1_000_000); err != nil { // a quarter of an hour for who comes next
		t.Fatal(err)
	}
	if until := time.Until(p.next); until < 10*time.Minute {
		t.Errorf("a megabyte at a kilobyte a second is worked off in %s", until)
	}
	cancel()
	if err := p.pace(1); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was ended: %v", err)
	}
}
