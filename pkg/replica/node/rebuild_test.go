package node

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// rots turns a bit of a replica's first segment.
func (p *proc) rots() {
	p.w.t.Helper()
	const name = "/data/orders-0/00000000000000000000.log"
	b, err := vfs.ReadFile(p.disk, name, 1<<20)
	if err != nil {
		p.w.t.Fatal(err)
	}
	b[batch.HeaderSize+2] ^= 1
	f, err := p.disk.Open(name)
	if err == nil {
		_, err = f.WriteVec([][]byte{b}, 0)
	}
	if err != nil {
		p.w.t.Fatal(err)
	}
}

// read reads as a consumer does, and tells the owner what it found.
func (p *proc) read(from epoch.Offset) error {
	_, err := p.n.Read(p.n.View(), Read{Offset: from, MaxBytes: 1 << 20, AtLeastOne: true, CurrentLeaderEpoch: epoch.NoEpoch, LastFetchedEpoch: epoch.NoEpoch})
	if err != nil {
		p.n.NoteDamage(err)
	}
	return err
}

// damaged is a world in which replica 0 leads, with more than a segment of records.
func damaged(t *testing.T, replicas, minISR int) *world {
	t.Helper()
	w := newWorld(t, replicas, minISR, func(s *Settings) { s.SegmentBytes = 2000 })
	for _, p := range w.procs {
		must(t, p.start())
	}
	w.elect(0)
	w.run("all in sync", func() bool { return len(w.record.Record.ISR) == replicas })
	var last *Produced
	for range 5 {
		last = w.procs[0].produce(strings.Repeat("x", 900))
	}
	w.run("all committed", func() bool { return last.Err == nil })
	return w
}

// Nobody is given the damaged record; the leader hands over, and is rebuilt from the others.
func TestADamagedLeaderHandsOverAndIsRebuilt(t *testing.T) {
	w := damaged(t, 3, 2)
	a := w.procs[0]
	id := a.n.Identity().DirectoryID
	a.rots()
	if err := a.read(0); !errors.Is(err, log.ErrDamaged) {
		t.Fatalf("read: %v, want ErrDamaged", err)
	}
	w.run("another leader", func() bool { return w.leads(1)() || w.leads(2)() })
	w.run("the end of the damaged one", func() bool { return a.n.Err() != nil })
	a.kill()
	must(t, a.start())
	w.run("it to be in sync again", w.inSync(0, 1, 2))
	if a.n.Identity().DirectoryID == id {
		t.Error("it has kept the directory id of the damaged log")
	}
	if got, want := a.values(), w.procs[1].values(); !slices.Equal(got, want) || len(got) != 5 {
		t.Errorf("its log has %d records, the other %d", len(got), len(want))
	}
}

// A follower that finds damage leaves at once, if others are enough.
func TestADamagedFollowerIsRebuilt(t *testing.T) {
	w := damaged(t, 3, 2)
	b := w.procs[1]
	b.rots()
	_, err := b.n.Log().Verify(0, 5, 1<<20)
	b.n.NoteDamage(err)
	if b.n.Err() == nil {
		t.Fatalf("it goes on with %v", err)
	}
	b.kill()
	must(t, b.start())
	w.run("it to be in sync again", w.inSync(0, 1, 2))
	if next, err := b.n.Log().Verify(0, 5, 1<<20); err != nil || next == 0 {
		t.Errorf("verified up to %d: %v", next, err)
	}
}

// While it is needed it stays: what is whole is worth more than nothing. It says that it
// is damaged, and goes once others are enough.
func TestADamagedLeaderStaysWhileItIsNeeded(t *testing.T) {
	w := damaged(t, 3, 2)
	a, c := w.procs[0], w.procs[2]
	c.kill()
	a.n.Disconnected(2, 4)
	w.run("the ISR to shrink", w.inSync(0, 1))
	a.rots()
	if err := a.read(0); !errors.Is(err, log.ErrDamaged) {
		t.Fatalf("read: %v, want ErrDamaged", err)
	}
	w.run("the record to say so", func() bool {
		p := w.record.Record.Progress
		return p != nil && slices.ContainsFunc(p.Replicas, func(r epoch.ReplicaProgress) bool { return r.ID == 0 && r.Damaged })
	})
	if err := a.read(4); err != nil || !w.leads(0)() {
		t.Errorf("another record: %v; want it to be read, and replica 0 to lead", err)
	}
	r := a.produce("more")
	w.run("a commit", func() bool { return r.Err == nil })
	must(t, c.start())
	w.run("another leader", func() bool { return w.leads(1)() || w.leads(2)() })
	w.run("the end of the damaged one", func() bool { return a.n.Err() != nil })
}
