package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Errors of this package, to be matched with errors.Is. The numbers are Kafka's
// error codes.
var (
	// ErrIncomplete says that the bytes end before the batch does. It is no damage:
	// a fetch response may end like this. No code of its own.
	ErrIncomplete = errors.New("record batch is incomplete")
	// ErrCorruptMessage is CORRUPT_MESSAGE (2): impossible sizes or a wrong checksum.
	ErrCorruptMessage = errors.New("record batch is corrupt")
	// ErrMessageTooLarge is MESSAGE_TOO_LARGE (10).
	ErrMessageTooLarge = errors.New("record batch is too large")
	// ErrInvalidTimestamp is INVALID_TIMESTAMP (32).
	ErrInvalidTimestamp = errors.New("record timestamp is out of the accepted range")
	// ErrUnsupportedCompression is UNSUPPORTED_COMPRESSION_TYPE (76).
	ErrUnsupportedCompression = errors.New("record batch uses an unknown compression type")
	// ErrInvalidRecord is INVALID_RECORD (87): whole, but not what a client may send.
	ErrInvalidRecord = errors.New("record batch is invalid")
)

// Sizes of the fixed parts, in bytes.
const (
	// PrefixSize is base offset and length, which do not count in the length field.
	PrefixSize = 12
	// HeaderSize is everything before the records, and so the smallest legal batch.
	HeaderSize = 61
	// crcStart is where the checksummed bytes begin.
	crcStart = 21
)

// Magic is the only record batch format that Tidemark stores.
const Magic = 2

// NoProducer is the producer id of a batch without idempotence.
const NoProducer int64 = -1

// NoTimestamp stands for "the client gave no time".
const NoTimestamp int64 = -1

// Codec says how the records of a batch are compressed.
type Codec int8

// The codecs of format 2. The zero value is "not compressed".
const (
	CodecNone Codec = iota
	CodecGzip
	CodecSnappy
	CodecLZ4
	CodecZstd
)

// String gives Kafka's name of the codec.
func (c Codec) String() string {
	names := [...]string{"none", "gzip", "snappy", "lz4", "zstd"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return names[c]
}

// Attribute bits of a batch header.
const (
	attrCodecMask     = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// Batch is a view over the bytes of exactly one batch, prefix included.
type Batch []byte

// Next splits the first batch off b by sizes alone: neither checksum nor records
// are looked at. Bytes that end too early give ErrIncomplete, a length that no
// batch can have or another format gives ErrCorruptMessage.
func Next(b []byte) (Batch, []byte, error) {
	if len(b) < PrefixSize {
		return nil, b, fmt.Errorf("%w: %d of %d bytes of its prefix", ErrIncomplete, len(b), PrefixSize)
	}
	size := int64(int32(binary.BigEndian.Uint32(b[8:]))) + PrefixSize
	if size < HeaderSize {
		return nil, b, fmt.Errorf("%w: size %d is below the header's %d", ErrCorruptMessage, size, HeaderSize)
	}
	if len(b) > 16 && b[16] != Magic {
		return nil, b, fmt.Errorf("%w: format %d, only format %d is stored", ErrCorruptMessage, int8(b[16]), Magic)
	}
	if size > int64(len(b)) {
		return nil, b, fmt.Errorf("%w: %d of %d bytes", ErrIncomplete, len(b), size)
	}
	return Batch(b[:size:size]), b[size:], nil
}

// BaseOffset is the offset of the first record.
func (b Batch) BaseOffset() epoch.Offset { return epoch.Offset(binary.BigEndian.Uint64(b)) }

// LastOffset is the offset of the last record.
func (b Batch) LastOffset() epoch.Offset {
	return b.BaseOffset() + epoch.Offset(b.LastOffsetDelta())
}

// NextOffset is the offset after the last record.
func (b Batch) NextOffset() epoch.Offset { return b.LastOffset() + 1 }

// Size is the number of bytes that the header claims, prefix included. It equals
// len(b) for a batch that came from this package.
func (b Batch) Size() int { return int(int32(binary.BigEndian.Uint32(b[8:]))) + PrefixSize }

// LeaderEpoch is the epoch of the leader that wrote the batch (KIP-101).
func (b Batch) LeaderEpoch() epoch.LeaderEpoch {
	return epoch.LeaderEpoch(binary.BigEndian.Uint32(b[12:]))
}

// Magic is the format's number.
func (b Batch) Magic() int8 { return int8(b[16]) }

// CRC is the checksum that the header claims.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[17:]) }

// Attributes are the header's flags.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[21:])) }

// Codec says how the records are compressed.
func (b Batch) Codec() Codec { return Codec(b.Attributes() & attrCodecMask) }

// LogAppendTime reports that MaxTimestamp is the time of every record.
func (b Batch) LogAppendTime() bool { return b.Attributes()&attrLogAppendTime != 0 }

// Transactional reports that the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.Attributes()&attrTransactional != 0 }

// Control reports a batch that carries a marker instead of records.
func (b Batch) Control() bool { return b.Attributes()&attrControl != 0 }

// HasDeleteHorizon reports that the base timestamp is when compaction may remove the
// batch's tombstones and markers (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&attrDeleteHorizon != 0 }

// LastOffsetDelta is the distance of the last record from the base offset.
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[23:])) }

// BaseTimestamp is what the records' timestamps count from, in milliseconds.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[27:])) }

// MaxTimestamp is the greatest timestamp of the records, in milliseconds.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[35:])) }

// ProducerID is the idempotent producer's id, NoProducer if there is none.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[43:])) }

// ProducerEpoch is the idempotent producer's epoch.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[51:])) }

// BaseSequence is the producer's number of the first record, negative if none.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[53:])) }

// LastSequence is the producer's number of the last record. Numbers go on at 0
// after 2147483647.
func (b Batch) LastSequence() int32 {
	if b.BaseSequence() < 0 {
		return b.BaseSequence()
	}
	return int32((int64(b.BaseSequence()) + int64(b.LastOffsetDelta())) & 0x7fffffff)
}

// Count is the number of records that the header claims.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[57:])) }

// SetBaseOffset stamps the offset of the first record. The checksum stays valid.
func (b Batch) SetBaseOffset(o epoch.Offset) { binary.BigEndian.PutUint64(b, uint64(o)) }

// SetLeaderEpoch stamps the leader epoch. The checksum stays valid.
func (b Batch) SetLeaderEpoch(e epoch.LeaderEpoch) { binary.BigEndian.PutUint32(b[12:], uint32(e)) }

// StampAppendTime makes a time, in milliseconds, that of every record (Kafka's LogAppendTime),
// and the checksum right. The records keep the client's, which nobody reads then.
func (b Batch) StampAppendTime(now int64) {
	binary.BigEndian.PutUint16(b[21:], uint16(b.Attributes()|attrLogAppendTime))
	binary.BigEndian.PutUint64(b[35:], uint64(now))
	b.seal()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ComputeCRC calculates the checksum (CRC-32C) of the batch as it is.
func (b Batch) ComputeCRC() uint32 { return crc32.Checksum(b[crcStart:], castagnoli) }

// CheckCRC returns ErrCorruptMessage if the checksum does not match the bytes.
func (b Batch) CheckCRC() error {
	if got := b.ComputeCRC(); got != b.CRC() {
		return fmt.Errorf("%w: checksum at offset %d is %08x, the header says %08x", ErrCorruptMessage, b.BaseOffset(), got, b.CRC())
	}
	return nil
}

func (b Batch) seal() { binary.BigEndian.PutUint32(b[17:], b.ComputeCRC()) }
