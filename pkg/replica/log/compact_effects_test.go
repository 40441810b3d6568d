package log

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// What compaction means for the rest of the log: truncation, followers, timestamps,
// retention, damage, a full disk.

func TestSwapOfSegmentsThatHaveChangedIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Log) error{
		"truncated":           func(l *Log) error { return l.TruncateTo(3) },
		"truncated behind it": func(l *Log) error { return l.TruncateTo(5) },
		"emptied":             func(l *Log) error { return l.TruncateFullyAndStartAt(0) },
		"deleted":             func(l *Log) error { return l.SetStartOffset(5) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := newMem(t)
			l, _ := open(t, mem, config(), false)
			write(t, l, 1, kv("a=1"), kv("b=1"), kv("a=2"), kv("b=2"))
			seal(t, l, 1)
			write(t, l, 1, kv("c=2"))
			_, err := l.Flush()
			must(t, err)
			r := rules(l)
			c, _ := l.PlanCompaction(r)
			must(t, c.Step(unpaced))
			must(t, change(l))
			want := shape(t, readAll(t, l))
			if _, err := l.SwapCompacted(c); !errors.Is(err, ErrCompactionStale) {
				t.Errorf("swapped: %v", err)
			}
			c.Close()
			wantShape(t, l, want)
			if left := files(t, mem, suffixCleaned); len(left) > 0 || l.CleanedOffset() > l.EndOffset() {
				t.Errorf("left behind: %s, compacted up to %d", left, l.CleanedOffset())
			}
		})
	}
}

func TestTruncationLowersWhatIsCompacted(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	write(t, l, 1, kv("a=1"), kv("a=2"), kv("b=1"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	must(t, l.TruncateTo(1)) // after an unclean election
	wantShape(t, l, "0-0/1[ ]")
	if l.CleanedOffset() != 1 {
		t.Errorf("compacted up to %d, the log ends at 1", l.CleanedOffset())
	}
	must(t, l.TruncateFullyAndStartAt(0))
	if l.CleanedOffset() > 0 {
		t.Errorf("compacted up to %d, the log is empty", l.CleanedOffset())
	}
}

func TestTruncationInsideOfAFillerTakesItWhole(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("b=1"), kv("a=1"), kv("a=2"), kv("a=3"), kv("a=4"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	wantShape(t, l, "0-0/1[ 0:b=1 ] 1-3/1[ ] 4-4/1[ 4:a=4 ] 5-5/1[ 5:end= ]")
	must(t, l.TruncateTo(2))
	wantOffsets(t, l, 0, 1)
}

func TestAFollowersEndInsideOfAFiller(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"), kv("a=2", "a=3"), kv("a=4"), kv("a=5", "b=1"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	follower, _ := open(t, newMem(t), config(), false)
	_, err := follower.AppendFetched(fetched(kv("a=1").Build(), 0, 1), 1)
	must(t, err)
	follow(t, follower, l)
	wantShape(t, follower, "0-0/1[ 0:a=1 ] 1-3/1[ ] 4-5/1[ 4:a=5 5:b=1 ] 6-6/1[ 6:end= ]")
	// Where records are, a batch is given whole.
	if b, err := l.ReadForFollower(5, l.EndOffset(), 1<<20); err != nil || batch.Batch(b).BaseOffset() != 4 {
		t.Errorf("read at 5: %s, %v", shape(t, b), err)
	}
}

// follow copies what a follower of the same history lacks.
func follow(t testing.TB, follower, leader *Log) {
	t.Helper()
	for follower.EndOffset() < leader.EndOffset() {
		b, err := leader.ReadForFollower(follower.EndOffset(), leader.EndOffset(), 300)
		must(t, err)
		if n, err := follower.AppendFetched(b, leader.EpochCache().Latest()); err != nil || n == 0 {
			t.Fatalf("at %d: %d batches taken of %s: %v", follower.EndOffset(), n, shape(t, b), err)
		}
	}
}

func TestTimestampsOfACompactedLog(t *testing.T) {
	mem := newMem(t)
	cfg := config()
	cfg.IndexIntervalBytes = 10
	l, _ := open(t, mem, cfg, false)
	at := func(ts int64, key string) *batch.Builder {
		return batch.NewBuilder().Producer(ts, 0, 0).Record(ts, []byte(key), []byte("v"))
	}
	write(t, l, 1, at(5000, "a"), at(9000, "b"), at(7000, "a"), at(8000, "c"), at(6000, "b"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	for range 2 {
		if off, ts, found, err := l.MaxTimestamp(5); off != 3 || ts != 8000 || !found || err != nil {
			t.Errorf("greatest timestamp %d at offset %d (%t, %v), want 8000 at 3: what brought 9000 is gone", ts, off, found, err)
		}
		for ts, want := range map[int64]epoch.Offset{0: 2, 7000: 2, 7001: 3, 8000: 3} {
			if off, _, found, err := l.OffsetForTimestamp(ts, 5); off != want || !found || err != nil {
				t.Errorf("first record since %d: offset %d (%t, %v), want %d", ts, off, found, err, want)
			}
		}
		if _, _, found, err := l.OffsetForTimestamp(8001, 5); found || err != nil {
			t.Errorf("a record was found that is gone: %v", err)
		}
		must(t, l.Close())
		l, _ = open(t, mem, cfg, false)
	}
}

func TestRetentionOfACompactedLog(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"), kv("a=2"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	l.cfg.Retention = time.Hour
	start, err := l.ApplyRetention(time.UnixMilli(1000).Add(2*time.Hour), l.EndOffset())
	if err != nil || start != 3 {
		t.Errorf("the log starts at %d, %v", start, err)
	}
}

func TestDamageIsNotCompactedAway(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	write(t, l, 1, kv("a=1"), kv("b=1", "a=2"))
	seal(t, l, 1)
	_, err := l.Flush()
	must(t, err)
	name := in("00000000000000000000.log")
	data := content(t, mem, name)
	f, err := mem.Open(name)
	must(t, err)
	_, err = f.WriteVec([][]byte{{data[len(data)-2] ^ 1}}, int64(len(data)-2))
	must(t, err)
	c, _ := l.PlanCompaction(rules(l))
	defer c.Close()
	if err := c.Step(unpaced); !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("damage found while compacting: %v", err)
	}
}

func TestAFullDiskEndsARunAndNothingElse(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	write(t, l, 1, kv("a=1"), kv("b=1", "a=2"))
	seal(t, l, 1)
	_, err := l.Flush()
	must(t, err)
	want := shape(t, readAll(t, l))
	c, _ := l.PlanCompaction(rules(l))
	mem.SetCapacity(mem.Used() + 70)
	if err := c.Step(unpaced); !errors.Is(err, ErrNoSpace) {
		t.Errorf("compacted on a full disk: %v", err)
	}
	c.Close()
	mem.SetCapacity(-1)
	if left := files(t, mem, suffixCleaned); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
	wantShape(t, l, want)
	write(t, l, 1, kv("z=1"))
	if !compact(t, l, rules(l)) {
		t.Error("the next run does nothing")
	}
}
