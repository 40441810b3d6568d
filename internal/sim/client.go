package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// producer is a client that writes. An idempotent one has several batches under way
// and sends each again, in order, until it knows its fate; a plain one sends once.
type producer struct {
	w          *world
	name       string
	idempotent bool
	acks       int16
	id         int64
	sequence   int32
	leader     epoch.ReplicaID // as it believes
	inFlight   []*sending
}

// sending is a batch on its way to be acknowledged.
type sending struct {
	values   []uint32
	id       int64
	sequence int32
	tries    int
}

func newProducers(w *world) []*producer {
	out := make([]*producer, 0, 4)
	for i, acks := range []int16{core.AcksAll, core.AcksAll, core.AcksOne, core.AcksNone} {
		p := &producer{w: w, name: fmt.Sprint("producer ", i), acks: acks, idempotent: i == 0, id: batch.NoProducer}
		if p.idempotent {
			p.newID()
		}
		out = append(out, p)
	}
	return out
}

func (p *producer) newID() {
	p.w.counters.producers++
	p.id, p.sequence = int64(1000+p.w.counters.producers), 0
}

// produce begins with a new batch, if it may.
func (p *producer) produce() *sending {
	limit := 1
	if p.idempotent {
		limit = 5
	}
	if len(p.inFlight) >= limit || p.w.counters.values >= p.w.maxValues {
		return nil
	}
	s := &sending{id: p.id, sequence: -1}
	if p.idempotent {
		s.sequence = p.sequence
	}
	for range 1 + p.w.rng.IntN(3) {
		p.w.counters.values++
		s.values = append(s.values, uint32(p.w.counters.values))
		p.sequence++
	}
	p.inFlight = append(p.inFlight, s)
	if p.idempotent {
		p.w.oracle.once(s.values)
	}
	return s
}

// send puts a batch on its way to whom the producer believes to lead.
func (p *producer) send(s *sending) {
	s.tries++
	p.w.say("%s sends %v with acks %d, sequence %d, to %d", p.name, s.values, p.acks, s.sequence, p.leader)
	p.w.send(&producePacket{producer: p, sending: s, to: p.leader})
}

// retry sends again whatever is under way; a plain producer gives up.
func (p *producer) retry() {
	if !p.idempotent {
		p.inFlight = nil
		return
	}
	for _, s := range slices.Clone(p.inFlight) {
		p.send(s)
	}
}

func (p *producer) done(s *sending) {
	p.inFlight = slices.DeleteFunc(p.inFlight, func(t *sending) bool { return t == s })
}

// hears an answer.
func (p *producer) hears(s *sending, err error) {
	if !slices.Contains(p.inFlight, s) {
		return
	}
	switch {
	case err == nil:
		p.done(s)
		return
	case !p.idempotent:
		p.done(s)
	case errors.Is(err, log.ErrInvalidProducerEpoch), errors.Is(err, log.ErrOutOfOrderSequence) && s == p.inFlight[0] && s.tries > 3:
		// An honest producer that lost its place begins anew: what became of its
		// batches it does not know.
		p.inFlight = nil
		p.newID()
	}
	p.leader = p.w.believedLeader()
}

// believedLeader is what metadata may say: mostly the truth.
func (w *world) believedLeader() epoch.ReplicaID {
	if !w.healing && w.chance(20) {
		return epoch.ReplicaID(w.rng.IntN(maxReplicas))
	}
	return w.store.current().Record.Leader
}

// producePacket is a produce request.
type producePacket struct {
	producer *producer
	sending  *sending
	to       epoch.ReplicaID
}

func (q *producePacket) ends() (from, to epoch.ReplicaID) { return clients, q.to }

func (q *producePacket) deliver(w *world) {
	p, ok := w.processOf(q.to)
	if !ok || p.node == nil {
		w.send(&replyPacket{q, q.to, core.ErrNotLeader})
		return
	}
	requests, sent := []node.Produce{w.request(p, q)}, []*producePacket{q}
	if w.chance(30) { // what else waits shares the write
		w.packets = slices.DeleteFunc(w.packets, func(other packet) bool {
			r, ok := other.(*producePacket)
			if !ok || r == q || r.to != q.to || len(requests) > 3 {
				return false
			}
			requests, sent = append(requests, w.request(p, r)), append(sent, r)
			return true
		})
	}
	w.say("%s gets %d produce requests", p, len(requests))
	live, end := len(p.node.Core().LiveISR(p.clock())), p.mirror.end()
	p.node.Produce(requests)
	w.after(p)
	w.oracle.admitted(p, live, end, sent)
}

func (w *world) request(p *process, q *producePacket) node.Produce {
	s, acks := q.sending, q.producer.acks
	return node.Produce{Batch: newBatch(s.values, s.id, s.sequence), Acks: acks, Timeout: time.Duration(1+w.rng.IntN(30)) * time.Second,
		Done: func(r node.Produced) {
			if w.tracing {
				w.say("  %s answers %v: offset %d, %v", p, s.values, r.BaseOffset, orOK(r.Err))
			}
			if r.Err == nil && acks == core.AcksAll {
				w.oracle.acknowledged(p, s.values, r.BaseOffset)
			}
			w.send(&replyPacket{q, p.id, r.Err})
		}}
}

// replyPacket answers a produce request.
type replyPacket struct {
	request *producePacket
	from    epoch.ReplicaID
	err     error
}

func (r *replyPacket) ends() (from, to epoch.ReplicaID) { return r.from, clients }

func (r *replyPacket) deliver(*world) { r.request.producer.hears(r.request.sending, r.err) }

// consumer is a client that reads, from one end to the other, whoever serves it.
type consumer struct {
	name      string
	position  epoch.Offset
	epoch     epoch.LeaderEpoch // the newest that it has heard of
	lastEpoch epoch.LeaderEpoch // of the last record that it has read
}

func (w *world) consumeSome() {
	c, _ := pick(w, w.consumers)
	p, ok := pick(w, w.awake())
	if !ok || p.node == nil || w.cut(p.id, clients) || w.cut(clients, p.id) {
		return
	}
	w.consume(c, p)
}

func (w *world) consume(c *consumer, p *process) {
	v := p.node.View()
	if err := v.Leads(epoch.NoEpoch); err != nil || v.LeaderEpoch < c.epoch || !w.oracle.counts(p) {
		return
	}
	c.epoch = v.LeaderEpoch
	if !v.Behind() {
		w.oracle.latest(p, v)
	}
	res, err := p.node.Read(v, node.Read{Offset: c.position, MaxBytes: 1 + w.rng.IntN(1000), AtLeastOne: true, CurrentLeaderEpoch: c.epoch, LastFetchedEpoch: c.lastEpoch})
	switch {
	case errors.Is(err, core.ErrOffsetOutOfRange):
		w.oracle.outOfRange(c, v)
		return
	case err != nil:
		return
	case res.Diverging != nil:
		w.oracle.diverges(c, p, *res.Diverging)
		return
	}
	for rest := res.Records; len(rest) > 0; {
		var b batch.Batch
		if b, rest, err = batch.Next(rest); err != nil {
			w.fail("I12", "%s is shown bytes at %d that are no batch: %v", c.name, c.position, err)
			return
		}
		for i, value := range values(b) {
			if o := b.BaseOffset() + epoch.Offset(i); o >= c.position {
				w.oracle.consumed(c, p, o, entry{b.LeaderEpoch(), value})
				c.position, c.lastEpoch = o+1, b.LeaderEpoch()
			}
		}
	}
}

// deleteSome asks a replica to delete records (KIP-107).
func (w *world) deleteSome() {
	p, ok := pick(w, w.awake())
	if !ok || p.node == nil {
		return
	}
	v := p.node.View()
	before := v.LogStartOffset + epoch.Offset(w.rng.IntN(int(v.LogEndOffset-v.LogStartOffset)+2))
	p.node.Delete(node.Deletion{Before: before, Timeout: time.Second, Done: func(low epoch.Offset, err error) {
		w.say("  %s answers the deletion before %d: low watermark %d, %v", p, before, low, orOK(err))
		if start := p.node.Log().StartOffset(); err == nil && before > 0 && (low < before || start < before) {
			w.fail("low watermark", "%s says that all is deleted before %d: low watermark %d, log start %d", p, before, low, start)
		}
	}})
	w.after(p)
}

// The clients' moves.

func (w *world) produceSome() {
	p, _ := pick(w, w.producers)
	if s := p.produce(); s != nil {
		p.send(s)
	}
}

func (w *world) retrySome() {
	p, _ := pick(w, w.producers)
	if len(p.inFlight) > 0 {
		p.leader = w.believedLeader()
		p.retry()
	}
}
