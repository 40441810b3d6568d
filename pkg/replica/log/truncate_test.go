package log

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// TestTruncateToEveryOffset cuts a log of three segments at every offset, compares it
// with one that never had the rest, and appends behind the cut.
func TestTruncateToEveryOffset(t *testing.T) {
	write := func(l *Log, to int) {
		for i := range to {
			must(t, l.AssignEpoch(epoch.LeaderEpoch(i/2)))
			b := batch.NewBuilder().Producer(int64(i%2), 0, int32(i/2)).Record(int64(5000-i), nil, fmt.Appendf(nil, "%04d", i)).Build()
			_, err := l.Append(epoch.LeaderEpoch(i/2), []batch.Batch{b})
			must(t, err)
		}
	}
	for cut := range 9 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			m, fresh := newMem(t), newMem(t)
			l, _ := open(t, m, smallSegments(3), true)
			write(l, 8)
			_, err := l.Flush()
			must(t, err)
			must(t, l.Checkpoint(8))
			must(t, l.TruncateTo(epoch.Offset(cut)))
			want, _ := open(t, fresh, smallSegments(3), true)
			write(want, cut)
			same(t, l, want)
			appendOne(t, l, 9, 90, 91, 92, 93)
			appendOne(t, want, 9, 90, 91, 92, 93)
			same(t, l, want)
			// The cut is durable, what was appended since is not: that has to be looked
			// at after a crash, whatever the checkpoint said before the truncation.
			after, r := open(t, m.Crash(vfs.Crash{KeepNames: true}), smallSegments(3), false)
			if after.FlushedOffset() > epoch.Offset(cut) || after.EndOffset() > epoch.Offset(cut) {
				t.Fatalf("flushed %d, end %d after a crash, cut was at %d (%+v)", after.FlushedOffset(), after.EndOffset(), cut, r)
			}
			killed, _ := open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
			if killed.FlushedOffset() > epoch.Offset(cut) {
				t.Fatalf("flushed %d after a kill, cut was at %d: what was appended since counts as synced", killed.FlushedOffset(), cut)
			}
			must(t, l.Close())
			again, r := open(t, m, smallSegments(3), true)
			same(t, again, want)
			if hw := again.CheckpointedHighWatermark(); hw > epoch.Offset(cut) {
				t.Fatalf("high watermark %d after a restart: what was appended behind the cut at %d counts as committed", hw, cut)
			}
			if !r.Clean {
				t.Fatal("a closed log does not open clean")
			}
		})
	}
}

// same compares all that two logs can be asked.
func same(t *testing.T, got, want *Log) {
	t.Helper()
	wantOffsets(t, got, want.StartOffset(), want.EndOffset())
	wantCache(t, got, want.EpochCache().String())
	if g, w := records(t, got), records(t, want); g != w {
		t.Fatalf("holds %s\nwant  %s", g, w)
	}
	g, gok := got.LastBatch()
	w, wok := want.LastBatch()
	if g != w || gok != wok {
		t.Fatalf("last batch %+v, want %+v", g, w)
	}
	if g, w := dump(got.Producers()), dump(want.Producers()); g != w {
		t.Fatalf("producers %s\nwant      %s", g, w)
	}
	o1, t1, f1, err1 := got.MaxTimestamp(got.EndOffset())
	o2, t2, f2, err2 := want.MaxTimestamp(want.EndOffset())
	if o1 != o2 || t1 != t2 || f1 != f2 || err1 != nil || err2 != nil {
		t.Fatalf("greatest timestamp %d at %d (%v, %v), want %d at %d (%v, %v)", t1, o1, f1, err1, t2, o2, f2, err2)
	}
	if got.Size() != want.Size() {
		t.Fatalf("size %d, want %d", got.Size(), want.Size())
	}
}

func dump(s *ProducerState) string { return fmt.Sprintf("%+v", s.producers) }

func TestTruncateInsideOfBatchTakesItWhole(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	_, err := l.Append(0, []batch.Batch{many(0, 3)})
	must(t, err)
	_, err = l.Append(1, []batch.Batch{many(3, 5)})
	must(t, err)
	must(t, l.TruncateTo(5))
	wantOffsets(t, l, 0, 3)
	wantCache(t, l, "{0:0}")
}

// KAFKA-10706, E9.
func TestTruncateAtTheEndDropsIdleEpoch(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	appendOne(t, l, 0, 0, 1)
	must(t, l.AssignEpoch(3))
	wantCache(t, l, "{0:0,3:2}")
	must(t, l.TruncateTo(2))
	wantCache(t, l, "{0:0}")
	if got := string(content(t, m.Crash(vfs.Crash{}), in(epochFile))); got != "0\n1\n0 0\n" {
		t.Fatalf("file %q", got)
	}
}

// A60, KAFKA-6492: with one byte of index left the segment would roll at once, into
// a name that exists.
func TestTruncateToBaseOfActiveSegment(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	appendOne(t, l, 0, upTo(6)...)
	must(t, l.TruncateTo(3))
	appendOne(t, l, 0, 3, 4, 5)
	if got := files(t, m, suffixLog); !slices.Equal(got, []string{"00000000000000000000.log", "00000000000000000003.log"}) {
		t.Fatalf("segments %q", got)
	}
	if got := records(t, l); got != numbered(0, 6, 0) {
		t.Fatal(got)
	}
}

func TestTruncateBelowStart(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	appendOne(t, l, 0, upTo(9)...)
	must(t, l.SetStartOffset(7))
	must(t, l.Checkpoint(9))
	must(t, l.TruncateTo(2))
	wantOffsets(t, l, 2, 2)
	wantCache(t, l, "{}")
	appendOne(t, l, 1, 2, 3)
	// The start on disk was 7: were it still, this log would be thrown away.
	after, _ := open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
	wantOffsets(t, after, 2, 4)
}

// E12.
func TestTruncateFullyStartsEmpty(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	for i := range 5 {
		_, err := l.Append(5, []batch.Batch{batch.NewBuilder().Producer(1, 0, int32(i)).Values("x").Build()})
		must(t, err)
	}
	for _, o := range []epoch.Offset{300, 0, 7} {
		must(t, l.TruncateFullyAndStartAt(o))
		wantOffsets(t, l, o, o)
		wantCache(t, l, "{}")
		if _, ok := l.LastBatch(); ok || l.Producers().Len() != 0 || l.Size() != 0 {
			t.Fatalf("something is left: %v %d %d", ok, l.Producers().Len(), l.Size())
		}
		reopened, _ := open(t, m.Crash(vfs.Crash{}), smallSegments(3), false)
		wantOffsets(t, reopened, o, o)
		_, err := l.AppendFetched(fetched(one(1), o, 6), 6)
		must(t, err)
		wantOffsets(t, l, o, o+1)
	}
	if err := l.TruncateFullyAndStartAt(-1); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("negative offset: %v", err)
	}
}

// A crash before any single step of a truncation leaves a beginning of the log that
// agrees with its epoch file (D31, A57), and never bytes that count as synced but
// are not.
func TestCrashDuringTruncation(t *testing.T) {
	for name, truncate := range map[string]func(l *Log) error{
		"to the middle of a sealed segment": func(l *Log) error { return l.TruncateTo(4) },
		"to a segment's base":               func(l *Log) error { return l.TruncateTo(6) },
		"to zero":                           func(l *Log) error { return l.TruncateTo(0) },
		"fully, further on":                 func(l *Log) error { return l.TruncateFullyAndStartAt(100) },
	} {
		for crashName, crash := range map[string]vfs.Crash{"power": {}, "power, names kept": {KeepNames: true}, "process": vfs.ProcessCrash()} {
			t.Run(name+"/"+crashName, func(t *testing.T) {
				m := newMem(t)
				l, _ := open(t, m, smallSegments(3), true)
				for i := range 8 {
					appendOne(t, l, epoch.LeaderEpoch(i/3), i)
				}
				_, err := l.Flush()
				must(t, err)
				must(t, l.Checkpoint(8))
				all := readAll(t, l)
				check := func() {
					after, r := open(t, m.Crash(crash), smallSegments(3), false)
					got := readAll(t, after)
					if string(got) != string(all[:len(got)]) || r.EpochContradiction || r.EpochCacheRebuilt {
						t.Errorf("%s: %s, recovery %+v", printRecords(t, got), after.EpochCache(), r)
					}
					_, err := after.AppendFetched(fetched(one(7), after.EndOffset(), 9), 9)
					must(t, err)
				}
				steps := 0
				m.SetFault(func(op vfs.Op) error {
					if op.Kind != vfs.OpRead && op.Kind != vfs.OpOpen {
						steps++
						check()
					}
					return nil
				})
				must(t, truncate(l))
				m.SetFault(nil)
				check()
				if steps < 4 {
					t.Fatalf("only %d steps were seen", steps)
				}
			})
		}
	}
}
