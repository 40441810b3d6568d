package sim

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// What comes much later than anybody expects it is here, and what comes from somebody
// whom nobody expects.

// packetStrays takes a packet out of the order of things: it arrives when whoever sent
// it may have died, come back and lost its volume, or never.
func (w *world) packetStrays() {
	if n := len(w.packets); n > 0 {
		i := w.rng.IntN(n)
		w.strays = append(w.strays, w.packets[i])
		w.packets = slices.Delete(w.packets, i, i+1)
	}
}

// readLate keeps an answer that a leader has not read from its log yet: when it does, it
// may have become a follower, with another history.
func (w *world) readLate() {
	var at []int
	for i, p := range w.packets {
		if a, ok := p.(*answerPacket); ok && a.read != nil {
			at = append(at, i)
		}
	}
	if i, ok := pick(w, at); ok {
		w.strays = append(w.strays, w.packets[i])
		w.packets = slices.Delete(w.packets, i, i+1)
	}
}

func (w *world) strayArrives() {
	if n := len(w.strays); n > 0 {
		i := w.rng.IntN(n)
		w.packets = append(w.packets, w.strays[i])
		w.strays = slices.Delete(w.strays, i, i+1)
		w.arrive(len(w.packets)-1, false)
	}
}

// strangerFetches is a fetch by somebody who speaks the protocol, and knows all of a
// replica but one thing that only the record tells: its start id or its directory id
// (rule 9). What it is answered concerns nobody.
func (w *world) strangerFetches() {
	p, ok := pick(w, w.awake())
	if !ok || p.node == nil {
		return
	}
	rec := p.node.Core().Record()
	r, ok := pick(w, rec.Replicas)
	if !ok || r.ID == p.id {
		return
	}
	l := p.node.Log()
	w.counters.connections++
	f := core.ReplicaFetch{Replica: r.ID, Session: r.Session, StartID: r.StartID, DirectoryID: r.DirectoryID, LeaderEpoch: rec.LeaderEpoch,
		Offset: l.EndOffset(), LastEpoch: l.EpochCache().Latest(), LogStartOffset: l.StartOffset(), HighWatermark: l.StartOffset(),
		Connection: uint64(w.counters.connections)}
	if w.chance(50) {
		f.StartID = "a stranger"
	} else {
		f.DirectoryID = w.newUUID()
	}
	w.say("%s gets a fetch of a stranger, in the name of %d", p, r.ID)
	p.node.ReplicaFetch(&node.Fetch{Request: f, MaxWait: 500 * time.Millisecond, Answer: func(core.FetchAnswer, error) {}})
	w.after(p)
}

// replicaReplaced gives up on a process that nobody reaches, on a machine with a disk of
// its own: its replica begins anew elsewhere, with an empty volume, while the process
// lives on with what it has.
func (w *world) replicaReplaced() {
	p, ok := pick(w, w.procs)
	if !ok || p.zombie || w.count(func(q *process) bool { return q.zombie }) > 1 {
		return
	}
	w.say("%s becomes a zombie, with a disk of its own", p)
	h := p.host
	h.disk.SetFault(nil)
	p.zombie, h.process = true, nil
	n := newHost(h.id)
	n.boot, n.pod, n.damaged = h.boot+1, h.pod+1, true
	*h = *n
}

// forgottenRequest is a wish for an unclean election that nobody took back: it is read
// again and again, and names the leader epoch in which it was made.
func (w *world) forgottenRequest() {
	o, _ := pick(w, w.operators[:])
	base := o.base()
	if w.uncleanWish == epoch.NoEpoch || w.chance(20) {
		w.uncleanWish = base.Record.LeaderEpoch
	}
	change := w.newChangeID()
	r, err := epoch.ElectUnclean(base.Record, epoch.UncleanRequest{LeaderEpoch: w.uncleanWish, Replica: epoch.NoReplica, Live: w.live(), Change: change})
	if err == nil {
		w.oracle.wished[change] = w.uncleanWish
	}
	o.propose("an unclean election, as asked for", base, r, err)
}
