package log

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A process that dies after the cut must not leave a log that looks whole.
func TestDamageIsToldBeforeAnythingIsCut(t *testing.T) {
	for _, tc := range []struct {
		name   string
		clean  bool
		damage func(t *testing.T, m *vfs.Mem)
		told   bool
	}{
		{"a bit in the middle", false, func(t *testing.T, m *vfs.Mem) {
			b := content(t, m, in(seg0))
			b[len(b)/2] ^= 1
			overwrite(t, m, in(seg0), b)
		}, true},
		{"a segment of zeros under a clean mark", true, func(t *testing.T, m *vfs.Mem) {
			overwrite(t, m, in(seg0), make([]byte, len(content(t, m, in(seg0)))))
		}, true},
		{"a segment gone", false, func(t *testing.T, m *vfs.Mem) {
			b := content(t, m, in(seg0))
			overwrite(t, m, in(seg0), b[:len(b)/3])
		}, true},
		{"an end below the start", false, func(t *testing.T, m *vfs.Mem) {
			overwrite(t, m, dataDir+"/"+logStartFile, []byte("0\n1\norders 0 50\n"))
		}, true},
		{"an epoch that is not the checkpoint's", false, func(t *testing.T, m *vfs.Mem) {
			overwrite(t, m, in(epochFile), []byte("0\n1\n0 0\n"))
		}, true},
		{"an unfinished last write", false, func(t *testing.T, m *vfs.Mem) {
			b := content(t, m, in(seg3))
			overwrite(t, m, in(seg3), b[:len(b)-1])
		}, false},
		{"nothing", false, func(*testing.T, *vfs.Mem) {}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, l := twoSegments(t)
			must(t, l.Close())
			tc.damage(t, m)
			told := func(m *vfs.Mem, result error) bool {
				called := false
				cfg := smallSegments(3)
				cfg.Damaged = func() error { called = true; return result }
				if _, _, err := Open(m, dataDir, cfg, tc.clean, logr.Discard()); !errors.Is(err, result) {
					t.Fatalf("open: %v; want %v", err, result)
				}
				return called
			}
			if got := told(m.Clone(), nil); got != tc.told {
				t.Fatalf("told: %t; want %t", got, tc.told)
			}
			if !tc.told {
				return
			}
			if told(m, errors.New("killed")); !told(m, nil) {
				t.Error("after a start that ended when it was told, the next one sees no damage")
			}
		})
	}
}

func TestARecoveryTellsHowFarItIs(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(3), false)
	appendOne(t, l, 0, upTo(9)...)
	size := l.Size()
	var told [][2]int64
	cfg := smallSegments(3)
	cfg.Checking = func(done, total int64) { told = append(told, [2]int64{done, total}) }
	open(t, m, cfg, false)
	if n := len(told); n < 2 || told[0] != [2]int64{0, size} || told[n-1] != [2]int64{size, size} {
		t.Errorf("told %v of %d bytes", told, size)
	}
	told = nil
	must(t, l.Close())
	open(t, m, cfg, true)
	if told != nil {
		t.Errorf("a clean log was read: %v", told)
	}
}

// A bit turns on the disk, in a batch that is not the newest. Nobody is given it: what is
// before it and behind it can still be read.
func TestDamagedBatchesAreNotReadOut(t *testing.T) {
	size := int64(len(one(0)))
	turn := func(t *testing.T, m *vfs.Mem, name string, at int64) {
		t.Helper()
		b := content(t, m, in(name))
		b[at] ^= 4
		overwrite(t, m, in(name), b)
	}
	for name, tc := range map[string]struct {
		reopen bool
		bad    int64 // which byte of the first segment
		offset epoch.Offset
	}{
		"in a sealed segment, in the records": {false, size + size - 2, 1},
		"in a sealed segment, in the size":    {false, size + 9, 1},
		"in what an earlier process wrote":    {true, 2*size + size - 2, 2},
		"in the first batch":                  {false, size - 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, smallSegments(4), false)
			appendOne(t, l, 0, upTo(6)...)
			if tc.reopen {
				must(t, l.Close())
				l, _ = open(t, m, smallSegments(4), true)
			}
			all := readAll(t, l)
			turn(t, m, "00000000000000000000.log", tc.bad)
			before, err := l.Read(0, 6, 1<<20, true)
			if tc.offset > 0 && (err != nil || string(before) != string(all[:int64(tc.offset)*size])) {
				t.Errorf("the batches before it: %d bytes, %v", len(before), err)
			}
			if _, err := l.Read(tc.offset, 6, 1<<20, true); !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrCorrupt) {
				t.Errorf("the damaged batch: %v, want ErrDamaged", err)
			}
			if b, err := l.Read(4, 6, 1<<20, true); err != nil || string(b) != string(all[4*size:]) {
				t.Errorf("the segment behind it: %d bytes, %v", len(b), err)
			}
			next := epoch.Offset(0)
			for err = nil; err == nil && next < 6; {
				next, err = l.Verify(next, 6, 1<<20)
			}
			if next != tc.offset || !errors.Is(err, ErrDamaged) {
				t.Errorf("verified up to %d (%v), want the damage at %d", next, err, tc.offset)
			}
		})
	}
}

// What this process has just written is not summed up again for every reader.
func TestTheNewestBytesAreReadWithoutACheck(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(4), false)
	appendOne(t, l, 0, 0, 1)
	must(t, l.Close())
	l, _ = open(t, m, smallSegments(4), true)
	appendOne(t, l, 0, 2)
	name := in("00000000000000000000.log")
	b := content(t, m, name)
	b[len(b)-2] ^= 4
	overwrite(t, m, name, b)
	if got, err := l.Read(2, 3, 1<<20, true); err != nil || len(got) != len(one(2)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	must(t, l.TruncateTo(2))
	b = content(t, m, name)
	b[len(b)-2] ^= 4
	overwrite(t, m, name, b)
	if _, err := l.Read(1, 2, 1<<20, true); !errors.Is(err, ErrDamaged) {
		t.Errorf("what an earlier process wrote, behind a truncation: %v, want ErrDamaged", err)
	}
}
