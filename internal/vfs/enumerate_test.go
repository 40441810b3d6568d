package vfs

import (
	"slices"
	"strings"
	"testing"
)

func TestEachCrashTriesAllThatMayBeLeft(t *testing.T) {
	m := NewMem()
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	f := must(m.Create("/d/a"))(t)
	must(f.WriteVec([][]byte{[]byte("old")}, 0))(t)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	must(f.WriteVec([][]byte{[]byte("+new")}, 3))(t)
	must(m.Create("/d/b"))(t)
	if err := m.Rename("/d/b", "/d/c"); err != nil {
		t.Fatal(err)
	}
	var got []string
	n := m.EachCrash(1000, func(left *Mem) {
		names := must(left.List("/d"))(t)
		got = append(got, strings.Join(names, "")+" "+string(must(ReadFile(left, "/d/a", 100))(t)))
	})
	slices.Sort(got)
	want := []string{}
	for _, names := range []string{"a", "ab", "ac"} {
		for _, content := range []string{"old", "old\x00\x00\x00\x00", "old+new"} {
			want = append(want, names+" "+content)
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) || n != len(want) {
		t.Errorf("%d crashes left\n%q\nwant\n%q", n, got, want)
	}
	if n := m.EachCrash(4, func(*Mem) {}); n != 4 {
		t.Errorf("%d crashes, want 4 at most", n)
	}
}

func TestEachCrashTearsWritesAtSectors(t *testing.T) {
	m := NewMem()
	f := must(m.Create("/f"))(t)
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("x", 2*SectorSize+10))
	must(f.WriteVec([][]byte{text}, 0))(t)
	sizes := map[int]bool{}
	holes := 0
	m.EachCrash(1000, func(left *Mem) {
		b := must(ReadFile(left, "/f", 1<<20))(t)
		sizes[len(b)] = true
		if i := slices.Index(b, 0); i >= 0 && slices.Contains(b[i:], 'x') {
			holes++
		}
	})
	for _, size := range []int{0, SectorSize, 2 * SectorSize, len(text)} {
		if !sizes[size] {
			t.Errorf("no crash leaves %d bytes, only %v", size, sizes)
		}
	}
	if holes != 2 {
		t.Errorf("%d crashes leave a hole of a sector, want 2", holes)
	}
}
