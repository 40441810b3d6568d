package node

import (
	"errors"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// KAFKA-18723: between the answer to a fetch and the read of its records the leader was
// replaced, and leads again. The records that it reads then are of another history than
// the one that the fetch was answered for.
func TestRecordsOfALaterEpochAreNotGivenOutForAnEarlierFetch(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	for _, p := range w.procs {
		must(t, p.start())
	}
	w.run("both in the ISR", w.inSync(0, 1))
	w.elect(0)
	w.procs[0].produceAlone("one")
	leader, me := w.procs[0].n, w.procs[1].n.Identity()
	var allowed core.FetchAnswer
	leader.ReplicaFetch(&Fetch{
		Request: core.ReplicaFetch{Replica: 1, Session: me.Session, StartID: me.StartID, DirectoryID: me.DirectoryID,
			LeaderEpoch: leader.View().LeaderEpoch, Offset: 0, LastEpoch: -1, Connection: 99},
		Answer: func(a core.FetchAnswer, err error) {
			must(t, err)
			allowed = a
		},
	})
	if r, err := leader.ReadForReplica(0, 1<<20, allowed); err != nil || len(r.Records) == 0 {
		t.Fatalf("read in the same epoch: %d bytes, %v", len(r.Records), err)
	}
	w.elect(1)
	w.elect(0)
	if r, err := leader.ReadForReplica(0, 1<<20, allowed); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("read two epochs later: %d bytes, %v, want %v", len(r.Records), err, core.ErrNotLeader)
	}
}
