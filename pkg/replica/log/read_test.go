package log

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func TestRead(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	for i := 0; i < 30; i += 3 {
		_, err := l.Append(0, []batch.Batch{many(i, 3)})
		must(t, err)
	}
	must(t, l.SetStartOffset(4))
	size := len(many(0, 3))
	for _, tc := range []struct {
		name        string
		from, limit epoch.Offset
		max         int
		atLeastOne  bool
		want        string
		err         error
	}{
		{"begins with the batch around from", 4, 30, 1, true, numbered(3, 6, 0), nil},
		{"exactly two", 6, 30, 2 * size, false, numbered(6, 12, 0), nil},
		{"two and a bit", 6, 30, 3*size - 1, false, numbered(6, 12, 0), nil},
		{"nothing fits", 6, 30, size - 1, false, "", nil},
		{"at least one", 6, 30, 0, true, numbered(6, 9, 0), nil},
		{"up to the limit", 6, 12, 1 << 20, true, numbered(6, 12, 0), nil},
		{"limit inside of a batch", 6, 11, 1 << 20, true, numbered(6, 9, 0), nil},
		{"limit inside of the first", 6, 8, 1 << 20, true, "", nil},
		{"at the limit", 12, 12, 1 << 20, true, "", nil},
		{"limit behind the end", 27, 1000, 1 << 20, true, numbered(27, 30, 0), nil},
		{"at the end", 30, 1000, 1 << 20, true, "", nil},
		{"behind the end", 31, 1000, 1 << 20, true, "", ErrOffsetOutOfRange},
		{"below the start", 3, 1000, 1 << 20, true, "", ErrOffsetOutOfRange},
		{"negative", -1, 1000, 1 << 20, true, "", ErrOffsetOutOfRange},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := l.Read(tc.from, tc.limit, tc.max, tc.atLeastOne)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v", err)
			}
			if got := printRecords(t, b); got != tc.want {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadFindsEveryOffsetThroughTheIndex(t *testing.T) {
	m := newMem(t)
	cfg := smallSegments(20)
	cfg.IndexIntervalBytes = 200
	l, _ := open(t, m, cfg, true)
	appendOne(t, l, 0, upTo(100)...)
	check := func(l *Log) {
		t.Helper()
		for i := range 100 {
			b, err := l.Read(epoch.Offset(i), 100, 1, true)
			must(t, err)
			if got := printRecords(t, b); got != numbered(i, i+1, 0) {
				t.Fatalf("read at %d: %q", i, got)
			}
			id, ok, err := l.BatchEndingAt(epoch.Offset(i))
			if !ok || err != nil || id.LastOffset != epoch.Offset(i) || id.CRC != one(i).CRC() {
				t.Fatalf("batch ending at %d: %+v %v %v", i, id, ok, err)
			}
			off, at, found, err := l.OffsetForTimestamp(int64(1000+i), 100)
			if off != epoch.Offset(i) || at != int64(1000+i) || !found || err != nil {
				t.Fatalf("timestamp %d: %d %d %v %v", 1000+i, off, at, found, err)
			}
		}
	}
	check(l)
	must(t, l.Close())
	l, _ = open(t, m, cfg, true)
	check(l)
	// An index that is gone, or lies, costs time only.
	for _, name := range files(t, m, suffixIndex) {
		must(t, m.Remove(in(name)))
	}
	for _, name := range files(t, m, suffixTimeIndex) {
		must(t, m.Remove(in(name)))
	}
	check(l)
	for _, s := range l.segments[:3] {
		overwrite(t, m, s.stem+suffixIndex, []byte(unhex("00000000 00000007 00000001 00000019")))
	}
	check(l)
}

func TestBatchEndingAt(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	_, err := l.Append(2, []batch.Batch{many(0, 3), many(3, 2)})
	must(t, err)
	for o, want := range map[epoch.Offset]bool{-1: false, 0: false, 1: false, 2: true, 3: false, 4: true, 5: false, 99: false} {
		id, ok, err := l.BatchEndingAt(o)
		if ok != want || err != nil || ok && (id.LastOffset != o || id.Epoch != 2) {
			t.Errorf("batch ending at %d: %+v %v %v", o, id, ok, err)
		}
	}
}

func TestTimestamps(t *testing.T) {
	l, _ := open(t, newMem(t), smallSegments(3), true)
	if _, _, found, err := l.MaxTimestamp(0); found || err != nil {
		t.Fatalf("empty log: %v %v", found, err)
	}
	// Timestamps need not ascend.
	for i, ts := range []int64{100, 300, 200, 50, 60, 300, 400, 10, batch.NoTimestamp} {
		_, err := l.Append(0, []batch.Batch{oneAt(i, ts)})
		must(t, err)
	}
	for _, tc := range []struct {
		ts    int64
		limit epoch.Offset
		off   epoch.Offset
		at    int64
	}{
		{0, 99, 0, 100}, {100, 99, 0, 100}, {101, 99, 1, 300}, {300, 99, 1, 300}, {301, 99, 6, 400}, {400, 7, 6, 400},
		{301, 6, -1, -1}, {401, 99, -1, -1}, {0, 0, -1, -1},
	} {
		off, at, found, err := l.OffsetForTimestamp(tc.ts, tc.limit)
		if off != tc.off && found || found != (tc.off >= 0) || at != tc.at && found || err != nil {
			t.Errorf("timestamp %d below %d: %d at %d (%v, %v), want %d at %d", tc.ts, tc.limit, at, off, found, err, tc.at, tc.off)
		}
	}
	for _, tc := range []struct {
		limit epoch.Offset
		off   epoch.Offset
		at    int64
	}{{99, 6, 400}, {7, 6, 400}, {6, 1, 300}, {2, 1, 300}, {1, 0, 100}} {
		off, at, found, err := l.MaxTimestamp(tc.limit)
		if off != tc.off || at != tc.at || !found || err != nil {
			t.Errorf("greatest below %d: %d at %d (%v, %v), want %d at %d", tc.limit, at, off, found, err, tc.at, tc.off)
		}
	}
	must(t, l.SetStartOffset(2))
	if off, _, _, err := l.OffsetForTimestamp(0, 99); off != 2 || err != nil {
		t.Errorf("first record after the start moved: %d, %v", off, err)
	}
	if off, at, _, err := l.MaxTimestamp(6); off != 5 || at != 300 || err != nil {
		t.Errorf("greatest after the start moved: %d at %d, %v", at, off, err)
	}
}

func TestSetStartOffset(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	for i := range 9 {
		appendOne(t, l, epoch.LeaderEpoch(i/4), i)
	}
	for _, tc := range []struct {
		to, want epoch.Offset
		err      error
		segments int
		cache    string
	}{
		{10, 0, ErrOffsetOutOfRange, 3, "{0:0,1:4,2:8}"},
		{2, 2, nil, 3, "{0:2,1:4,2:8}"},
		{1, 2, nil, 3, "{0:2,1:4,2:8}"},
		{5, 5, nil, 2, "{1:5,2:8}"},
		{6, 6, nil, 1, "{1:6,2:8}"},
		{9, 9, nil, 1, "{2:9}"},
	} {
		if err := l.SetStartOffset(tc.to); !errors.Is(err, tc.err) {
			t.Fatalf("to %d: %v", tc.to, err)
		}
		wantOffsets(t, l, tc.want, 9)
		wantCache(t, l, tc.cache)
		if got := len(files(t, m, suffixLog)); got != tc.segments {
			t.Fatalf("to %d: %d segments, want %d", tc.to, got, tc.segments)
		}
		after, _ := open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
		wantOffsets(t, after, tc.want, 9)
		wantCache(t, after, tc.cache) // L10: the newest epoch stays, even at the end
	}
	if _, ok := l.LastBatch(); ok {
		t.Fatal("an empty log has a last batch")
	}
	appendOne(t, l, 2, 9)
	wantOffsets(t, l, 9, 10)
}

func TestRetention(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	size := int64(len(one(0)))
	for _, tc := range []struct {
		name  string
		bytes int64
		age   time.Duration
		hw    epoch.Offset
		start epoch.Offset
	}{
		{"no limits", 0, 0, 9, 0},
		{"size", 4 * size, 0, 9, 3},
		{"size, to the byte", 3 * size, 0, 9, 6},
		{"size, nothing whole too much", 7 * size, 0, 9, 0},
		{"age", 0, 5 * time.Second, 9, 3},
		{"age of everything: the active segment is rolled", 0, time.Millisecond, 9, 9},
		{"not above the high watermark (KAFKA-5634)", 0, time.Millisecond, 5, 3},
		{"high watermark at the end of a segment", 0, time.Millisecond, 6, 6},
		{"both", 3 * size, 5 * time.Second, 9, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := smallSegments(3)
			cfg.RetentionBytes, cfg.Retention = tc.bytes, tc.age
			l, _ := open(t, newMem(t), cfg, true)
			for i := range 9 { // 9 s to 1 s old
				_, err := l.Append(0, []batch.Batch{oneAt(i, now.Add(time.Duration(i-9)*time.Second).UnixMilli())})
				must(t, err)
			}
			start, err := l.ApplyRetention(now, tc.hw)
			if start != tc.start || err != nil {
				t.Fatalf("start %d, %v; want %d", start, err, tc.start)
			}
			wantOffsets(t, l, tc.start, 9)
		})
	}
}

func TestRetentionByFileTimeWithoutTimestamps(t *testing.T) {
	cfg := smallSegments(1)
	cfg.Retention = time.Hour
	l, _ := open(t, newMem(t), cfg, true)
	for i := range 2 {
		_, err := l.Append(0, []batch.Batch{oneAt(i, batch.NoTimestamp)})
		must(t, err)
	}
	if start, err := l.ApplyRetention(time.Now(), 1); start != 0 || err != nil {
		t.Fatalf("new files: start %d, %v", start, err)
	}
	if start, err := l.ApplyRetention(time.Now().Add(2*time.Hour), 1); start != 1 || err != nil {
		t.Fatalf("old files: start %d, %v", start, err)
	}
}

// A62, A46, KAFKA-2477: readers run beside appends, rolls, truncations, flushes and
// removals. Every generation of the log writes its number as the epoch; a reader
// that asks again sees generations in offset order, whole batches, right checksums,
// and never an error other than out of range.
func TestReadersBesideTheAppender(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"Mem": newMem(t), "OS": nil} {
		t.Run(name, func(t *testing.T) {
			dir, generations := dataDir, 60
			if fsys == nil { // where every truncation waits for a disk
				fsys, dir, generations = vfs.OS{}, t.TempDir(), 20
			}
			l, _, err := Open(fsys, dir, smallSegments(5), false, quiet())
			must(t, err)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { readLoop(t, l, stop) })
			}
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if _, err := l.Flush(); err != nil {
							t.Errorf("flush: %v", err)
							return
						}
						if err := l.Checkpoint(l.EndOffset()); err != nil {
							t.Errorf("checkpoint: %v", err)
							return
						}
					}
				}
			})
			for gen := range generations {
				for i := range 8 {
					_, err := l.Append(epoch.LeaderEpoch(gen), []batch.Batch{one(gen), one(i)})
					must(t, err)
				}
				if gen%3 == 1 {
					must(t, l.TruncateTo(l.EndOffset()-7))
				}
				if gen%10 == 9 {
					must(t, l.SetStartOffset(l.EndOffset()-20))
				}
			}
			close(stop)
			wg.Wait()
			must(t, l.Close())
		})
	}
}

func readLoop(t *testing.T, l *Log, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		start, end := l.StartOffset(), l.EndOffset()
		from := start
		if end > start {
			from += epoch.Offset(n) % (end - start)
		}
		cacheBefore := l.EpochCache()
		b, err := l.Read(from, end, 500, true)
		if err != nil && !errors.Is(err, ErrOffsetOutOfRange) {
			t.Errorf("read at %d: %v", from, err)
			return
		}
		if err := checkRead(b, from, end); err != nil {
			t.Errorf("read at %d below %d, epochs %s: %v", from, end, cacheBefore, err)
			return
		}
		if _, _, err := l.BatchEndingAt(from); err != nil {
			t.Errorf("batch ending at %d: %v", from, err)
			return
		}
		if _, _, _, err := l.OffsetForTimestamp(1000+int64(n%60), end); err != nil {
			t.Errorf("timestamp: %v", err)
			return
		}
	}
}

func checkRead(b []byte, from, limit epoch.Offset) error {
	next, last := from, epoch.NoEpoch
	for len(b) > 0 {
		bt, rest, err := batch.Next(b)
		if err != nil {
			return err
		}
		if err := bt.CheckCRC(); err != nil {
			return err
		}
		if bt.BaseOffset() != next || bt.LastOffset() >= limit || bt.LeaderEpoch() < last {
			return fmt.Errorf("batch at %d of epoch %d where %d follows epoch %d", bt.BaseOffset(), bt.LeaderEpoch(), next, last)
		}
		next, last, b = bt.NextOffset(), bt.LeaderEpoch(), rest
	}
	return nil
}

// What was read just before a truncation is not given out: the reader is stopped
// between its read and its answer.
func TestReadAcrossTruncationGivesTheNewHistory(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	appendOne(t, l, 0, upTo(6)...)
	once := false
	m.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && !once {
			once = true
			must(t, l.TruncateTo(3))
			_, err := l.AppendFetched(fetched(many(50, 3), 3, 7), 7)
			must(t, err)
		}
		return nil
	})
	b, err := l.Read(3, 6, 1<<20, true)
	must(t, err)
	if got := printRecords(t, b); got != "3/7=0050 4/7=0051 5/7=0052" {
		t.Fatalf("got %q", got)
	}
}
