package node

import (
	"testing"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// A log that was cut looks whole to the next start: only what was written down before says
// what is missing.
func TestDamageEndsThePromiseEvenIfTheStartThatCutsIsKilled(t *testing.T) {
	w := newWorld(t, 2, 1, everyBatch)
	a, b := w.procs[0], w.procs[1]
	must(t, a.start())
	w.run("replica 0 to lead", w.leads(0))
	must(t, b.start())
	w.run("both to be in sync", w.inSync(0, 1))
	for _, v := range []string{"one", "two"} {
		r := a.produce(v)
		w.run("the commit", func() bool { return r.Err == nil })
	}
	w.run("replica 1 to have all", func() bool { return len(b.values()) == 2 })
	id := b.n.Identity()
	b.kill()
	b.witness = &volume.PlainMemory{} // another pod
	f, err := b.disk.Open("/data/orders-0/00000000000000000000.log")
	must(t, err)
	_, err = f.WriteVec([][]byte{{0xff}}, batch.HeaderSize)
	must(t, err)
	must(t, f.Sync())
	killed, err := Open(b.config())
	must(t, err)
	if killed.Recovery().CutAt != 0 {
		t.Fatalf("%+v; want all cut", killed.Recovery())
	}
	killed.Close()
	must(t, b.start())
	if got := b.n.Identity(); got.DirectoryID == id.DirectoryID {
		t.Errorf("the directory id was kept with %q of what was acknowledged", b.values())
	}
	w.run("the replica to have all again", func() bool { return len(b.values()) == 2 && w.inSync(0, 1)() })
}
