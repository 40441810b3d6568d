package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A producer snapshot is, big endian:
//
//	int16 version 1 · uint32 CRC-32C of what follows · int32 count · count times
//	{int64 id · int16 epoch · int32 last sequence · int64 last offset ·
//	 int32 offset delta · int64 timestamp · int32 coordinator epoch ·
//	 int64 first offset of the open transaction, -1}
//
// It holds the last batch of each producer only.
const (
	snapshotVersion   = 1
	snapshotHeader    = 2 + 4 + 4
	snapshotEntrySize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
	// snapshotLimit bounds a snapshot file: a million producers.
	snapshotLimit = 64 << 20
)

var errBrokenSnapshot = errors.New("producer snapshot is broken")

// encode gives the snapshot's bytes, producers in ascending order of id.
func (s *ProducerState) encode() []byte {
	be := binary.BigEndian
	out := make([]byte, snapshotHeader, snapshotHeader+len(s.producers)*snapshotEntrySize)
	be.PutUint16(out, snapshotVersion)
	be.PutUint32(out[6:], uint32(len(s.producers)))
	for _, id := range slices.Sorted(maps.Keys(s.producers)) {
		p := s.producers[id]
		last := producerBatch{last: -1, lastOffset: epoch.NoOffset}
		if n := len(p.batches); n > 0 {
			last = p.batches[n-1]
		}
		out = be.AppendUint64(out, uint64(id))
		out = be.AppendUint16(out, uint16(p.epoch))
		out = be.AppendUint32(out, uint32(last.last))
		out = be.AppendUint64(out, uint64(last.lastOffset))
		out = be.AppendUint32(out, uint32(last.delta))
		out = be.AppendUint64(out, uint64(p.lastTimestamp))
		out = be.AppendUint32(out, uint32(p.coordinator))
		out = be.AppendUint64(out, ^uint64(0))
	}
	be.PutUint32(out[2:], crc32.Checksum(out[6:], castagnoli))
	return out
}

// decodeSnapshot reads a snapshot. One that was not written to its end does not
// match its checksum.
func decodeSnapshot(b []byte) (*ProducerState, error) {
	be := binary.BigEndian
	if len(b) < snapshotHeader {
		return nil, fmt.Errorf("%w: %d bytes", errBrokenSnapshot, len(b))
	}
	if v := be.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, expected %d", errBrokenSnapshot, v, snapshotVersion)
	}
	if sum := crc32.Checksum(b[6:], castagnoli); sum != be.Uint32(b[2:]) {
		return nil, fmt.Errorf("%w: checksum is %08x, the header says %08x", errBrokenSnapshot, sum, be.Uint32(b[2:]))
	}
	n, body := int64(be.Uint32(b[6:])), b[snapshotHeader:]
	if int64(len(body)) != n*snapshotEntrySize {
		return nil, fmt.Errorf("%w: %d producers in %d bytes", errBrokenSnapshot, n, len(body))
	}
	s := newProducerState()
	for ; len(body) > 0; body = body[snapshotEntrySize:] {
		id, p := decodeProducer(body)
		s.producers[id] = p
	}
	return s, nil
}

func decodeSnapshotEntry(b []byte) SnapshotEntry {
	be := binary.BigEndian
	return SnapshotEntry{
		ProducerID:       int64(be.Uint64(b)),
		ProducerEpoch:    int16(be.Uint16(b[8:])),
		LastSequence:     int32(be.Uint32(b[10:])),
		LastOffset:       epoch.Offset(be.Uint64(b[14:])),
		OffsetDelta:      int32(be.Uint32(b[22:])),
		Timestamp:        int64(be.Uint64(b[26:])),
		CoordinatorEpoch: int32(be.Uint32(b[34:])),
		TransactionStart: epoch.Offset(be.Uint64(b[38:])),
	}
}

func decodeProducer(b []byte) (int64, producer) {
	e := decodeSnapshotEntry(b)
	p := producer{epoch: e.ProducerEpoch, lastTimestamp: e.Timestamp, coordinator: e.CoordinatorEpoch}
	last := producerBatch{last: e.LastSequence, lastOffset: e.LastOffset, delta: e.OffsetDelta, timestamp: e.Timestamp}
	if last.last >= 0 {
		last.first = int32((int64(last.last) - int64(last.delta)) & 0x7fffffff)
		p.batches = []producerBatch{last}
	}
	return e.ProducerID, p
}
