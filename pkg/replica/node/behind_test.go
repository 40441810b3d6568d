package node

import (
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

func TestBytesBehindAreToldOfReplicasThatAreNotInSync(t *testing.T) {
	w := newWorld(t, 3, 2, nil)
	leader := w.startAll(0, 1, 2)
	other := w.procs[(leader.id+1)%3]
	behind := func() int64 {
		for _, q := range leader.n.Core().Progress(w.now).Replicas {
			if q.ID == other.id {
				return q.BytesBehind
			}
		}
		return -1
	}
	other.kill()
	w.run("it out of sync", func() bool { return !w.record.Record.InSync(other.id) })
	out := leader.produce("a")
	w.run("an acknowledgement", func() bool { return out.Err == nil })
	other.disk, other.witness = vfs.NewMem(), &volume.PlainMemory{} // its volume is lost
	must(t, other.start())
	w.run("the bytes that it has to copy", func() bool { return behind() == leader.n.Log().Size() })
	w.run("all in sync", w.inSync(0, 1, 2))
	w.run("nothing behind", func() bool { return behind() == 0 })
}
