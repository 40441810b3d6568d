package volume

import (
	"math"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
)

const diskSize = 1 << 20

// limited opens a volume on a disk of one MiB: the margin is 64 KiB, the reserve 16 KiB.
func limited(t *testing.T, m *vfs.Mem) *Volume {
	t.Helper()
	cfg := config("/v")
	cfg.FS, cfg.Memory = m, &PlainMemory{}
	return opened(t, cfg)
}

func TestTheReserveIsTakenGivenBackAndTakenAgain(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(diskSize)
	v := limited(t, m)
	room := func() Room {
		t.Helper()
		r, err := v.Room()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := room()
	if before.Margin != diskSize/16 {
		t.Errorf("the margin is %d, want a 16th of the disk", before.Margin)
	}
	take := func(want int64) {
		t.Helper()
		if err := v.Reserve(); err != nil {
			t.Fatal(err)
		}
		if got := before.Free - room().Free; got != want {
			t.Errorf("%d bytes are reserved, want %d", got, want)
		}
	}
	take(diskSize / 64)
	take(diskSize / 64) // once is enough
	if !v.Release() || room().Free != before.Free {
		t.Errorf("after the release %d bytes are free, want %d", room().Free, before.Free)
	}
	if v.Release() {
		t.Error("the reserve is given back twice")
	}
	f, err := m.Create("/others")
	if err == nil {
		err = f.Allocate(before.Free - diskSize/16)
	}
	if err != nil {
		t.Fatal(err)
	}
	before = room()
	take(0) // only little room is left: it is for others
}

func TestADiskWithoutALimitNeedsNoReserve(t *testing.T) {
	v := limited(t, vfs.NewMem())
	if err := v.Reserve(); err != nil {
		t.Fatal(err)
	}
	if r, err := v.Room(); err != nil || r.Margin != 0 || r.Free < math.MaxInt64/2 || v.reserved() != 0 {
		t.Errorf("room %+v (%v), %d bytes reserved; want no margin and no reserve", r, err, v.reserved())
	}
}

func TestAStartOnAFullVolumeTakesTheReserve(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(diskSize)
	v := limited(t, m)
	if err := v.Reserve(); err != nil {
		t.Fatal(err)
	}
	id := v.DirectoryID()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	m.SetCapacity(m.Used())
	v = limited(t, m)
	if v.DirectoryID() != id {
		t.Error("the directory id was given up")
	}
	if r, err := v.Room(); err != nil || r.Free == 0 {
		t.Errorf("room %+v (%v): the start has nothing to write on", r, err)
	}
}
