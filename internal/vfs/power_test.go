package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// outcomes are what many power cuts leave of /f, "gone" if nothing.
func outcomes(t *testing.T, m *Mem, show func([]byte) string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for seed := range uint64(600) {
		after := m.RandomCrash(rand.New(rand.NewPCG(seed, 0)))
		b, err := ReadFile(after, "/f", 1<<20)
		if err != nil {
			out["gone"]++
			continue
		}
		out[show(b)]++
	}
	return out
}

// runs writes content as letters and lengths in sectors: a2.1 is two sectors of a and
// one byte more.
func runs(b []byte) string {
	var s string
	for len(b) > 0 {
		n := 1
		for n < len(b) && b[n] == b[0] {
			n++
		}
		letter := string(b[:1])
		if b[0] == 0 {
			letter = "0"
		}
		if s += fmt.Sprintf("%s%d", letter, n/SectorSize); n%SectorSize > 0 {
			s += fmt.Sprintf(".%d", n%SectorSize)
		}
		b = b[n:]
	}
	return s
}

func letters(c byte, sectors int) []byte { return bytes.Repeat([]byte{c}, sectors*SectorSize) }

func writeAt(t *testing.T, f File, off int64, b []byte) {
	t.Helper()
	if n, err := f.WriteVec([][]byte{b}, off); err != nil || n != int64(len(b)) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(b), err)
	}
}

func synced(t *testing.T, m *Mem, f File) {
	t.Helper()
	if err := errors.Join(f.Sync(), m.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
}

func TestRandomCrashLeavesEverythingThatItMayAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, m *Mem, f File)
		want []string // exactly these
	}{
		{"synced", func(*testing.T, *Mem, File) {}, []string{"a2"}},
		{"written over", func(t *testing.T, _ *Mem, f File) { writeAt(t, f, 0, letters('b', 2)) },
			[]string{"a2", "b2", "a1b1", "b1a1"}},
		{"appended", func(t *testing.T, _ *Mem, f File) { writeAt(t, f, 2*SectorSize, letters('b', 2)) },
			[]string{"a2", "a2b2", "a2b1", "a201", "a202", "a2b101", "a201b1"}},
		{"appended within a sector", func(t *testing.T, _ *Mem, f File) { writeAt(t, f, 2*SectorSize, []byte("b")) },
			[]string{"a2", "a2b0.1", "a200.1"}},
		{"cut off", func(t *testing.T, _ *Mem, f File) { must(0, f.Truncate(SectorSize))(t) }, []string{"a2", "a1"}},
		// Never old bytes under the new size: they are in blocks that were freed.
		{"cut off and appended", func(t *testing.T, _ *Mem, f File) {
			must(0, f.Truncate(SectorSize))(t)
			writeAt(t, f, SectorSize, letters('b', 1))
		}, []string{"a2", "a1", "a101", "a1b1"}},
		{"made anew", func(t *testing.T, m *Mem, _ File) { writeAt(t, must(m.Create("/f"))(t), 0, letters('b', 1)) },
			[]string{"a2", "", "01", "b1"}},
		{"written over and synced", func(t *testing.T, m *Mem, f File) { writeAt(t, f, 0, letters('b', 1)); synced(t, m, f) }, []string{"b1a1"}},
		{"removed", func(t *testing.T, m *Mem, _ File) { must(0, m.Remove("/f"))(t) }, []string{"a2", "gone"}},
		{"removed and synced", func(t *testing.T, m *Mem, _ File) { must(0, errors.Join(m.Remove("/f"), m.SyncDir("/")))(t) }, []string{"gone"}},
		{"replaced by a synced file", func(t *testing.T, m *Mem, _ File) {
			g := must(m.Create("/g"))(t)
			writeAt(t, g, 0, letters('b', 1))
			must(0, errors.Join(g.Sync(), m.Rename("/g", "/f")))(t)
		}, []string{"a2", "b1"}},
		{"replaced by an unsynced file (KAFKA-1539)", func(t *testing.T, m *Mem, _ File) {
			writeAt(t, must(m.Create("/g"))(t), 0, letters('b', 1))
			must(0, m.Rename("/g", "/f"))(t)
		}, []string{"a2", "b1", "01", ""}},
		{"dropped by a sync, and the next one succeeds", func(t *testing.T, m *Mem, f File) {
			writeAt(t, f, SectorSize, letters('b', 2))
			dropOnce(t, m, f)
			synced(t, m, f)
		}, []string{"a1b2", "a2b1", "a1b101", "a201"}},
		{"dropped by a sync and written again", func(t *testing.T, m *Mem, f File) {
			writeAt(t, f, 0, letters('b', 2))
			dropOnce(t, m, f)
			writeAt(t, f, 0, letters('c', 1))
			synced(t, m, f)
		}, []string{"c1b1", "c1a1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMem()
			f := must(m.Create("/f"))(t)
			writeAt(t, f, 0, letters('a', 2))
			synced(t, m, f)
			c.do(t, m, f)
			var got []string
			for s := range outcomes(t, m, runs) {
				got = append(got, s)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("power cuts left %q, want %q", got, c.want)
			}
		})
	}
}

// dropOnce lets one sync fail and give up what it should have written.
func dropOnce(t *testing.T, m *Mem, f File) {
	t.Helper()
	m.SetFault(Faults{{Kind: OpSync, Times: 1, Err: &Dropped{syscall.EIO}}}.Judge)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync returned %v", err)
	}
}

func TestHarshestCrashShowsWhatASyncDropped(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	writeAt(t, f, 0, letters('a', 2))
	dropOnce(t, m, f)
	writeAt(t, f, SectorSize, letters('b', 1))
	synced(t, m, f)
	if got := runs(must(ReadFile(m, "/f", 1<<20))(t)); got != "a1b1" {
		t.Errorf("a reader sees %s", got)
	}
	if got := runs(must(ReadFile(m.Crash(Crash{}), "/f", 1<<20))(t)); got != "01b1" {
		t.Errorf("after a crash %s is left, want 01b1", got)
	}
}

// A long random life of a file against what must hold of any power cut.
func TestRandomCrashKeepsWhatWasSyncedAndNotTouchedSince(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := NewMem()
		f := must(m.Create("/f"))(t)
		synced(t, m, f)
		var durable []byte                // as of the last sync
		touched := map[int]bool{}         // since
		values := map[int]map[byte]bool{} // since
		smallest, largest := 0, 0
		for step := range 40 {
			size := int(must(f.Size())(t))
			switch rng.IntN(6) {
			case 0:
				synced(t, m, f)
				durable = must(ReadFile(m, "/f", 1<<20))(t)
				clear(touched)
				clear(values)
				smallest, largest = size, size
			case 1:
				to := rng.IntN(size + 1)
				must(0, f.Truncate(int64(to)))(t)
				for i := to; i < size; i++ {
					touched[i] = true
				}
				smallest = min(smallest, to)
			default:
				off := rng.IntN(size + 1)
				if rng.IntN(2) == 0 {
					off = size
				}
				b := bytes.Repeat([]byte{byte(step + 1)}, 1+rng.IntN(1500))
				writeAt(t, f, int64(off), b)
				for i := range b {
					touched[off+i] = true
					if values[off+i] == nil {
						values[off+i] = map[byte]bool{}
					}
					values[off+i][byte(step+1)] = true
				}
				largest = max(largest, off+len(b))
			}
			left := must(ReadFile(m.RandomCrash(rng), "/f", 1<<20))(t)
			if len(left) < smallest || len(left) > largest {
				t.Fatalf("seed %d step %d: %d bytes are left, the file had %d to %d", seed, step, len(left), smallest, largest)
			}
			for i, b := range left {
				was := i < len(durable) && b == durable[i]
				if !was && (!touched[i] || b != 0 && !values[i][b]) {
					t.Fatalf("seed %d step %d: byte %d is %d, synced was %v, written since %v", seed, step, i, b, durable[min(i, len(durable)):][:min(1, max(0, len(durable)-i))], values[i])
				}
			}
		}
	}
}

func TestSameSeedSameCrash(t *testing.T) {
	m := NewMem()
	for i := range 10 {
		if err := WriteFile(m, fmt.Sprintf("/%d", i), letters('a', i)); err != nil {
			t.Fatal(err)
		}
	}
	show := func() string {
		after := m.RandomCrash(rand.New(rand.NewPCG(7, 7)))
		var s string
		for _, name := range must(after.List("/"))(t) {
			s += name + " " + runs(must(ReadFile(after, "/"+name, 1<<20))(t)) + "\n"
		}
		return s
	}
	if a, b := show(), show(); a != b {
		t.Errorf("%s\nand\n%s", a, b)
	}
}

func TestRandomCrashWithoutADirectoryLosesWhatItHolds(t *testing.T) {
	m := NewMem()
	must(0, m.MkdirAll("/data/quarantine"))(t)
	must(0, WriteFileAtomic(m, "/data/quarantine/f", []byte("x")))(t)
	lost := 0
	for seed := range uint64(100) {
		after := m.RandomCrash(rand.New(rand.NewPCG(seed, 0)))
		names := must(after.List("/data"))(t)
		if len(names) == 0 {
			lost++
		} else if _, err := after.Stat("/data/quarantine/f"); err != nil {
			t.Errorf("the directory is there, and not its synced file: %v", err)
		}
	}
	if lost == 0 || lost == 100 {
		t.Errorf("the unsynced directory was lost %d times of 100", lost)
	}
	must(0, m.SyncDir("/data"))(t)
	for seed := range uint64(100) {
		if _, err := m.RandomCrash(rand.New(rand.NewPCG(seed, 0))).Stat("/data/quarantine/f"); err != nil {
			t.Fatal(err)
		}
	}
}
