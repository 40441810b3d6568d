package log

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

var topicID = epoch.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func config() Config { return Config{Topic: "orders", TopicID: topicID} }

// smallSegments makes a log roll after about n of the batches that one makes.
func smallSegments(n int) Config {
	c := config()
	c.SegmentBytes = int64(n * len(one(0)))
	c.IndexIntervalBytes = len(one(0))
	return c
}

const dataDir = "/data"

func newMem(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	if err := m.MkdirAll(dataDir); err != nil {
		t.Fatal(err)
	}
	return m
}

func open(t testing.TB, fsys vfs.FS, cfg Config, clean bool) (*Log, Recovery) {
	t.Helper()
	l, r, err := Open(fsys, dataDir, cfg, clean, logr.Discard())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l, r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// one is a batch of one record whose value is four digits and whose timestamp is
// 1000 ms more.
func one(i int) batch.Batch { return oneAt(i, int64(1000+i)) }

func oneAt(i int, ts int64) batch.Batch {
	return batch.NewBuilder().Record(ts, nil, fmt.Appendf(nil, "%04d", i)).Build()
}

// many is a batch of records from i on.
func many(i, n int) batch.Batch {
	w := batch.NewBuilder()
	for j := range n {
		w.Record(int64(1000+i+j), nil, fmt.Appendf(nil, "%04d", i+j))
	}
	return w.Build()
}

func appendOne(t testing.TB, l *Log, e epoch.LeaderEpoch, ids ...int) {
	t.Helper()
	for _, i := range ids {
		if _, err := l.Append(e, []batch.Batch{one(i)}); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// fetched is a batch as a leader would send it.
func fetched(b batch.Batch, base epoch.Offset, e epoch.LeaderEpoch) []byte {
	b.SetBaseOffset(base)
	b.SetLeaderEpoch(e)
	return b
}

// readAll reads the log from its start to its end.
func readAll(t testing.TB, l *Log) []byte {
	t.Helper()
	var out []byte
	for from := l.StartOffset(); from < l.EndOffset(); {
		b, err := l.Read(from, l.EndOffset(), 1<<20, true)
		if err != nil || len(b) == 0 {
			t.Fatalf("read at %d: %d bytes, %v", from, len(b), err)
		}
		out = append(out, b...)
		from = lastOf(t, b).NextOffset()
	}
	return out
}

func lastOf(t testing.TB, b []byte) (last batch.Batch) {
	t.Helper()
	for len(b) > 0 {
		var err error
		if last, b, err = batch.Next(b); err != nil {
			t.Fatalf("read gave a partial batch: %v", err)
		}
		must(t, last.CheckCRC())
	}
	return last
}

// records prints what a log holds as "offset/epoch=value …".
func records(t testing.TB, l *Log) string {
	t.Helper()
	return printRecords(t, readAll(t, l))
}

func printRecords(t testing.TB, b []byte) string {
	t.Helper()
	var out []string
	for len(b) > 0 {
		bt, rest, err := batch.Next(b)
		must(t, err)
		for r, err := range batch.Records(bt) {
			must(t, err)
			out = append(out, fmt.Sprintf("%d/%d=%s", r.Offset, bt.LeaderEpoch(), r.Value))
		}
		b = rest
	}
	return strings.Join(out, " ")
}

// numbered is what records gives for records 0 … n-1 at their offsets in epoch e.
func numbered(from, to int, e int) string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%d/%d=%04d", i, e, i))
	}
	return strings.Join(out, " ")
}

func files(t testing.TB, fsys vfs.FS, suffix string) []string {
	t.Helper()
	names, err := fsys.List(dataDir + "/orders-0")
	must(t, err)
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
}

func content(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	must(t, err)
	return b
}

func overwrite(t testing.TB, fsys vfs.FS, name string, data []byte) {
	t.Helper()
	must(t, vfs.WriteFile(fsys, name, data))
}

func in(name string) string { return dataDir + "/orders-0/" + name }

func wantCache(t testing.TB, l *Log, want string) {
	t.Helper()
	if got := l.EpochCache().String(); got != want {
		t.Fatalf("epoch cache %s, want %s", got, want)
	}
}

func wantOffsets(t testing.TB, l *Log, start, end epoch.Offset) {
	t.Helper()
	if l.StartOffset() != start || l.EndOffset() != end {
		t.Fatalf("log is [%d, %d), want [%d, %d)", l.StartOffset(), l.EndOffset(), start, end)
	}
}

func quiet() logr.Logger { return logr.Discard() }
