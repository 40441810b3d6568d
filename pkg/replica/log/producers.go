package log

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// rememberedBatches is how many batches of a producer can be recognised when they
// are sent again: as many as a client may have in flight (KIP-98).
const rememberedBatches = 5

// noCoordinator stands in a snapshot for "no transaction coordinator".
const noCoordinator int32 = -1

// producer is what the log knows of one idempotent producer.
type producer struct {
	epoch         int16
	coordinator   int32
	lastTimestamp int64
	// batches are the newest ones, oldest first.
	batches []producerBatch
	// silentSince is when expire first saw it without a new batch; zero after a batch.
	silentSince time.Time
}

// producerBatch is a batch that a producer may send again.
type producerBatch struct {
	first, last int32 // sequence numbers
	lastOffset  epoch.Offset
	delta       int32 // lastOffset - base offset
	timestamp   int64
}

func (p producer) lastSequence() int32 {
	if len(p.batches) == 0 {
		return -1
	}
	return p.batches[len(p.batches)-1].last
}

// with returns p after one more batch; p is left as it was.
func (p producer) with(b batch.Batch, lastOffset epoch.Offset) producer {
	kept := p.batches
	if p.epoch != b.ProducerEpoch() {
		kept = nil
	}
	if len(kept) >= rememberedBatches {
		kept = kept[len(kept)-rememberedBatches+1:]
	}
	next := producer{epoch: b.ProducerEpoch(), coordinator: p.coordinator, lastTimestamp: b.MaxTimestamp()}
	next.batches = append(slices.Clone(kept), producerBatch{
		first: b.BaseSequence(), last: b.LastSequence(), lastOffset: lastOffset,
		delta: b.LastOffsetDelta(), timestamp: b.MaxTimestamp(),
	})
	return next
}

// Duplicate says where a batch is that was sent before: what the answer to the
// repeated request names.
type Duplicate struct {
	Base, Last epoch.Offset
	// Timestamp is the batch's greatest, in milliseconds.
	Timestamp int64
	// Staged says that the original is itself only staged: the answer has to wait
	// for the append, and shares its fate.
	Staged bool
}

// ProducerState is what the log knows of the idempotent producers that wrote to it:
// a function of the batches in the log, the same on every replica. Only the
// appender may use it.
type ProducerState struct {
	producers map[int64]producer
}

func newProducerState() *ProducerState { return &ProducerState{producers: map[int64]producer{}} }

// Len is the number of producers known.
func (s *ProducerState) Len() int { return len(s.producers) }

// Check judges a batch that a client wants appended next, against what is in the
// log. For several batches that go into one Append use Stage. Rules and errors are
// those of Stage.Check.
func (s *ProducerState) Check(b batch.Batch) (Duplicate, bool, error) {
	return s.Stage(epoch.NoOffset).Check(b)
}

// Stage begins a group of batches that will go into one Append at offset next, the
// log's end. The state itself is changed by the Append alone, after the bytes are
// written: if that fails the stage is simply dropped (KAFKA-6683).
func (s *ProducerState) Stage(next epoch.Offset) *Stage {
	return &Stage{state: s, next: next, staged: map[int64]producer{}, from: next}
}

// Stage is the producer state as it will be when the batches added so far are
// appended. Use it as: Check, then Add if the batch is neither refused nor a
// duplicate; at the end Append exactly the batches added, in that order.
type Stage struct {
	state      *ProducerState
	from, next epoch.Offset
	staged     map[int64]producer
}

// Next is the offset that the next batch added will get.
func (g *Stage) Next() epoch.Offset { return g.next }

func (g *Stage) lookup(id int64) (producer, bool) {
	if p, ok := g.staged[id]; ok {
		return p, true
	}
	p, ok := g.state.producers[id]
	return p, ok
}

// Check judges a batch against the log and what was added to the stage. A batch
// that has been seen, with exactly its range of sequence numbers, among the
// producer's last five is a duplicate: success, with the original's offsets, and
// not to be added. Errors: ErrInvalidProducerEpoch for an older epoch than known,
// ErrOutOfOrderSequence for a gap, an overlap, or a new epoch that does not begin
// at 0. A producer that is not known may begin anywhere (KIP-360, KAFKA-6003).
func (g *Stage) Check(b batch.Batch) (Duplicate, bool, error) {
	if b.ProducerID() < 0 {
		return Duplicate{}, false, nil
	}
	p, known := g.lookup(b.ProducerID())
	if !known {
		return Duplicate{}, false, nil
	}
	if d, ok := g.duplicate(p, b); ok {
		return d, true, nil
	}
	return Duplicate{}, false, checkSequence(p, b)
}

func (g *Stage) duplicate(p producer, b batch.Batch) (Duplicate, bool) {
	if p.epoch != b.ProducerEpoch() || guard.Off(guard.DuplicateBatches) {
		return Duplicate{}, false
	}
	for _, seen := range p.batches {
		if seen.first == b.BaseSequence() && seen.last == b.LastSequence() {
			d := Duplicate{Base: seen.lastOffset - epoch.Offset(seen.delta), Last: seen.lastOffset, Timestamp: seen.timestamp}
			d.Staged = g.from != epoch.NoOffset && d.Base >= g.from
			return d, true
		}
	}
	return Duplicate{}, false
}

func checkSequence(p producer, b batch.Batch) error {
	if guard.Off(guard.DuplicateBatches) {
		return nil
	}
	id, first := b.ProducerID(), b.BaseSequence()
	switch {
	case b.ProducerEpoch() < p.epoch:
		return fmt.Errorf("%w: producer %d sends epoch %d, known is %d", ErrInvalidProducerEpoch, id, b.ProducerEpoch(), p.epoch)
	case b.ProducerEpoch() > p.epoch:
		if first != 0 && p.epoch >= 0 {
			return fmt.Errorf("%w: producer %d begins epoch %d with %d instead of 0", ErrOutOfOrderSequence, id, b.ProducerEpoch(), first)
		}
	default:
		last := p.lastSequence()
		want := last + 1
		if last == math.MaxInt32 {
			want = 0
		}
		if first != want {
			return fmt.Errorf("%w: producer %d epoch %d sends %d, expected %d", ErrOutOfOrderSequence, id, p.epoch, first, want)
		}
	}
	return nil
}

// Add takes b into the stage, as the batch to be appended next.
func (g *Stage) Add(b batch.Batch) {
	last := g.next + epoch.Offset(b.LastOffsetDelta())
	g.next = last + 1
	if tracked(b) {
		p := g.producer(b.ProducerID())
		g.staged[b.ProducerID()] = p.with(b, last)
	}
}

func (g *Stage) producer(id int64) producer {
	if p, ok := g.lookup(id); ok {
		return p
	}
	return unknownProducer
}

// unknownProducer is where every producer begins.
var unknownProducer = producer{epoch: -1, coordinator: noCoordinator, lastTimestamp: batch.NoTimestamp}

// tracked reports whether a batch counts for its producer. Markers of transactions
// carry a producer id but no sequence.
func tracked(b batch.Batch) bool {
	return b.ProducerID() >= 0 && b.BaseSequence() >= 0 && !b.Control()
}

// update takes a batch of the log into account, unjudged: what is in the log was
// judged by the leader that wrote it.
func (s *ProducerState) update(b batch.Batch) {
	if !tracked(b) {
		return
	}
	p, ok := s.producers[b.ProducerID()]
	if !ok {
		p = unknownProducer
	}
	s.producers[b.ProducerID()] = p.with(b, b.LastOffset())
}

// overlay replaces producers by those of newer, a state of later batches.
func (s *ProducerState) overlay(newer *ProducerState) {
	maps.Copy(s.producers, newer.producers)
}

// expire forgets producers that wrote nothing for longer than limit, by the caller's
// clock: the timestamps of records are the clients' own, and those of an import may be
// years old while its retries are still to come. What was read back from disk counts as
// new.
func (s *ProducerState) expire(now time.Time, limit time.Duration) {
	if limit <= 0 {
		return
	}
	for id, p := range s.producers {
		switch {
		case p.silentSince.IsZero():
			p.silentSince = now
			s.producers[id] = p
		case now.Sub(p.silentSince) >= limit:
			delete(s.producers, id)
		}
	}
}
