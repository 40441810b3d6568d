package log

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// IndexEntry is an entry of an offset index.
type IndexEntry struct {
	// Offset is the last of the batch at Position.
	Offset   epoch.Offset
	Position int64
}

// TimeIndexEntry is an entry of a time index: up to Offset no record is newer.
type TimeIndexEntry struct {
	Timestamp int64
	Offset    epoch.Offset
}

// OffsetIndex goes through the offset index of a segment. The zeros of a file that was
// given its size in advance, as Kafka does for the segment being written, are passed
// over; bytes that are no whole entry end the sequence with an error.
func (in *Inspector) OffsetIndex(base epoch.Offset) iter.Seq2[IndexEntry, error] {
	return entriesOf(in, fileName("", base, suffixIndex), offsetEntrySize, func(b []byte) IndexEntry {
		e := decodeOffsetEntry(b)
		return IndexEntry{base + epoch.Offset(e.relative), e.position}
	})
}

// TimeIndex is OffsetIndex for the time index.
func (in *Inspector) TimeIndex(base epoch.Offset) iter.Seq2[TimeIndexEntry, error] {
	return entriesOf(in, fileName("", base, suffixTimeIndex), timeEntrySize, func(b []byte) TimeIndexEntry {
		e := decodeTimeEntry(b)
		return TimeIndexEntry{e.timestamp, base + epoch.Offset(e.relative)}
	})
}

// indexChunk is how many bytes of an index are read at a time, a multiple of both
// entry sizes.
const indexChunk = 24 << 10

func entriesOf[E any](in *Inspector, name string, size int64, decode func([]byte) E) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		f, err := in.open(name)
		if err != nil {
			yield(none, err)
			return
		}
		defer f.Close()
		end, err := usedBytes(f, size)
		if err != nil {
			yield(none, err)
			return
		}
		buf := make([]byte, indexChunk)
		for pos := int64(0); pos < end; pos += indexChunk {
			b := buf[:min(indexChunk, end-pos)]
			if n, err := f.ReadAt(b, pos); n < len(b) {
				yield(none, fmt.Errorf("read at byte %d: %w", pos, err))
				return
			}
			for ; int64(len(b)) >= size; b = b[size:] {
				if !yield(decode(b), nil) {
					return
				}
			}
		}
		if f.size%size != 0 {
			yield(none, fmt.Errorf("%w: %d bytes are no whole entries", errBrokenIndex, f.size))
		}
	}
}

// usedBytes is how many bytes of an index are entries: the first entry of a time index
// alone may be all zeros (time 0, first offset).
func usedBytes(f file, entry int64) (int64, error) {
	end := f.size - f.size%entry
	if end == entry {
		return end, nil
	}
	buf := make([]byte, indexChunk)
	for end > 0 {
		b := buf[:min(indexChunk, end)]
		if n, err := f.ReadAt(b, end-int64(len(b))); n < len(b) {
			return 0, fmt.Errorf("read at byte %d: %w", end-int64(len(b)), err)
		}
		for ; len(b) > 0; b = b[:int64(len(b))-entry] {
			if !allZero(b[int64(len(b))-entry:]) {
				return end, nil
			}
			end -= entry
		}
	}
	return 0, nil
}

// SnapshotEntry is a producer in a snapshot.
type SnapshotEntry struct {
	ProducerID    int64
	ProducerEpoch int16
	// LastSequence and LastOffset are of the producer's last batch, OffsetDelta that
	// batch's last offset less its first; -1, NoOffset and 0 if it has none.
	LastSequence     int32
	LastOffset       epoch.Offset
	OffsetDelta      int32
	Timestamp        int64
	CoordinatorEpoch int32
	// TransactionStart is where its open transaction begins, NoOffset if it has none.
	TransactionStart epoch.Offset
}

// Snapshot reads a producer snapshot.
func (in *Inspector) Snapshot(at epoch.Offset) ([]SnapshotEntry, error) {
	f, err := in.open(fileName("", at, suffixSnapshot))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.size > snapshotLimit {
		return nil, fmt.Errorf("%w: %d bytes", errBrokenSnapshot, f.size)
	}
	b := make([]byte, f.size)
	if n, err := f.ReadAt(b, 0); n < len(b) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, err := decodeSnapshot(b); err != nil {
		return nil, err
	}
	var out []SnapshotEntry
	for b = b[snapshotHeader:]; len(b) > 0; b = b[snapshotEntrySize:] {
		out = append(out, decodeSnapshotEntry(b))
	}
	return out, nil
}
