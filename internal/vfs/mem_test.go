package vfs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestCloneIsAnotherDiskInTheSameState(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	writeAt(t, f, 0, []byte("durable"))
	synced(t, m, f)
	writeAt(t, f, 0, []byte("written"))
	c := m.Clone()
	writeAt(t, f, 0, []byte("changed"))
	synced(t, m, f)
	if got := string(must(ReadFile(c, "/f", 10))(t)); got != "written" {
		t.Errorf("the copy reads %q", got)
	}
	if got := string(must(ReadFile(c.Crash(Crash{}), "/f", 10))(t)); got != "durable" {
		t.Errorf("the copy after a crash reads %q", got)
	}
	g := must(c.Open("/f"))(t)
	synced(t, c, g)
	if got := string(must(ReadFile(c.Crash(Crash{}), "/f", 10))(t)); got != "written" {
		t.Errorf("the copy, synced and crashed, reads %q", got)
	}
}

func TestUsedCountsFilesThatHaveAName(t *testing.T) {
	m := NewMem()
	rng := rand.New(rand.NewPCG(1, 1))
	names := []string{"/a", "/b", "/c"}
	var open []File
	for range 2000 {
		name := names[rng.IntN(3)]
		switch rng.IntN(5) {
		case 0:
			open = append(open, must(m.Create(name))(t))
		case 1:
			_ = m.Remove(name)
		case 2:
			_ = m.Rename(name, names[rng.IntN(3)])
		case 3:
			if len(open) > 0 {
				writeAt(t, open[rng.IntN(len(open))], int64(rng.IntN(100)), make([]byte, rng.IntN(50)))
			}
		case 4:
			if len(open) > 0 {
				must(0, open[rng.IntN(len(open))].Truncate(int64(rng.IntN(100))))(t)
			}
		}
		var want int64
		for _, name := range must(m.List("/"))(t) {
			want += must(m.Stat("/" + name))(t).Size
		}
		if m.Used() != want {
			t.Fatalf("used %d, the files have %d", m.Used(), want)
		}
	}
}

func TestShortWriteDoesTheFirstBytes(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	m.SetFault(Faults{{Kind: OpWrite, Name: "/f", After: 1, Times: 1, Err: &Short{3, syscall.EIO}}}.Judge)
	writeAt(t, f, 0, []byte("12"))
	if n, err := f.WriteVec([][]byte{[]byte("34"), []byte("56")}, 2); n != 3 || !errors.Is(err, syscall.EIO) {
		t.Errorf("wrote %d, %v, want 3 and EIO", n, err)
	}
	writeAt(t, f, 5, []byte("6"))
	if got := string(must(ReadFile(m, "/f", 10))(t)); got != "123456" {
		t.Errorf("the file has %q", got)
	}
}

func TestPanicInAFaultLeavesTheFileSystemUsable(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	m.SetFault(func(op Op) error {
		if op.Kind == OpSync {
			panic("killed")
		}
		return nil
	})
	func() {
		defer func() { _ = recover() }()
		_ = WriteFileAtomic(m, "/g", []byte("x"))
	}()
	m.SetFault(nil)
	synced(t, m, f)
	if got := must(m.List("/"))(t); !slices.Equal(got, []string{"f", "g.tmp"}) {
		t.Errorf("the process left %q", got)
	}
}

func TestADirectoryIsRenamedWithWhatItHolds(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		must(0, fsys.MkdirAll(dir+"/from/sub"))(t)
		must(0, WriteFileAtomic(fsys, dir+"/from/sub/f", []byte("x")))(t)
		must(0, WriteFileAtomic(fsys, dir+"/fromelse", []byte("y")))(t)
		must(0, fsys.Rename(dir+"/from", dir+"/to"))(t)
		if got := must(fsys.List(dir))(t); !slices.Equal(got, []string{"fromelse", "to"}) {
			t.Errorf("%q", got)
		}
		if got := string(must(ReadFile(fsys, dir+"/to/sub/f", 9))(t)); got != "x" {
			t.Errorf("%q", got)
		}
	})
}

func TestModificationTimesComeFromTheClock(t *testing.T) {
	m := NewMem()
	at := time.UnixMilli(1000)
	m.SetClock(func() time.Time { return at })
	must(0, WriteFile(m, "/f", nil))(t)
	if got := must(m.Stat("/f"))(t).ModTime; !got.Equal(at) {
		t.Errorf("modified at %v", got)
	}
}

func BenchmarkWriteFileAtomic(b *testing.B) {
	m := NewMem()
	data := make([]byte, 2000)
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteFileAtomic(m, "/f", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendAndSync(b *testing.B) {
	m := NewMem()
	f, err := m.Create("/f")
	if err != nil {
		b.Fatal(err)
	}
	data := [][]byte{make([]byte, 100)}
	b.ReportAllocs()
	for at := int64(0); b.Loop(); at += 100 {
		if _, err := f.WriteVec(data, at); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRandomCrash(b *testing.B) {
	m := NewMem()
	f, err := m.Create("/f")
	if err != nil {
		b.Fatal(err)
	}
	for at := range int64(200) {
		if _, err := f.WriteVec([][]byte{make([]byte, 100)}, 100*at); err != nil {
			b.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		m.RandomCrash(rng)
	}
}
