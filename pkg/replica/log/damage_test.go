package log

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
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
