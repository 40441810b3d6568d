package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// DefaultMaxAhead is how far a record's timestamp may lie in the future, Kafka's
// message.timestamp.after.max.ms.
const DefaultMaxAhead = time.Hour

// Limits bounds what a client may produce. The zero value accepts any size and any
// time in the past, and needs Now to judge the future.
type Limits struct {
	// MaxBatchBytes is max.message.bytes: the size of a batch as sent, prefix
	// included. Zero: no limit.
	MaxBatchBytes int
	// MaxDecompressedBytes bounds the records of a compressed batch. Zero:
	// DefaultMaxDecompressedBytes.
	MaxDecompressedBytes int64
	// Now is the time to judge timestamps by, in milliseconds. Zero: timestamps are
	// not judged.
	Now int64
	// MaxAhead is how far a timestamp may lie in the future. Zero: DefaultMaxAhead.
	MaxAhead time.Duration
	// MaxBehind is how far a timestamp may lie in the past. Zero: any.
	MaxBehind time.Duration
	// AppendTime says that the leader puts its own time in the place of the client's, by
	// StampAppendTime: the client's is then not judged, and not put right.
	AppendTime bool
	// RequireKeys refuses records without a key.
	RequireKeys bool
}

// Validate checks the records of one partition in a client's produce request:
// exactly one batch, which can be stored as it is. Errors, all with the reason:
//
//   - ErrCorruptMessage: sizes that do not fit, wrong checksum;
//   - ErrMessageTooLarge: larger than the limits;
//   - ErrInvalidRecord: no batch or several, another format, anything that a client
//     may not send (control batch, transaction, base offset other than 0), or that
//     Kafka would have to encode anew (offsets within the batch other than 0…n-1);
//   - ErrInvalidTimestamp: append time set by the client, or outside the limits;
//   - RecordsError, which is one of the last two: single records are at fault;
//   - ErrUnsupportedCompression: a codec that does not exist. Whether the request's
//     version allows zstd is for the caller to judge.
//
// The leader epoch that the client sent is ignored: clients send -1, 0 or garbage.
// A wrong maximum timestamp in the header is put right in b, checksum included.
func Validate(b []byte, l Limits) (Batch, error) {
	bt, err := single(b)
	if err != nil {
		return nil, err
	}
	if l.MaxBatchBytes > 0 && bt.Size() > l.MaxBatchBytes {
		return nil, fmt.Errorf("%w: %d bytes, the topic accepts %d", ErrMessageTooLarge, bt.Size(), l.MaxBatchBytes)
	}
	if err := bt.CheckCRC(); err != nil {
		return nil, err
	}
	if err := checkHeader(bt); err != nil {
		return nil, err
	}
	newest, err := checkRecords(bt, l)
	if err != nil {
		return nil, err
	}
	if newest != bt.MaxTimestamp() && !l.AppendTime {
		binary.BigEndian.PutUint64(bt[35:], uint64(newest))
		bt.seal()
	}
	return bt, nil
}

func single(b []byte) (Batch, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: the request holds no records", ErrInvalidRecord)
	}
	// All formats have their number at the same place: look there before sizes.
	if len(b) > 16 && b[16] != Magic {
		return nil, fmt.Errorf("%w: format %d, only format %d is accepted", ErrInvalidRecord, int8(b[16]), Magic)
	}
	bt, rest, err := Next(b)
	if errors.Is(err, ErrIncomplete) {
		return nil, fmt.Errorf("%w: %w", ErrCorruptMessage, err)
	}
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow the one batch that a partition may have in a request", ErrInvalidRecord, len(rest))
	}
	return bt, nil
}

func checkHeader(b Batch) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidRecord, fmt.Sprintf(format, args...))
	}
	switch {
	case b.BaseOffset() != 0:
		return invalid("base offset %d, a client sends 0", b.BaseOffset())
	case b.Count() <= 0 || int64(b.Count()) != int64(b.LastOffsetDelta())+1:
		return invalid("%d records with a last offset delta of %d", b.Count(), b.LastOffsetDelta())
	case b.Control():
		return invalid("a client may not send control batches")
	case b.Transactional():
		return invalid("transactions are not supported")
	case b.Attributes()&attrDeleteHorizon != 0:
		return invalid("a client may not set a delete horizon")
	case b.ProducerID() >= 0 && (b.BaseSequence() < 0 || b.ProducerEpoch() < 0):
		return invalid("producer %d without sequence (%d) or epoch (%d)", b.ProducerID(), b.BaseSequence(), b.ProducerEpoch())
	case b.LogAppendTime():
		return fmt.Errorf("%w: a client may not set the append time", ErrInvalidTimestamp)
	case b.Codec() > CodecZstd:
		return fmt.Errorf("%w: %v", ErrUnsupportedCompression, b.Codec())
	}
	return nil
}

// checkRecords walks all records without keeping them, and returns the greatest
// timestamp. Decompression holds one window in memory, however large the result.
func checkRecords(b Batch, l Limits) (int64, error) {
	limit := l.MaxDecompressedBytes
	if limit == 0 {
		limit = DefaultMaxDecompressedBytes
	}
	src, done, err := open(b, limit)
	if err != nil {
		return 0, err
	}
	defer done()
	newest := int64(NoTimestamp)
	j := l.judge()
	for i := range int64(b.Count()) {
		h, err := walkRecord(src)
		if err != nil {
			return 0, fmt.Errorf("record %d of %d: %w", i, b.Count(), err)
		}
		if h.offsetDelta != i {
			return 0, fmt.Errorf("%w: record %d has offset delta %d", ErrInvalidRecord, i, h.offsetDelta)
		}
		ts := b.BaseTimestamp() + h.timestampDelta
		newest = max(newest, ts)
		j.look(i, ts, h.nullKey)
	}
	if err := src.atEnd(); err != nil {
		return 0, err
	}
	if j.refused != nil {
		return 0, j.refused
	}
	return newest, nil
}

func walkRecord(src *source) (head, error) {
	h, err := readHead(src)
	if err != nil {
		return h, err
	}
	if h.nullKey, err = skipField(src, &h.left); err != nil {
		return h, err
	}
	if _, err := skipField(src, &h.left); err != nil { // the value
		return h, err
	}
	n, err := headerCount(src, &h.left)
	if err != nil {
		return h, err
	}
	for range n {
		null, err := skipField(src, &h.left)
		if err != nil {
			return h, err
		}
		if null {
			return h, fmt.Errorf("%w: a header's key is null", ErrInvalidRecord)
		}
		if _, err := skipField(src, &h.left); err != nil {
			return h, err
		}
	}
	return h, h.end()
}
