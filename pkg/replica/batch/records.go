package batch

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// DefaultMaxDecompressedBytes bounds what the records of one batch may take when
// decompressed, where the caller names no limit.
const DefaultMaxDecompressedBytes = 128 << 20

// Record is one decoded record. Key, value and headers may share memory with the
// batch.
type Record struct {
	Offset epoch.Offset
	// Timestamp is in milliseconds, NoTimestamp if the client gave none.
	Timestamp int64
	// Key is nil if the record has none; an empty key is not nil.
	Key []byte
	// Value is nil if the record has none (a tombstone).
	Value   []byte
	Headers []Header
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Records decodes the records of b in order. A record that cannot be decoded ends
// the sequence with an error (ErrInvalidRecord, ErrMessageTooLarge above
// DefaultMaxDecompressedBytes, ErrUnsupportedCompression). The checksum is not
// checked.
func Records(b Batch) iter.Seq2[Record, error] { return records(b, false) }

// AllRecords is Records for who doubts the batch: bytes behind the last record end the
// sequence with an error, too.
func AllRecords(b Batch) iter.Seq2[Record, error] { return records(b, true) }

func records(b Batch, toTheEnd bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		src, done, err := open(b, DefaultMaxDecompressedBytes)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer done()
		for i := range b.Count() {
			rec, err := decodeRecord(src, b)
			if err != nil {
				yield(Record{}, fmt.Errorf("record %d of %d at offset %d: %w", i, b.Count(), b.BaseOffset(), err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
		if !toTheEnd {
			return
		}
		if err := src.atEnd(); err != nil {
			yield(Record{}, fmt.Errorf("batch at offset %d: %w", b.BaseOffset(), err))
		}
	}
}

func decodeRecord(src *source, b Batch) (Record, error) {
	h, err := readHead(src)
	if err != nil {
		return Record{}, err
	}
	rec := Record{Offset: b.BaseOffset() + epoch.Offset(h.offsetDelta), Timestamp: b.BaseTimestamp() + h.timestampDelta}
	if b.LogAppendTime() {
		rec.Timestamp = b.MaxTimestamp()
	}
	if rec.Key, err = field(src, &h.left); err != nil {
		return Record{}, err
	}
	if rec.Value, err = field(src, &h.left); err != nil {
		return Record{}, err
	}
	n, err := headerCount(src, &h.left)
	if err != nil {
		return Record{}, err
	}
	for range n {
		var hd Header
		key, err := field(src, &h.left)
		if err != nil {
			return Record{}, err
		}
		if key == nil {
			return Record{}, fmt.Errorf("%w: a header's key is null", ErrInvalidRecord)
		}
		hd.Key = string(key)
		if hd.Value, err = field(src, &h.left); err != nil {
			return Record{}, err
		}
		rec.Headers = append(rec.Headers, hd)
	}
	return rec, h.end()
}

// head is the fixed part of a record; left counts the bytes that remain of it.
type head struct {
	timestampDelta int64
	offsetDelta    int64
	left           int64
	nullKey        bool // only walkRecord says so
}

func (h *head) end() error {
	if h.left != 0 {
		return fmt.Errorf("%w: its length field is wrong by %d bytes", ErrInvalidRecord, h.left)
	}
	return nil
}

// minRecord is the length of a record with null key, null value and no headers.
const minRecord = 6

func readHead(src *source) (head, error) {
	var h head
	var ignored int64
	length, err := src.varint(&ignored)
	if err != nil {
		return h, broken(err)
	}
	if length < minRecord || length > 1<<31-1 {
		return h, fmt.Errorf("%w: length %d", ErrInvalidRecord, length)
	}
	h.left = length - 1
	if _, err = src.readByte(); err != nil { // attributes: none is defined
		return h, broken(err)
	}
	if h.timestampDelta, err = src.varint(&h.left); err != nil {
		return h, broken(err)
	}
	if h.offsetDelta, err = src.varint(&h.left); err != nil {
		return h, broken(err)
	}
	return h, nil
}

// fieldLength reads the length of a key or value: -1 is null.
func fieldLength(src *source, left *int64) (int64, error) {
	n, err := src.varint(left)
	if err != nil {
		return 0, broken(err)
	}
	if n < -1 || n > *left {
		return 0, fmt.Errorf("%w: a field of %d bytes where %d are left", ErrInvalidRecord, n, *left)
	}
	return n, nil
}

func field(src *source, left *int64) ([]byte, error) {
	n, err := fieldLength(src, left)
	if err != nil || n < 0 {
		return nil, err
	}
	*left -= n
	v, err := src.take(n)
	if err != nil {
		return nil, broken(err)
	}
	return v, nil
}

func skipField(src *source, left *int64) (null bool, err error) {
	n, err := fieldLength(src, left)
	if err != nil || n < 0 {
		return true, err
	}
	*left -= n
	if err := src.skip(n); err != nil {
		return false, broken(err)
	}
	return false, nil
}

func headerCount(src *source, left *int64) (int64, error) {
	n, err := src.varint(left)
	if err != nil {
		return 0, broken(err)
	}
	// A header takes two bytes at least, so this also bounds the loop.
	if n < 0 || n > *left/2 {
		return 0, fmt.Errorf("%w: %d headers in %d bytes", ErrInvalidRecord, n, *left)
	}
	return n, nil
}

// broken turns what a source or a decompressor says into an error of this package.
func broken(err error) error {
	switch {
	case errors.Is(err, ErrMessageTooLarge), errors.Is(err, ErrInvalidRecord):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: its records end too early", ErrInvalidRecord)
	default:
		return fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
}
