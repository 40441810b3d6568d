package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// each runs a test on both implementations: they must not be told apart.
func each(t *testing.T, f func(t *testing.T, fsys FS, dir string)) {
	t.Run("OS", func(t *testing.T) { f(t, OS{}, filepath.ToSlash(t.TempDir())) })
	t.Run("Mem", func(t *testing.T) {
		m := NewMem()
		if err := m.MkdirAll("/data"); err != nil {
			t.Fatal(err)
		}
		f(t, m, "/data")
	})
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestFileKeepsWhatIsWritten(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		f := must(fsys.Create(dir + "/a"))(t)
		bufs := [][]byte{[]byte("hello"), nil, []byte(", "), []byte("world")}
		if n := must(f.WriteVec(bufs, 2))(t); n != 12 {
			t.Fatalf("wrote %d, want 12", n)
		}
		got := make([]byte, 20)
		n, err := f.ReadAt(got, 0)
		if n != 14 || !errors.Is(err, io.EOF) || string(got[:n]) != "\x00\x00hello, world" {
			t.Fatalf("read %q, %v", got[:n], err)
		}
		if err := f.Truncate(4); err != nil {
			t.Fatal(err)
		}
		if size := must(f.Size())(t); size != 4 {
			t.Fatalf("size %d after truncation to 4", size)
		}
		if _, err := f.ReadAt(got, 4); !errors.Is(err, io.EOF) {
			t.Fatalf("read behind the end: %v, want EOF", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(got, 0); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("read after close: %v", err)
		}
	})
}

func TestWriteVecTakesMoreBuffersThanOneSystemCall(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		f := must(fsys.Create(dir + "/a"))(t)
		defer f.Close()
		var bufs [][]byte
		for i := range 3000 {
			bufs = append(bufs, bytes.Repeat([]byte{byte(i)}, i%7))
		}
		want := bytes.Join(bufs, nil)
		if n := must(f.WriteVec(bufs, 0))(t); n != int64(len(want)) {
			t.Fatalf("wrote %d, want %d", n, len(want))
		}
		if got := must(ReadFile(fsys, dir+"/a", 1<<20))(t); !bytes.Equal(got, want) {
			t.Fatal("content differs")
		}
	})
}

func TestNames(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		if err := fsys.MkdirAll(dir + "/sub/deeper"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "a"} {
			if err := WriteFile(fsys, dir+"/"+name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := must(fsys.List(dir))(t); !slices.Equal(got, []string{"a", "b", "sub"}) {
			t.Fatalf("list: %q", got)
		}
		open := must(fsys.Open(dir + "/a"))(t)
		defer open.Close()
		if err := fsys.Rename(dir+"/b", dir+"/a"); err != nil {
			t.Fatal(err)
		}
		if got := must(ReadFile(fsys, dir+"/a", 10))(t); string(got) != "b" {
			t.Fatalf("renamed over: %q", got)
		}
		buf := make([]byte, 1)
		if _, err := open.ReadAt(buf, 0); err != nil || buf[0] != 'a' {
			t.Fatalf("an open handle lost its file: %q %v", buf, err)
		}
		if st := must(fsys.Stat(dir + "/a"))(t); st.Size != 1 || st.ModTime.IsZero() {
			t.Fatalf("stat: %+v", st)
		}
		if err := errors.Join(fsys.Remove(dir+"/a"), fsys.SyncDir(dir)); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"open":   func() error { _, err := fsys.Open(dir + "/a"); return err }(),
			"stat":   func() error { _, err := fsys.Stat(dir + "/a"); return err }(),
			"remove": fsys.Remove(dir + "/a"),
			"list":   func() error { _, err := fsys.List(dir + "/none"); return err }(),
			"create": func() error { _, err := fsys.Create(dir + "/none/x"); return err }(),
			"rename": fsys.Rename(dir+"/a", dir+"/c"),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of a missing file: %v", what, err)
			}
		}
	})
}

func TestReadFileRefusesMoreThanTheLimit(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		if err := WriteFileAtomic(fsys, dir+"/a", []byte("12345")); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(fsys, dir+"/a", 5); err != nil || string(got) != "12345" {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := ReadFile(fsys, dir+"/a", 4); err == nil {
			t.Fatal("read 5 bytes with a limit of 4")
		}
	})
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	must(f.WriteVec([][]byte{[]byte("durable")}, 0))(t)
	if err := errors.Join(f.Sync(), m.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	must(f.WriteVec([][]byte{[]byte(" lost")}, 7))(t)
	g := must(m.Create("/g"))(t)
	must(g.WriteVec([][]byte{[]byte("synced, but not its name")}, 0))(t)
	if err := g.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		crash Crash
		want  string
		names []string
	}{
		{"power cut", Crash{}, "durable", []string{"f"}},
		{"names kept", Crash{KeepNames: true}, "durable", []string{"f", "g"}},
		{"process", ProcessCrash(), "durable lost", []string{"f", "g"}},
		{"torn", Crash{Content: func(_ string, d, w []byte) []byte { return w[:len(d)+2] }}, "durable l", []string{"f"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after := m.Crash(tc.crash)
			if got := must(ReadFile(after, "/f", 100))(t); string(got) != tc.want {
				t.Errorf("content %q, want %q", got, tc.want)
			}
			if got := must(after.List("/"))(t); !slices.Equal(got, tc.names) {
				t.Errorf("names %q, want %q", got, tc.names)
			}
		})
	}
}

func TestAllocateTakesTheRoomAndKeepsTheContent(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		f := must(fsys.Create(dir + "/a"))(t)
		must(f.WriteVec([][]byte{[]byte("abc")}, 0))(t)
		for _, size := range []int64{5000, 10} {
			if err := f.Allocate(size); err != nil {
				t.Fatal(err)
			}
			if got := must(f.Size())(t); got != 5000 {
				t.Errorf("size %d after the allocation of %d, want 5000", got, size)
			}
		}
		if got := must(ReadFile(fsys, dir+"/a", 5000))(t); string(got[:4]) != "abc\x00" {
			t.Errorf("content %q", got[:4])
		}
		if s := must(fsys.Space(dir))(t); s.Free <= 0 || s.Total < s.Free {
			t.Errorf("space %+v", s)
		}
		if _, err := fsys.Space(dir + "/nowhere"); err == nil && dir != "/data" {
			t.Error("there is space in a directory that is not there")
		}
	})
	m := NewMem()
	m.SetCapacity(100)
	f := must(m.Create("/f"))(t)
	must(f.WriteVec([][]byte{[]byte("12345")}, 0))(t)
	if got := must(m.Space("/"))(t); got != (Space{95, 100}) {
		t.Errorf("space %+v, want 95 of 100", got)
	}
	if err := f.Allocate(101); !IsNoSpace(err) {
		t.Errorf("more than there is: %v, want no space", err)
	}
	if err := f.Allocate(100); err != nil || must(m.Space("/"))(t).Free != 0 {
		t.Errorf("all there is: %v", err)
	}
}

func TestFullDiskWritesWhatFits(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	m.SetCapacity(8)
	must(f.WriteVec([][]byte{[]byte("12345")}, 0))(t)
	n, err := f.WriteVec([][]byte{[]byte("678"), []byte("9")}, 5)
	if n != 3 || !IsNoSpace(err) {
		t.Fatalf("wrote %d, %v; want 3 and no space", n, err)
	}
	if m.Used() != 8 {
		t.Fatalf("used %d, want 8", m.Used())
	}
	m.SetCapacity(-1)
	must(f.WriteVec([][]byte{[]byte("9")}, 8))(t)
}

func TestFaultStopsOperation(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	m.SetFault(func(op Op) error {
		if op.Kind == OpSync && op.Name == "/f" {
			return syscall.EIO
		}
		return nil
	})
	must(f.WriteVec([][]byte{[]byte("x")}, 0))(t)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	if got := must(ReadFile(m.Crash(Crash{KeepNames: true}), "/f", 9))(t); len(got) != 0 {
		t.Fatalf("a failed sync made %q durable", got)
	}
}

func TestAtomicWriteLeavesOldOrNew(t *testing.T) {
	m := NewMem()
	if err := WriteFileAtomic(m, "/f", []byte("old")); err != nil {
		t.Fatal(err)
	}
	check := func(at Op, c Crash) {
		got, err := ReadFile(m.Crash(c), "/f", 10)
		if err != nil || string(got) != "old" && string(got) != "new" {
			t.Errorf("crash before %v: %q, %v", at, got, err)
		}
	}
	m.SetFault(func(op Op) error {
		check(op, Crash{})
		check(op, Crash{KeepNames: true})
		return nil
	})
	if err := WriteFileAtomic(m, "/f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	m.SetFault(nil)
	if got := must(ReadFile(m.Crash(Crash{}), "/f", 10))(t); string(got) != "new" {
		t.Fatalf("after it returned, a crash leaves %q", got)
	}
}
