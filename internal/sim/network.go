package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// packet is something on its way. It may come late, twice, out of order or never.
type packet interface {
	// deliver lets it arrive.
	deliver(w *world)
	// ends are from whom to whom it goes.
	ends() (from, to epoch.ReplicaID)
}

// api and clients are ends of a link beside the replicas.
const (
	api     epoch.ReplicaID = maxReplicas
	clients epoch.ReplicaID = maxReplicas + 1
)

// send puts a packet on its way.
func (w *world) send(p packet) {
	if from, to := p.ends(); w.cut(from, to) {
		return
	}
	w.packets = append(w.packets, p)
}

func (w *world) cut(from, to epoch.ReplicaID) bool { return w.cuts[[2]epoch.ReplicaID{from, to}] }

// arrive delivers packet i, which stays on its way if it is to arrive again.
func (w *world) arrive(i int, again bool) {
	p := w.packets[i]
	if !again {
		w.packets = slices.Delete(w.packets, i, i+1)
	}
	if _, to := p.ends(); !w.cut(api, to) || to != api {
		p.deliver(w)
	}
}

// The network's moves.

func (w *world) packetArrives() {
	if len(w.packets) > 0 {
		w.arrive(w.rng.IntN(len(w.packets)), w.chance(10))
	}
}

// oldestArrives is the network at its best: in order, once.
func (w *world) oldestArrives() {
	for n := min(len(w.packets), 1+w.rng.IntN(4)); n > 0 && len(w.packets) > 0; n-- {
		w.arrive(0, false)
	}
}

func (w *world) packetLost() {
	if n := len(w.packets); n > 0 {
		i := w.rng.IntN(n)
		w.packets = slices.Delete(w.packets, i, i+1)
	}
}

// linkCut cuts or mends a link, in one direction or both.
func (w *world) linkCut() {
	if len(w.cuts) > 0 && w.chance(60) {
		w.say("all links are whole again")
		clear(w.cuts)
		return
	}
	a, b := epoch.ReplicaID(w.rng.IntN(maxReplicas+2)), epoch.ReplicaID(w.rng.IntN(maxReplicas+2))
	w.cuts[[2]epoch.ReplicaID{a, b}] = true
	if w.chance(50) {
		w.cuts[[2]epoch.ReplicaID{b, a}] = true
	}
	w.say("link cut between %d and %d", a, b)
}

// connectionReset closes the fetch connection of a follower, with all that is on it.
func (w *world) connectionReset() {
	if p, ok := pick(w, w.awake()); ok && p.node != nil && p.fetching {
		w.say("%s: its fetch connection is reset", p)
		p.reconnect()
		w.after(p)
	}
}

// fetchPacket is a follower's fetch.
type fetchPacket struct {
	from  *process
	to    epoch.ReplicaID
	query core.FetchRequest
	fetch core.ReplicaFetch
}

func (f *fetchPacket) ends() (from, to epoch.ReplicaID) { return f.from.id, f.to }

func (f *fetchPacket) deliver(w *world) {
	p, ok := w.processOf(f.to)
	if !ok || p.node == nil {
		return
	}
	q := f.query
	n := p.node
	w.say("%s gets %s of %s", p, fetchName(q), f.from)
	p.node.ReplicaFetch(&node.Fetch{Request: f.fetch, MaxWait: 500 * time.Millisecond, Answer: func(a core.FetchAnswer, err error) {
		w.answerFetch(p, n, f, a, err)
	}})
	w.after(p)
}

func fetchName(q core.FetchRequest) string {
	return fmt.Sprintf("fetch(%d,%d,%d)", q.Offset, q.LastEpoch, q.LeaderEpoch)
}

// answerFetch sends the answer off; what it holds is read then, or later, when the log
// may be another one.
func (w *world) answerFetch(p *process, n *node.Node, f *fetchPacket, a core.FetchAnswer, err error) {
	if err == nil {
		p.fetched = p.clock()
	}
	out := &answerPacket{from: p, to: f.from, query: f.query, connection: f.fetch.Connection, err: err, astray: !w.store.line.has(n.Core().Record())}
	if err == nil {
		maxBytes := 1 << 20
		if !w.healing && w.chance(50) {
			maxBytes = 1 + w.rng.IntN(400)
		}
		out.read = func() (core.FetchResponse, error) { return n.ReadForReplica(f.query.Offset, maxBytes, a) }
		if w.healing || w.chance(70) {
			out.response, out.err = out.read()
			out.read = nil
		}
	}
	out.start, out.end = n.Log().StartOffset(), n.Log().EndOffset()
	w.send(out)
}

// answerPacket is what a leader says to a fetch.
type answerPacket struct {
	from, to   *process
	query      core.FetchRequest
	connection uint64
	read       func() (core.FetchResponse, error) // not yet read
	response   core.FetchResponse
	err        error
	start, end epoch.Offset
	astray     bool // it comes from a leader on lost ground
}

func (a *answerPacket) ends() (from, to epoch.ReplicaID) { return a.from.id, a.to.id }

func (a *answerPacket) deliver(w *world) {
	p := a.to
	if a.read != nil {
		if a.from.dead {
			return
		}
		a.response, a.err = a.read()
		a.read = nil
	}
	if p.dead || p.paused || p.node == nil {
		return
	}
	if n := len(a.response.Records); n > 0 && w.cfg.Faults.Wire && !w.healing && w.chance(15) {
		a.response.Records = w.damaged(a.response.Records)
		w.say("  a bit is damaged on the way")
	}
	if w.tracing {
		w.say("%s is answered %s: %v, diverging %v, HW %d, %d bytes", p, fetchName(a.query), orOK(a.err), a.response.Diverging, a.response.HighWatermark, len(a.response.Records))
	}
	p.awaiting = false
	p.strayed = p.strayed || a.astray && a.err == nil
	switch {
	case errors.Is(a.err, core.ErrOffsetOutOfRange):
		p.node.OutOfRange(a.query, a.start, a.end)
	case a.err != nil:
		p.node.FetchFailed(a.query, errors.Is(a.err, core.ErrFencedLeaderEpoch))
	default:
		p.node.Fetched(a.query, a.response)
	}
	w.after(p)
}

// damaged is a copy with one bit turned, but none of a leader epoch: Kafka's format has
// no checksum over those four bytes of a batch.
func (w *world) damaged(records []byte) []byte {
	out := slices.Clone(records)
	for {
		at := w.rng.IntN(len(out))
		begin := 0
		for rest := records; len(rest) > 0; {
			b, tail, err := batch.Next(rest)
			if err != nil || begin+len(b) > at {
				break
			}
			begin, rest = begin+len(b), tail
		}
		if in := at - begin; in < 12 || in >= 16 {
			out[at] ^= 1 << w.rng.IntN(8)
			return out
		}
	}
}

// closePacket tells a replica that a fetch connection has closed.
type closePacket struct {
	from, to   epoch.ReplicaID
	connection uint64
}

func (c *closePacket) ends() (from, to epoch.ReplicaID) { return c.from, c.to }

func (c *closePacket) deliver(w *world) {
	if p, ok := w.processOf(c.to); ok && p.node != nil {
		_, ask := p.node.Disconnected(c.from, c.connection)
		if q, alive := w.processOf(c.from); ask && (!alive && w.chance(50) || alive && !w.healing && w.chance(5)) {
			w.say("%s is refused where %s fetched from; alive: %t", p, q, alive)
			p.node.Refused(c.from, c.connection)
		}
		w.after(p)
	}
}

// processOf picks a process of a replica; there may be a zombie beside the right one.
func (w *world) processOf(id epoch.ReplicaID) (*process, bool) {
	var at []*process
	for _, p := range w.awake() {
		if p.id == id {
			at = append(at, p)
		}
	}
	return pick(w, at)
}
