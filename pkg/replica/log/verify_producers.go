package log

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// producer takes a batch into the replay that snapshots are compared with.
func (s *segmentCheck) producer(b StoredBatch) {
	h := b.Header
	id := h.ProducerID()
	if id < 0 {
		return
	}
	s.sum.ProducerID = max(s.sum.ProducerID, id)
	if h.Transactional() || h.Control() {
		s.transactional[id] = true
	}
	if h.Transactional() && !h.Control() {
		if _, known := s.open[id]; !known {
			s.open[id] = h.BaseOffset()
		}
	}
	if p, ok := s.producers.producers[id]; ok && tracked(h) && !s.transactional[id] && s.sum.Gaps == 0 {
		last := p.lastSequence()
		if p.epoch == h.ProducerEpoch() && h.BaseSequence() != 0 && h.BaseSequence() != (last+1)&0x7fffffff {
			s.find(Warning, s.name, b.Position, "the producer lost a batch, or was forgotten in between, or a record is there twice", "the batch at offset %d has sequence %d of producer %d, after %d", h.BaseOffset(), h.BaseSequence(), id, last)
		}
		if h.ProducerEpoch() < p.epoch {
			s.find(Warning, s.name, b.Position, "a producer that was replaced has written", "the batch at offset %d is of epoch %d of producer %d, after epoch %d", h.BaseOffset(), h.ProducerEpoch(), id, p.epoch)
		}
	}
	s.producers.update(h)
}

// marker notes the end of a transaction: the key of a marker is a version and a type.
func (s *segmentCheck) marker(h batch.Batch, r batch.Record) {
	const abort, commit = 0, 1
	if len(r.Key) < 4 {
		return
	}
	switch binary.BigEndian.Uint16(r.Key[2:]) {
	case abort:
		s.sum.Aborted++
		delete(s.open, h.ProducerID())
	case commit:
		delete(s.open, h.ProducerID())
	}
}

// compareSnapshots compares the snapshots at or below an offset, where a batch begins,
// with the replay up to there.
func (v *verifier) compareSnapshots(upTo epoch.Offset) {
	for len(v.snapshots) > 0 && v.snapshots[0] <= upTo {
		v.compareSnapshot(v.snapshots[0])
		v.snapshots = v.snapshots[1:]
	}
}

func (v *verifier) compareSnapshot(at epoch.Offset) {
	name := v.path(fileName("", at, suffixSnapshot))
	entries, err := v.in.Snapshot(at)
	if errors.Is(err, fs.ErrNotExist) && !v.clean {
		return // removed meanwhile, as newer ones came
	}
	if err != nil {
		v.find(v.unfinished(), name, -1, "a start passes it over", "cannot be used: %v", err)
		return
	}
	if v.known && at < v.next {
		v.find(Error, name, -1, remedyRemove, "is of offset %d, inside of a batch", at)
		return
	}
	// That a snapshot lacks a producer says nothing: producers that are silent expire.
	for i, e := range entries {
		v.sum.ProducerID = max(v.sum.ProducerID, e.ProducerID)
		v.compareProducer(name, snapshotHeader+int64(i)*snapshotEntrySize, at, e)
	}
}

func (v *verifier) compareProducer(name string, position int64, at epoch.Offset, e SnapshotEntry) {
	if e.LastSequence < 0 || v.transactional[e.ProducerID] {
		return
	}
	wrong := func(format string, args ...any) {
		v.find(Error, name, position, remedyRemove, format, args...)
	}
	if e.LastOffset >= at {
		wrong("knows a batch of producer %d that ends with offset %d, behind the snapshot's", e.ProducerID, e.LastOffset)
		return
	}
	if len(v.bases) == 0 || e.LastOffset < v.bases[0] || v.sum.Gaps > 0 || v.compacted || v.blind {
		return // the batch is not there any more
	}
	p, ok := v.producers.producers[e.ProducerID]
	if !ok {
		wrong("knows a batch of producer %d that ends with offset %d, and the log has none", e.ProducerID, e.LastOffset)
		return
	}
	last := p.batches[len(p.batches)-1]
	want := SnapshotEntry{e.ProducerID, p.epoch, last.last, last.lastOffset, last.delta, last.timestamp, e.CoordinatorEpoch, e.TransactionStart}
	if e != want {
		wrong("has producer %d at epoch %d, sequence %d, offset %d, and the log at epoch %d, sequence %d, offset %d", e.ProducerID,
			e.ProducerEpoch, e.LastSequence, e.LastOffset, want.ProducerEpoch, want.LastSequence, want.LastOffset)
	}
}
