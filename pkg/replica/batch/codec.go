package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxZstdWindow bounds the memory of one zstd decoder. Encoders stay at or below
// 8 MiB up to level 19; the rest is room for "ultra" levels.
const maxZstdWindow = 32 << 20

// maxSnappyRatio is above what a snappy block can expand by (64 bytes out of 3): a
// block that claims more lies about its length.
const maxSnappyRatio = 32

// zstdDecoders keeps decoders, whose tables are worth keeping, for reuse.
var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil
	}
	return d
}}

// open returns the records of b as a source that gives at most limit bytes if it
// has to decompress, and a function that must be called when done with it.
func open(b Batch, limit int64) (*source, func(), error) {
	none := func() {}
	payload := []byte(b[HeaderSize:])
	switch b.Codec() {
	case CodecNone:
		return &source{b: payload}, none, nil
	case CodecGzip:
		r, err := gzip.NewReader(bytes.NewReader(payload))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: gzip: %w", ErrInvalidRecord, err)
		}
		return newStream(r, limit), none, nil
	case CodecSnappy:
		return newStream(&snappyReader{in: payload, limit: limit}, limit), none, nil
	case CodecLZ4:
		return newStream(lz4.NewReader(bytes.NewReader(payload)), limit), none, nil
	case CodecZstd:
		d, ok := zstdDecoders.Get().(*zstd.Decoder)
		if !ok {
			return nil, nil, fmt.Errorf("%w: zstd decoder not available", ErrUnsupportedCompression)
		}
		done := func() {
			_ = d.Reset(nil)
			zstdDecoders.Put(d)
		}
		if err := d.Reset(bytes.NewReader(payload)); err != nil {
			done()
			return nil, nil, fmt.Errorf("%w: zstd: %w", ErrInvalidRecord, err)
		}
		return newStream(d, limit), done, nil
	default:
		return nil, nil, fmt.Errorf("%w: %v", ErrUnsupportedCompression, b.Codec())
	}
}

// xerialMagic begins the framing in which Java clients send snappy: magic, two
// version numbers, then blocks with their length in front.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// snappyReader reads both forms of snappy that clients send: xerial framing, or
// one raw block.
type snappyReader struct {
	in      []byte
	out     []byte
	limit   int64
	started bool
	framed  bool
}

func (r *snappyReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *snappyReader) fill() error {
	if !r.started {
		r.started = true
		if bytes.HasPrefix(r.in, xerialMagic) && len(r.in) >= xerialHeader {
			r.framed, r.in = true, r.in[xerialHeader:]
		}
	}
	if len(r.in) == 0 {
		return io.EOF
	}
	block := r.in
	if r.framed {
		if len(r.in) < 4 {
			return io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(r.in)
		if int64(n) > int64(len(r.in)-4) {
			return io.ErrUnexpectedEOF
		}
		block, r.in = r.in[4:4+n], r.in[4+n:]
	} else {
		r.in = nil
	}
	return r.decode(block)
}

func (r *snappyReader) decode(block []byte) error {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return fmt.Errorf("snappy: %w", err)
	}
	if int64(n) > int64(len(block))*maxSnappyRatio {
		return fmt.Errorf("snappy: a block of %d bytes claims %d", len(block), n)
	}
	if int64(n) > r.limit {
		return fmt.Errorf("%w: a snappy block of %d bytes is above the limit", ErrMessageTooLarge, n)
	}
	r.out, err = snappy.Decode(nil, block)
	if err != nil {
		return fmt.Errorf("snappy: %w", err)
	}
	return nil
}

// compress is the counterpart for Builder.
func compress(c Codec, in []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch c {
	case CodecNone:
		return in, nil
	case CodecGzip:
		w = gzip.NewWriter(&out)
	case CodecSnappy:
		block := snappy.Encode(nil, in)
		head := append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
		head = binary.BigEndian.AppendUint32(head, uint32(len(block)))
		return append(head, block...), nil
	case CodecLZ4:
		w = lz4.NewWriter(&out)
	case CodecZstd:
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		w = z
	default:
		return nil, fmt.Errorf("%w: %v", ErrUnsupportedCompression, c)
	}
	if _, err := w.Write(in); err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return out.Bytes(), nil
}
