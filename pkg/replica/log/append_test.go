package log

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func isErr(err, target error) bool { return errors.Is(err, target) }

func TestAppendStampsOffsetsAndEpoch(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	must(t, l.AssignEpoch(4))
	base, err := l.Append(4, []batch.Batch{many(0, 3), one(3), many(4, 2)})
	must(t, err)
	next, err := l.Append(4, []batch.Batch{one(6)})
	must(t, err)
	if base != 0 || next != 6 {
		t.Fatalf("bases %d and %d, want 0 and 6", base, next)
	}
	if got := records(t, l); got != numbered(0, 7, 4) {
		t.Fatal(got)
	}
	if id, ok := l.LastBatch(); !ok || id.LastOffset != 6 || id.Epoch != 4 || id.CRC != one(6).CRC() {
		t.Fatalf("last batch %+v", id)
	}
}

func TestAppendRolls(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	appendOne(t, l, 0, upTo(7)...)
	want := []string{"00000000000000000000.log", "00000000000000000003.log", "00000000000000000006.log"}
	if got := files(t, m, suffixLog); !slices.Equal(got, want) {
		t.Fatalf("segments %q, want %q", got, want)
	}
	if got := records(t, l); got != numbered(0, 7, 0) {
		t.Fatal(got)
	}
	// The directory entry of a new segment is durable at once (KAFKA-3968).
	if got := files(t, m.Crash(vfs.Crash{}), suffixLog); !slices.Equal(got, want) {
		t.Fatalf("after a power cut: %q", got)
	}
}

func TestAppendRollsByAge(t *testing.T) {
	m := newMem(t)
	cfg := config()
	cfg.SegmentAge = time.Second
	l, _ := open(t, m, cfg, true)
	for i, ts := range []int64{5000, 6000, 6001} {
		_, err := l.Append(0, []batch.Batch{oneAt(i, ts)})
		must(t, err)
	}
	if got := files(t, m, suffixLog); len(got) != 2 || got[1] != "00000000000000000002.log" {
		t.Fatalf("segments %q", got)
	}
}

func TestAppendRefuses(t *testing.T) {
	l, _ := open(t, newMem(t), smallSegments(2), true)
	must(t, l.AssignEpoch(3))
	for _, tc := range []struct {
		name  string
		epoch epoch.LeaderEpoch
		in    batch.Batch
		want  error
	}{
		{"older epoch", 2, one(0), ErrStaleEpoch},
		{"larger than a segment", 3, many(0, 50), ErrBatchTooLarge},
		{"no batch", 3, batch.Batch("nothing"), ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := l.Append(tc.epoch, []batch.Batch{tc.in}); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			wantOffsets(t, l, 0, 0)
		})
	}
	if err := l.AssignEpoch(2); !errors.Is(err, ErrStaleEpoch) {
		t.Fatalf("assign an older epoch: %v", err)
	}
}

// The epoch file is durable before the first byte of the epoch is written, whoever
// brings it (KAFKA-7415, A42).
func TestEpochIsDurableBeforeItsBytes(t *testing.T) {
	for name, write := range map[string]func(l *Log) error{
		"leader":   func(l *Log) error { _, err := l.Append(7, []batch.Batch{one(0)}); return err },
		"follower": func(l *Log) error { _, err := l.AppendFetched(fetched(one(0), 0, 7), 7); return err },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, config(), true)
			seen := false
			m.SetFault(func(op vfs.Op) error {
				if op.Kind == vfs.OpWrite && op.Name == in("00000000000000000000.log") {
					seen = true
					after := m.Crash(vfs.Crash{})
					if got := string(content(t, after, in(epochFile))); got != "0\n1\n7 0\n" {
						t.Errorf("epoch file on disk before the write: %q", got)
					}
				}
				return nil
			})
			must(t, write(l))
			if !seen {
				t.Fatal("no write seen")
			}
		})
	}
}

func TestAppendFetched(t *testing.T) {
	cat := func(bs ...[]byte) []byte { return bytes.Clone(slices.Concat(bs...)) }
	bad := fetched(one(1), 1, 0)
	bad[len(bad)-3] ^= 1
	for _, tc := range []struct {
		name     string
		in       []byte
		maxEpoch epoch.LeaderEpoch
		appended int
		err      error
		cache    string
	}{
		{"nothing", nil, 0, 0, nil, "{}"},
		{"batches of two epochs", cat(fetched(one(0), 0, 0), fetched(many(1, 2), 1, 2), fetched(one(3), 3, 2)), 2, 3, nil, "{0:0,2:1}"},
		{"ends before a later epoch (KAFKA-18723, A46)", cat(fetched(one(0), 0, 5), fetched(one(1), 1, 6), fetched(one(2), 2, 5)), 5, 1, nil, "{5:0}"},
		{"ends before a partial batch", cat(fetched(one(0), 0, 0), fetched(one(1), 1, 0))[:2*72-1], 0, 1, nil, "{0:0}"},
		{"flipped bit (D03)", cat(fetched(one(0), 0, 0), bad), 0, 1, ErrCorrupt, "{0:0}"},
		{"zeros", cat(fetched(one(0), 0, 0), make([]byte, 100)), 0, 1, ErrCorrupt, "{0:0}"},
		{"gap", cat(fetched(one(0), 0, 0), fetched(one(2), 2, 0)), 0, 1, ErrOutOfOrder, "{0:0}"},
		{"begins behind the end", fetched(one(1), 1, 0), 0, 0, ErrOutOfOrder, "{}"},
		{"epoch goes back", cat(fetched(one(0), 0, 3), fetched(one(1), 1, 2)), 3, 1, ErrOutOfOrder, "{3:0}"},
		{"epoch of a client", fetched(one(0), 0, -1), 3, 0, ErrCorrupt, "{}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, _ := open(t, newMem(t), smallSegments(2), true)
			n, err := l.AppendFetched(tc.in, tc.maxEpoch)
			if n != tc.appended || !errors.Is(err, tc.err) {
				t.Fatalf("appended %d, %v; want %d, %v", n, err, tc.appended, tc.err)
			}
			wantCache(t, l, tc.cache)
			got := readAll(t, l)
			if !bytes.Equal(got, tc.in[:len(got)]) {
				t.Fatal("bytes are not those that were fetched")
			}
		})
	}
}

func TestFollowerRollsWhereTheLeaderDid(t *testing.T) {
	lm, fm := newMem(t), newMem(t)
	leader, _ := open(t, lm, smallSegments(3), true)
	appendOne(t, leader, 1, upTo(10)...)
	follower, _ := open(t, fm, smallSegments(3), true)
	_, err := follower.AppendFetched(readAll(t, leader), 1)
	must(t, err)
	must(t, errors.Join(leader.Close(), follower.Close()))
	for _, name := range files(t, lm, "") {
		if !bytes.Equal(content(t, lm, in(name)), content(t, fm, in(name))) {
			t.Errorf("%s differs", name)
		}
	}
}

// L04, KAFKA-6975.
func TestEmptyFollowerTakesBatchAroundItsStart(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	must(t, l.TruncateFullyAndStartAt(5))
	if _, err := l.AppendFetched(fetched(many(0, 5), 0, 2), 2); !errors.Is(err, ErrOutOfOrder) {
		t.Fatalf("a batch that ends before the start: %v", err)
	}
	n, err := l.AppendFetched(slices.Concat(fetched(many(0, 10), 0, 2), fetched(one(10), 10, 2)), 2)
	if n != 2 || err != nil {
		t.Fatalf("appended %d, %v", n, err)
	}
	wantOffsets(t, l, 5, 11)
	wantCache(t, l, "{2:5}")
	if got := records(t, l); got != numbered(0, 11, 2) {
		t.Fatal(got)
	}
	if _, err := l.Read(4, 11, 100, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("read below the start: %v", err)
	}
	must(t, l.Close())
	l, r := open(t, m, config(), false)
	wantOffsets(t, l, 5, 11)
	wantCache(t, l, "{2:5}")
	if r.EpochContradiction || r.CutAt != epoch.NoOffset {
		t.Fatalf("recovery: %+v", r)
	}
}

func TestFullDiskRefusesAndGoesOn(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	appendOne(t, l, 0, 0, 1)
	for room := range int64(3 * 72) {
		m.SetCapacity(m.Used() + room)
		b := many(2, 3)
		if room >= int64(len(b)) {
			break
		}
		if _, err := l.Append(0, []batch.Batch{b}); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrFailed) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		wantOffsets(t, l, 0, 2)
		if size := len(content(t, m, in("00000000000000000000.log"))); size != 2*72 {
			t.Fatalf("room for %d bytes: %d bytes left in the file", room, size)
		}
	}
	m.SetCapacity(-1)
	appendOne(t, l, 0, 2)
	if got := records(t, l); got != numbered(0, 3, 0) {
		t.Fatal(got)
	}
}

// A disk that is full at any point of a roll, or before a new epoch, leaves a log
// that goes on as if nothing had been tried.
func TestFullDiskDuringRoll(t *testing.T) {
	for room := int64(0); ; room++ {
		m := newMem(t)
		l, _ := open(t, m, smallSegments(3), true)
		appendOne(t, l, 0, 0, 1, 2)
		m.SetCapacity(m.Used() + room)
		chunk := slices.Concat(fetched(one(3), 3, 1), fetched(one(4), 4, 2))
		_, err := l.AppendFetched(chunk, 2)
		m.SetCapacity(-1)
		if err == nil {
			if room == 0 {
				t.Fatal("the disk was not full")
			}
			return
		}
		if !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrFailed) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		wantCache(t, l, "{0:0}")
		// Another history goes on from here: nothing of the refused one may stay.
		_, err = l.AppendFetched(slices.Concat(fetched(one(3), 3, 0), fetched(one(4), 4, 4)), 4)
		must(t, err)
		reopened, r := open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
		wantCache(t, reopened, "{0:0,4:4}")
		if r.EpochContradiction || r.EpochCacheRebuilt || reopened.EndOffset() != 5 {
			t.Fatalf("room for %d bytes: %+v", room, r)
		}
	}
}

func TestWriteAndSyncErrorsEndTheLog(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind vfs.OpKind
		do   func(l *Log) error
	}{
		{"write (KAFKA-10778, D15)", vfs.OpWrite, func(l *Log) error { _, err := l.Append(0, []batch.Batch{one(9)}); return err }},
		{"sync (fsyncgate, D20)", vfs.OpSync, func(l *Log) error { _, err := l.Flush(); return err }},
		{"sync of the epoch file", vfs.OpSync, func(l *Log) error { return l.AssignEpoch(9) }},
		{"sync of a checkpoint", vfs.OpSync, func(l *Log) error { return l.Checkpoint(1) }},
		{"sync of a truncation", vfs.OpSync, func(l *Log) error { return l.TruncateTo(1) }},
		{"sync of the directory", vfs.OpSyncDir, func(l *Log) error { return l.TruncateFullyAndStartAt(9) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, config(), true)
			appendOne(t, l, 0, 0, 1, 2)
			failed := false
			m.SetFault(func(op vfs.Op) error { // once
				if op.Kind == tc.kind && !failed {
					failed = true
					return syscall.EIO
				}
				return nil
			})
			if err := tc.do(l); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("got %v", err)
			}
			_, appendErr := l.Append(0, []batch.Batch{one(3)})
			_, fetchErr := l.AppendFetched(fetched(one(3), 3, 0), 0)
			_, flushErr := l.Flush()
			_, retErr := l.ApplyRetention(time.Unix(0, 0), 0)
			for i, err := range []error{appendErr, fetchErr, flushErr, retErr, l.AssignEpoch(10), l.TruncateTo(0),
				l.TruncateFullyAndStartAt(0), l.SetStartOffset(1), l.Checkpoint(1), l.Close()} {
				if !errors.Is(err, ErrFailed) {
					t.Errorf("call %d after the failure: %v", i, err)
				}
			}
		})
	}
}

func TestFlushMakesDurable(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	appendOne(t, l, 0, upTo(8)...)
	if l.FlushedOffset() != 0 {
		t.Fatalf("flushed %d before any flush", l.FlushedOffset())
	}
	o, err := l.Flush()
	if o != 8 || err != nil || l.FlushedOffset() != 8 {
		t.Fatalf("flush: %d, %v", o, err)
	}
	must(t, l.Checkpoint(8))
	after, r := open(t, m.Crash(vfs.Crash{}), smallSegments(3), false)
	wantOffsets(t, after, 0, 8)
	if r.CutAt != epoch.NoOffset || after.CheckpointedHighWatermark() != 8 || after.FlushedOffset() != 8 {
		t.Fatalf("recovery %+v, high watermark %d, flushed %d", r, after.CheckpointedHighWatermark(), after.FlushedOffset())
	}
	if got := records(t, after); got != numbered(0, 8, 0) {
		t.Fatal(got)
	}
}

func TestClosedLog(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	appendOne(t, l, 0, 0)
	must(t, l.Close())
	_, appendErr := l.Append(0, []batch.Batch{one(1)})
	_, readErr := l.Read(0, 1, 100, true)
	for _, err := range []error{appendErr, readErr, l.Close(), l.TruncateTo(0)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	must(t, l.Checkpoint(1))
}

func TestConfigureChangesRollAndRetention(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(9), true)
	appendOne(t, l, 0, 0, 1)
	size := int64(len(one(0)))
	l.Configure(Config{SegmentBytes: 2 * size, RetentionBytes: size, Retention: -1})
	appendOne(t, l, 0, 2, 3, 4)
	if got := files(t, m, suffixLog); len(got) != 3 {
		t.Fatalf("segments %q", got)
	}
	if start, err := l.ApplyRetention(time.UnixMilli(0), 5); start != 4 || err != nil {
		t.Fatalf("start %d, %v; want 4", start, err)
	}
	l.Configure(Config{SegmentBytes: -1, SegmentAge: time.Second}) // refused as Open would refuse it
	if l.cfg.SegmentBytes != 2*size || l.cfg.SegmentAge != 0 {
		t.Fatalf("segment size %d, age %v", l.cfg.SegmentBytes, l.cfg.SegmentAge)
	}
}

// After an unclean election the new leader's records may be of an older epoch than all
// that this log held and has deleted.
func TestAnEmptyLogTakesAnOlderEpochThanItDeleted(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	appendOne(t, l, 3, 0)
	must(t, l.SetStartOffset(1))
	must(t, l.TruncateTo(1)) // the epoch has no place in the leader's history
	n, err := l.AppendFetched(fetched(one(1), 1, 2), 5)
	if n != 1 || err != nil {
		t.Fatalf("appended %d, %v", n, err)
	}
	wantOffsets(t, l, 1, 2)
	wantCache(t, l, "{2:1}")
	again, r := open(t, m.Crash(vfs.ProcessCrash()), config(), false)
	wantOffsets(t, again, 1, 2)
	wantCache(t, again, "{2:1}")
	if r.EpochContradiction || r.CutAt != epoch.NoOffset {
		t.Errorf("recovery found %+v", r)
	}
}
