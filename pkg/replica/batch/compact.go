package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// This file is what compaction does to a batch. Base and last offset, leader epoch,
// producer, sequence, codec and kind of timestamps stay what they were: readers,
// followers and the producers' state rely on them.

// NoHorizon stands for a batch whose tombstones have no delete horizon yet.
const NoHorizon int64 = -1

// Horizon is when compaction may remove the batch's tombstones, in milliseconds;
// NoHorizon if that is not decided yet (KIP-534).
func (b Batch) Horizon() int64 {
	if !b.HasDeleteHorizon() {
		return NoHorizon
	}
	return b.BaseTimestamp()
}

// Kept is what [Compact] has left of a batch.
type Kept struct {
	// Batch is b itself if nothing has changed, and one without records, header and
	// producer kept, if all of them were removed.
	Batch Batch
	// Records and Removed count the records that stay and that went.
	Records, Removed int
}

// Compact returns b without the records that keep refuses. If tombstones stay and have no
// horizon, they get that one, which takes the place of the base timestamp. b is not
// written to. Errors are those of [AllRecords]: what cannot be decoded to its last byte is
// not rewritten.
func Compact(b Batch, horizon int64, keep func(Record) bool) (Kept, error) {
	k := Kept{Batch: b}
	if b.Count() == 0 {
		return k, nil
	}
	var kept []Record
	tombstones := false
	for r, err := range AllRecords(b) {
		if err != nil {
			return Kept{}, err
		}
		if !keep(r) {
			k.Removed++
			continue
		}
		tombstones = tombstones || r.Value == nil
		kept = append(kept, r)
	}
	k.Records = len(kept)
	mark := tombstones && !b.HasDeleteHorizon()
	switch {
	case k.Records == 0:
		k.Batch = withoutRecords(b)
		return k, nil
	case k.Removed == 0 && !mark:
		return k, nil
	case !mark:
		horizon = b.Horizon()
	}
	var err error
	k.Batch, err = withRecords(b, kept, horizon)
	return k, err
}

// withoutRecords is the header of b alone. Its greatest timestamp stays, which is when the
// producer wrote last; Kafka writes it as the base timestamp, too.
func withoutRecords(b Batch) Batch {
	out := append(Batch(nil), b[:HeaderSize]...)
	be := binary.BigEndian
	be.PutUint32(out[8:], HeaderSize-PrefixSize)
	be.PutUint16(out[21:], uint16(b.Attributes()&^(attrCodecMask|attrDeleteHorizon)))
	be.PutUint64(out[27:], uint64(b.MaxTimestamp()))
	be.PutUint32(out[57:], 0)
	out.seal()
	return out
}

// withRecords is b with these of its records only.
func withRecords(b Batch, records []Record, horizon int64) (Batch, error) {
	base, attributes := b.BaseTimestamp(), b.Attributes()
	if horizon != NoHorizon {
		base, attributes = horizon, attributes|attrDeleteHorizon
	}
	var body []byte
	newest := NoTimestamp
	for _, r := range records {
		delta := int64(r.Offset - b.BaseOffset())
		if delta < 0 || delta > int64(b.LastOffsetDelta()) {
			return nil, fmt.Errorf("%w: a record at offset %d in a batch of the offsets %d to %d", ErrInvalidRecord, r.Offset, b.BaseOffset(), b.LastOffset())
		}
		body = appendRecord(body, r, base, int(delta))
		newest = max(newest, r.Timestamp)
	}
	packed, err := compress(b.Codec(), body)
	if err != nil {
		return nil, fmt.Errorf("rewrite the batch at offset %d: %w", b.BaseOffset(), err)
	}
	if len(packed) > math.MaxInt32-HeaderSize {
		return nil, fmt.Errorf("%w: rewritten, its records take %d bytes", ErrMessageTooLarge, len(packed))
	}
	out := make(Batch, HeaderSize, HeaderSize+len(packed))
	copy(out, b[:HeaderSize])
	be := binary.BigEndian
	be.PutUint32(out[8:], uint32(HeaderSize-PrefixSize+len(packed)))
	be.PutUint16(out[21:], uint16(attributes))
	be.PutUint64(out[27:], uint64(base))
	if !b.LogAppendTime() {
		be.PutUint64(out[35:], uint64(newest))
	}
	be.PutUint32(out[57:], uint32(len(records)))
	out = append(out, packed...)
	out.seal()
	return out, nil
}

// errNoOffsets says that a batch would hold no offset, or more than one can.
var errNoOffsets = errors.New("a batch cannot hold these offsets")

// Empty makes a batch without records and without a producer, which stands for the offsets
// from base to last, of that leader epoch. Kafka's clients skip it.
func Empty(base, last epoch.Offset, e epoch.LeaderEpoch) (Batch, error) {
	if base < 0 || last < base || last-base > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d to %d", errNoOffsets, base, last)
	}
	b := NewBuilder().BaseOffset(base).LeaderEpoch(e).Build()
	binary.BigEndian.PutUint32(b[23:], uint32(last-base))
	b.seal()
	return b, nil
}

// IsFiller reports a batch that stands for offsets and nothing else: no record, no
// producer. It may be cut and joined at will.
func (b Batch) IsFiller() bool { return b.Count() == 0 && b.ProducerID() < 0 && !b.Control() }

// ClipFiller makes a filler begin at from, which lies inside of it. The bytes are
// changed in place. Any other batch, and any other offset, is left alone.
func (b Batch) ClipFiller(from epoch.Offset) {
	if !b.IsFiller() || from <= b.BaseOffset() || from > b.LastOffset() {
		return
	}
	last := b.LastOffset()
	b.SetBaseOffset(from)
	binary.BigEndian.PutUint32(b[23:], uint32(last-from))
	b.seal()
}
