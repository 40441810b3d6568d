package log

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

const (
	seg0 = "00000000000000000000.log"
	seg3 = "00000000000000000003.log"
)

// twoSegments is a log of batches 0-2 and 3-5, epoch = offset/2, nothing synced but
// names and epochs.
func twoSegments(t *testing.T) (*vfs.Mem, *Log) {
	t.Helper()
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), true)
	for i := range 6 {
		_, err := l.Append(epoch.LeaderEpoch(i/2), []batch.Batch{
			batch.NewBuilder().Producer(int64(i%2), 0, int32(i/2)).Record(int64(1000+i), nil, fmt.Appendf(nil, "%04d", i)).Build(),
		})
		must(t, err)
	}
	return m, l
}

// TestRecoveryAfterCutAtEveryByte loses the end of a log of two segments at every
// byte, in every way: the file shorter, or its lost part read as zeros, or the later
// segment whole behind a damaged one.
func TestRecoveryAfterCutAtEveryByte(t *testing.T) {
	m, l := twoSegments(t)
	all := readAll(t, l)
	files := map[string][]byte{seg0: content(t, m, in(seg0)), seg3: content(t, m, in(seg3))}
	size := len(files[seg0]) / 3
	for _, tc := range []struct {
		name string
		file string
		lost func(written []byte, at int) []byte
		// others says whether the segment behind the cut one is there.
		others bool
	}{
		{"last segment, torn", seg3, func(w []byte, at int) []byte { return w[:at] }, true},
		{"last segment, zero tail", seg3, zeroTail, true},
		{"first segment torn, last lost", seg0, func(w []byte, at int) []byte { return w[:at] }, false},
		{"first segment torn, last there", seg0, func(w []byte, at int) []byte { return w[:at] }, true},
		{"first segment zero tail, last there", seg0, zeroTail, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for at := 0; at <= len(files[tc.file]); at++ {
				after := m.Crash(vfs.Crash{KeepNames: true, Content: func(name string, _, written []byte) []byte {
					switch base := path.Base(name); {
					case base == tc.file:
						return tc.lost(written, at)
					case strings.HasSuffix(base, ".log") && base > tc.file && !tc.others:
						return nil
					default:
						return written
					}
				}})
				whole := intact(tc.lost(files[tc.file], at), files[tc.file], size)
				if tc.file == seg3 {
					whole += 3
				} else if tc.others && whole == 3 {
					whole += 3
				}
				checkRecovered(t, after, all[:whole*size], fmt.Sprintf("cut at byte %d", at))
			}
		})
	}
}

// intact counts the batches of that size that are still as written: the last byte
// of a batch may be zero anyway.
func intact(got, written []byte, size int) int {
	n := 0
	for (n+1)*size <= len(got) && bytes.Equal(got[n*size:(n+1)*size], written[n*size:(n+1)*size]) {
		n++
	}
	return n
}

func zeroTail(written []byte, at int) []byte {
	out := make([]byte, len(written))
	copy(out, written[:at])
	return out
}

// checkRecovered opens a crashed log and demands exactly want, then that it can be
// used, and that a second start finds nothing more to do.
func checkRecovered(t *testing.T, m *vfs.Mem, want []byte, what string) {
	t.Helper()
	l, r := open(t, m, smallSegments(3), false)
	if got := readAll(t, l); !bytes.Equal(got, want) {
		t.Fatalf("%s: recovered %q, want %q", what, printRecords(t, got), printRecords(t, want))
	}
	if r.Clean || r.EpochContradiction || r.EpochCacheRebuilt {
		t.Fatalf("%s: %+v", what, r)
	}
	if r.CutAt != epoch.NoOffset && r.CutAt != l.EndOffset() {
		t.Fatalf("%s: cut at %d, ends at %d", what, r.CutAt, l.EndOffset())
	}
	rebuilt := newProducerState()
	must(t, l.replay(rebuilt, 0))
	if got, want := dump(l.Producers()), dump(rebuilt); got != want { // F17
		t.Fatalf("%s: producers %s, replay from 0 gives %s", what, got, want)
	}
	end := l.EndOffset()
	appendOne(t, l, 9, 90, 91)
	again, r := open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
	if again.EndOffset() != end+2 || r.CutAt != epoch.NoOffset || r.EpochContradiction {
		t.Fatalf("%s: second start: ends at %d, %+v", what, again.EndOffset(), r)
	}
}

func TestWhatCountsAsTornTail(t *testing.T) {
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 1; return b }
	}
	size := len(content(t, func() *vfs.Mem { m, _ := twoSegments(t); return m }(), in(seg3))) / 3
	for _, tc := range []struct {
		name  string
		file  string
		spoil func([]byte) []byte
		end   epoch.Offset
		torn  bool
	}{
		{"nothing", seg3, func(b []byte) []byte { return b }, 6, true},
		{"part of the last batch", seg3, func(b []byte) []byte { return b[:3*size-1] }, 5, true},
		{"five bytes of the last batch", seg3, func(b []byte) []byte { return b[:2*size+5] }, 5, true},
		{"zeros behind", seg3, func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, 6, true},
		{"zeros instead of the last two", seg3, func(b []byte) []byte { return zeroTail(b, size) }, 4, true},
		{"garbage behind", seg3, func(b []byte) []byte { return append(b, "garbage!"...) }, 6, false},
		{"bit in the last batch", seg3, flip(3*size - 1), 5, false},
		{"bit in the one before", seg3, flip(2*size - 1), 4, false},
		{"length of the one before, reaching over the end", seg3, flip(size + 9), 4, false},
		{"offset of the last batch", seg3, flip(2*size + 7), 5, false},
		{"part of the last batch of the first segment", seg0, func(b []byte) []byte { return b[:3*size-1] }, 2, false},
		{"bit in the first segment", seg0, flip(size + 40), 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := twoSegments(t)
			m = m.Crash(vfs.Crash{KeepNames: true, Content: func(name string, _, w []byte) []byte {
				if path.Base(name) == tc.file {
					return tc.spoil(w)
				}
				return w
			}})
			l, r := open(t, m, smallSegments(3), false)
			wantOffsets(t, l, 0, tc.end)
			if r.OnlyTornTail != tc.torn {
				t.Fatalf("OnlyTornTail %v, want %v: %+v", r.OnlyTornTail, tc.torn, r)
			}
			wantCut := tc.name != "nothing"
			if (r.CutAt != epoch.NoOffset) != wantCut || (r.CutBytes > 0) != wantCut || (r.SegmentsRemoved > 0) != (tc.file == seg0) {
				t.Fatalf("%+v", r)
			}
		})
	}
}

// D03: below the recovery point nothing is read at the start; who reads it finds out, or
// who is told to check everything.
func TestFlippedBitBelowRecoveryPointIsFoundByReading(t *testing.T) {
	m, l := twoSegments(t)
	must(t, l.Close())
	must(t, l.Checkpoint(6))
	b := content(t, m, in(seg0))
	b[70] ^= 1
	overwrite(t, m, in(seg0), b)
	l, r := open(t, m, smallSegments(3), true)
	if !r.Clean || l.EndOffset() != 6 {
		t.Fatalf("%+v", r)
	}
	if _, err := l.Read(0, 6, 1<<20, true); !isErr(err, ErrDamaged) {
		t.Fatalf("read: %v, want ErrDamaged", err)
	}
	all := smallSegments(3)
	all.CheckAll = true
	for _, clean := range []bool{true, false} {
		l, r = open(t, m.Clone(), all, clean)
		if wantOffsets(t, l, 0, 0); r.Clean || r.CutAt != 0 || r.OnlyTornTail {
			t.Errorf("checked in full, with the clean mark: %t: %+v", clean, r)
		}
	}
}

// A volume that comes back from a clean stop with a hole, as a disk leaves it that did not
// write what it was told to. That is damage to be cut, not a reason never to start again.
func TestHoleInACleanLogIsCut(t *testing.T) {
	m, l := twoSegments(t)
	must(t, l.Close())
	must(t, l.Checkpoint(6))
	overwrite(t, m, in(seg0), make([]byte, len(content(t, m, in(seg0)))))
	l, r := open(t, m, smallSegments(3), true)
	wantOffsets(t, l, 0, 0)
	if r.Clean || r.CutAt != 0 || r.OnlyTornTail {
		t.Fatalf("%+v", r)
	}
	appendOne(t, l, 1, 0)
	must(t, l.Close())
	l, r = open(t, m, smallSegments(3), true)
	wantOffsets(t, l, 0, 1)
	if !r.Clean {
		t.Fatalf("%+v", r)
	}
}

// D05, KAFKA-3968: should a directory entry be lost all the same, nothing behind the
// hole is kept.
func TestLostSegmentLeavesNoHole(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(2), true)
	appendOne(t, l, 0, upTo(6)...)
	m = m.Crash(vfs.ProcessCrash())
	must(t, m.Remove(in("00000000000000000002.log")))
	l, r := open(t, m, smallSegments(2), false)
	wantOffsets(t, l, 0, 2)
	if r.CutAt != 2 || r.SegmentsRemoved != 1 || r.OnlyTornTail {
		t.Fatalf("%+v", r)
	}
	appendOne(t, l, 0, 2, 3, 4)
	if got := records(t, l); got != numbered(0, 5, 0) {
		t.Fatal(got)
	}
}

// D12.
func TestLogThatEndsBelowItsStartBeginsAnew(t *testing.T) {
	m, _ := twoSegments(t)
	m = m.Crash(vfs.ProcessCrash())
	overwrite(t, m, dataDir+"/"+logStartFile, []byte("0\n1\norders 0 50\n"))
	overwrite(t, m, dataDir+"/"+highWatermarkFile, []byte("0\n1\norders 0 60\n"))
	l, r := open(t, m, smallSegments(3), false)
	wantOffsets(t, l, 50, 50)
	wantCache(t, l, "{}")
	if r.CutAt != 6 || r.OnlyTornTail || r.HighWatermark != 60 || l.CheckpointedHighWatermark() != 50 {
		t.Fatalf("%+v, high watermark %d", r, l.CheckpointedHighWatermark())
	}
	_, err := l.AppendFetched(fetched(one(0), 50, 3), 3)
	must(t, err)
	l, _ = open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), false)
	wantOffsets(t, l, 50, 51)
}

func TestEpochFileAtStart(t *testing.T) {
	// The log: epochs 0, 0, 1, 1, 2, 2 at offsets 0-5.
	for _, tc := range []struct {
		name  string
		file  string // "-": none
		start epoch.Offset
		want  string
		// rebuilt and contradiction are what recovery reports.
		rebuilt, contradiction bool
	}{
		{"as written", "0\n3\n0 0\n1 2\n2 4\n", 0, "{0:0,1:2,2:4}", false, false},
		{"entries behind the end (E10, A57)", "0\n5\n0 0\n1 2\n2 4\n7 7\n8 9\n", 0, "{0:0,1:2,2:4}", false, false},
		{"idle epoch at the end stays (A42)", "0\n4\n0 0\n1 2\n2 4\n7 6\n", 0, "{0:0,1:2,2:4,7:6}", false, false},
		{"entries below the start (E10)", "0\n3\n0 0\n1 2\n2 4\n", 3, "{1:3,2:4}", false, false},
		{"empty (D07)", "", 0, "{0:0,1:2,2:4}", true, false},
		{"garbage (D07)", "\x00\x00\x00\x00", 0, "{0:0,1:2,2:4}", true, false},
		{"not ascending (D07)", "0\n2\n1 4\n1 2\n", 0, "{0:0,1:2,2:4}", true, false},
		{"missing (E11)", "-", 0, "{0:0,1:2,2:4}", true, false},
		{"missing, log starts later", "-", 3, "{1:3,2:4}", true, false},
		{"an epoch is missing", "0\n2\n0 0\n2 4\n", 0, "{0:0,1:2,2:4}", true, true},
		{"another epoch", "0\n3\n0 0\n1 2\n3 4\n", 0, "{0:0,1:2,2:4}", true, true},
		{"another start", "0\n3\n0 0\n1 1\n2 4\n", 0, "{0:0,1:2,2:4}", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := twoSegments(t)
			m = m.Crash(vfs.ProcessCrash())
			if tc.file == "-" {
				must(t, m.Remove(in(epochFile)))
			} else {
				overwrite(t, m, in(epochFile), []byte(tc.file))
			}
			if tc.start > 0 {
				overwrite(t, m, dataDir+"/"+logStartFile, fmt.Appendf(nil, "0\n1\norders 0 %d\n", tc.start))
			}
			l, r := open(t, m, smallSegments(3), false)
			wantCache(t, l, tc.want)
			if r.EpochCacheRebuilt != tc.rebuilt || r.EpochContradiction != tc.contradiction {
				t.Fatalf("%+v", r)
			}
			if got := content(t, m, in(epochFile)); !bytes.Equal(got, formatEpochs(l.EpochCache())) {
				t.Fatalf("file is %q", got)
			}
		})
	}
}

func TestCleanOpen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(m *vfs.Mem)
		clean bool
		end   epoch.Offset
	}{
		{"as left", func(*vfs.Mem) {}, true, 6},
		{"without indexes", func(m *vfs.Mem) {
			for _, n := range slices.Concat(files(t, m, suffixIndex), files(t, m, suffixTimeIndex)) {
				must(t, m.Remove(in(n)))
			}
		}, true, 6},
		{"indexes of zeros, as preallocated", func(m *vfs.Mem) {
			for _, n := range slices.Concat(files(t, m, suffixIndex), files(t, m, suffixTimeIndex)) {
				overwrite(t, m, in(n), make([]byte, 240))
			}
		}, true, 6},
		{"index that points nowhere", func(m *vfs.Mem) {
			overwrite(t, m, in("00000000000000000003.index"), []byte(unhex("00000002 00000091")))
		}, false, 6},
		{"torn end", func(m *vfs.Mem) { b := content(t, m, in(seg3)); overwrite(t, m, in(seg3), b[:len(b)-1]) }, false, 5},
		{"sealed segment shorter", func(m *vfs.Mem) { b := content(t, m, in(seg0)); overwrite(t, m, in(seg0), b[:len(b)/3]) }, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, l := twoSegments(t)
			all := readAll(t, l)
			want := dump(l.Producers())
			must(t, l.Close())
			must(t, l.Checkpoint(6))
			index := content(t, m, in("00000000000000000003.index"))
			tc.spoil(m)
			l, r := open(t, m, smallSegments(3), true)
			if r.Clean != tc.clean {
				t.Fatalf("%+v", r)
			}
			wantOffsets(t, l, 0, tc.end)
			if got := readAll(t, l); !bytes.Equal(got, all[:len(got)]) {
				t.Fatal("content differs")
			}
			if tc.end == 6 {
				if got := dump(l.Producers()); got != want {
					t.Fatalf("producers %s, want %s", got, want)
				}
				must(t, l.Close())
				if got := content(t, m, in("00000000000000000003.index")); !bytes.Equal(got, index) {
					t.Fatalf("index rebuilt as %x, was %x", got, index)
				}
			}
		})
	}
}

func TestLeftoversAreTidied(t *testing.T) {
	m, _ := twoSegments(t)
	m = m.Crash(vfs.ProcessCrash())
	for _, name := range []string{"00000000000000000000.log.deleted", "00000000000000000000.log.cleaned", "leader-epoch-checkpoint.tmp",
		"00000000000000000009.index", "00000000000000000009.timeindex", "00000000000000000009.snapshot"} {
		overwrite(t, m, in(name), []byte("x"))
	}
	l, _ := open(t, m, smallSegments(3), false)
	wantOffsets(t, l, 0, 6)
	for _, name := range files(t, m, "") {
		if strings.Contains(name, "009") || strings.HasSuffix(name, ".deleted") || strings.HasSuffix(name, ".cleaned") || strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s is still there", name)
		}
	}
	overwrite(t, m, in("00000000000000000000.log.swap"), nil)
	if _, _, err := Open(m, dataDir, smallSegments(3), false, l.log); err == nil || !strings.Contains(err.Error(), "let Kafka open") {
		t.Fatalf("unfinished compaction: %v", err)
	}
}

// TestCrashAtEveryStep crashes before every operation of a life with rolls, epochs,
// flushes, retention and truncation (D31): the log that starts agrees with its
// epochs and holds at least what was flushed.
func TestCrashAtEveryStep(t *testing.T) {
	for crashName, crash := range map[string]vfs.Crash{"power": {}, "power, names kept": {KeepNames: true}, "process": vfs.ProcessCrash()} {
		t.Run(crashName, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, smallSegments(3), true)
			var safe epoch.Offset // what a crash must leave
			steps := 0
			m.SetFault(func(op vfs.Op) error {
				if op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen {
					return nil
				}
				steps++
				after, r := open(t, m.Crash(crash), smallSegments(3), false)
				if r.EpochContradiction || r.EpochCacheRebuilt || after.EndOffset() < safe {
					t.Fatalf("before step %d (%v): end %d, safe %d, %+v", steps, op, after.EndOffset(), safe, r)
				}
				readAll(t, after)
				return nil
			})
			for i := range 14 {
				e := epoch.LeaderEpoch(i / 4)
				must(t, l.AssignEpoch(e))
				appendOne(t, l, e, i)
				if i%5 == 4 {
					o, err := l.Flush()
					must(t, err)
					safe = o
					must(t, l.Checkpoint(o))
				}
			}
			must(t, l.SetStartOffset(7))
			safe = 6
			must(t, l.TruncateTo(12))
			appendOne(t, l, 8, 12, 13, 14)
			must(t, l.Close())
			safe = 15
			must(t, l.Checkpoint(15))
			if steps < 60 {
				t.Fatalf("only %d steps", steps)
			}
		})
	}
}
