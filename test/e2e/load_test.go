//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

// output runs a program and returns what it printed, whatever became of it: for explanations and cleaning up, which go on
// when the test has ended.
func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, _ := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out)
}

// load writes to a partition and reads along, until it is finished.
type load struct {
	partition partition
	brokers   []string
	history   *history.Log
	prober    *prober.Prober
	stopRead  context.CancelFunc
	seen      func() []history.Record
	rows      []*row
	// end is the offset after the last record that was acknowledged, once finished.
	end int64
}

// startLoad returns once the first record has been acknowledged. Five requests are under way at a time, unless the options
// say otherwise: what a retry could write twice, or in another order.
func startLoad(t testing.TB, p partition, options ...kgo.Opt) *load {
	t.Helper()
	l := &load{partition: p, history: history.NewLog()}
	l.start(t, "probe", options...)
	return l
}

// start begins to write as a producer of that name, which must be a new one for a load that has been finished and goes on:
// what the earlier one has written counts to the end.
func (l *load) start(t testing.TB, producer string, options ...kgo.Opt) {
	t.Helper()
	l.brokers = l.partition.brokers(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	l.stopRead = cancel
	var err error
	if l.seen, err = prober.Follow(ctx, l.brokers, l.partition.name); err != nil {
		t.Fatal(err)
	}
	if l.prober, err = prober.Start(prober.Config{Brokers: l.brokers, Topic: l.partition.name, Name: producer, History: l.history, Options: options}); err != nil {
		t.Fatal(err)
	}
	writes := l.prober
	t.Cleanup(func() { // a test that has finished has stopped it; a second time does nothing
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = writes.Stop(ctx)
	})
	l.await(t, time.Now())
}

// await waits until a record that was sent after the given moment has been acknowledged.
func (l *load) await(t testing.TB, after time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), max(0, time.Until(after))+2*time.Minute)
	defer cancel()
	if err := l.prober.Await(ctx, after); err != nil {
		t.Fatal(err)
	}
}

// report logs and returns the longest time without an acknowledgement that ended after a fault. What was under way at the
// fault still arrives, so the outage that it causes begins a little later; that of a switchover begins when the leader
// hands over.
func (l *load) report(t testing.TB, what string, fault time.Time) prober.Gap {
	t.Helper()
	gap := l.prober.Longest(fault)
	r := &row{test: t.Name(), what: what, gap: gap, measured: true}
	l.rows, table = append(l.rows, r), append(table, r)
	t.Logf("%s: nothing acknowledged for %d ms, until %d ms after it", what, gap.Length().Milliseconds(), gap.To.Sub(fault).Milliseconds())
	return gap
}

// tell adds a case to the table that is shown by what is in the log at the end.
func (l *load) tell(t testing.TB, what string) {
	r := &row{test: t.Name(), what: what}
	l.rows, table = append(l.rows, r), append(table, r)
}

// finish stops writing, reads the log from start to end and checks it. No record may have failed: every fault here is one
// that a producer's retries absorb.
func (l *load) finish(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	if l.end, err = l.prober.Stop(ctx); err != nil {
		t.Errorf("a producer that retries must not see an error: %v", err)
	}
	final, err := prober.ReadAll(ctx, l.brokers, l.partition.name, l.end)
	if err != nil {
		t.Fatal(err)
	}
	l.stopRead()
	verdict := l.history.Check(final, l.seen())
	for _, r := range l.rows {
		r.verdict = &verdict
	}
	t.Log(verdict)
	if err := verdict.Err(); err != nil {
		t.Error(err)
	}
}
