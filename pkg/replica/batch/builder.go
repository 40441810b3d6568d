package batch

import (
	"encoding/binary"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Builder makes one batch from records, as a client would send it: base offset 0,
// leader epoch -1, no producer, no compression, unless told otherwise. Every method
// but Build returns the builder, so that calls can be chained.
type Builder struct {
	base       epoch.Offset
	epoch      epoch.LeaderEpoch
	producer   int64
	prodEpoch  int16
	sequence   int32
	attributes int16
	codec      Codec
	records    []Record
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{epoch: epoch.NoEpoch, producer: NoProducer, prodEpoch: -1, sequence: -1}
}

// BaseOffset sets the offset of the first record.
func (w *Builder) BaseOffset(o epoch.Offset) *Builder { w.base = o; return w }

// LeaderEpoch sets the epoch of the leader that wrote the batch.
func (w *Builder) LeaderEpoch(e epoch.LeaderEpoch) *Builder { w.epoch = e; return w }

// Producer makes the batch idempotent: id, epoch and the first record's sequence.
func (w *Builder) Producer(id int64, producerEpoch int16, sequence int32) *Builder {
	w.producer, w.prodEpoch, w.sequence = id, producerEpoch, sequence
	return w
}

// Codec sets the compression. An unknown codec is written to the header and the
// records are left as they are, which makes a batch to test refusals with.
func (w *Builder) Codec(c Codec) *Builder { w.codec = c; return w }

// Attributes sets attribute bits other than the codec's.
func (w *Builder) Attributes(bits int16) *Builder { w.attributes = bits; return w }

// Record adds a record with a timestamp in milliseconds. A nil key or value is null.
func (w *Builder) Record(timestamp int64, key, value []byte, headers ...Header) *Builder {
	return w.Add(Record{Timestamp: timestamp, Key: key, Value: value, Headers: headers})
}

// Values adds a record without key for each value, with timestamp 0.
func (w *Builder) Values(values ...string) *Builder {
	for _, v := range values {
		w.Record(0, nil, []byte(v))
	}
	return w
}

// Add adds a record. Its offset is ignored: offsets follow the order of adding.
func (w *Builder) Add(r Record) *Builder { w.records = append(w.records, r); return w }

// Build encodes the batch.
func (w *Builder) Build() Batch {
	first, newest := NoTimestamp, NoTimestamp
	if len(w.records) > 0 {
		first = w.records[0].Timestamp
	}
	var body []byte
	for i, r := range w.records {
		body = appendRecord(body, r, first, i)
		newest = max(newest, r.Timestamp)
	}
	if packed, err := compress(w.codec, body); err == nil {
		body = packed
	}
	b := make(Batch, HeaderSize, HeaderSize+len(body))
	be := binary.BigEndian
	b.SetBaseOffset(w.base)
	be.PutUint32(b[8:], uint32(HeaderSize-PrefixSize+len(body)))
	b.SetLeaderEpoch(w.epoch)
	b[16] = Magic
	be.PutUint16(b[21:], uint16(w.attributes&^attrCodecMask|int16(w.codec)&attrCodecMask))
	be.PutUint32(b[23:], uint32(len(w.records)-1))
	be.PutUint64(b[27:], uint64(first))
	be.PutUint64(b[35:], uint64(newest))
	be.PutUint64(b[43:], uint64(w.producer))
	be.PutUint16(b[51:], uint16(w.prodEpoch))
	be.PutUint32(b[53:], uint32(w.sequence))
	be.PutUint32(b[57:], uint32(len(w.records)))
	b = append(b, body...)
	b.seal()
	return b
}

func appendRecord(out []byte, r Record, baseTimestamp int64, delta int) []byte {
	rec := []byte{0}
	rec = binary.AppendVarint(rec, r.Timestamp-baseTimestamp)
	rec = binary.AppendVarint(rec, int64(delta))
	rec = appendField(rec, r.Key)
	rec = appendField(rec, r.Value)
	rec = binary.AppendVarint(rec, int64(len(r.Headers)))
	for _, h := range r.Headers {
		rec = binary.AppendVarint(rec, int64(len(h.Key)))
		rec = append(rec, h.Key...)
		rec = appendField(rec, h.Value)
	}
	out = binary.AppendVarint(out, int64(len(rec)))
	return append(out, rec...)
}

func appendField(out, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(out, -1)
	}
	out = binary.AppendVarint(out, int64(len(v)))
	return append(out, v...)
}
