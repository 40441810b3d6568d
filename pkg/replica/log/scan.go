package log

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Windows of a scanner, in bytes: what it reads at a time.
const (
	// headerWindow suits hopping from header to header.
	headerWindow = 8 << 10
	// dataWindow suits reading everything.
	dataWindow = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scanner goes through the batches of a file one by one. It holds one window in
// memory, whatever sizes the headers claim.
type scanner struct {
	r io.ReaderAt
	// pos is where the next batch begins, end where the valid bytes do.
	pos, end int64
	// checksum makes next verify every batch.
	checksum bool

	window   int
	buf      []byte
	bufStart int64
	header   [batch.HeaderSize]byte
}

func headerScanner(r io.ReaderAt, from, end int64) *scanner {
	return &scanner{r: r, pos: from, end: end, window: headerWindow}
}

func dataScanner(r io.ReaderAt, from, end int64) *scanner {
	return &scanner{r: r, pos: from, end: end, window: dataWindow, checksum: true}
}

// next returns the next batch's header and position. The header is a batch cut off
// behind its fixed part: all that Batch reads from there works. It is valid until
// the next call. The end of the bytes is io.EOF; the errors otherwise are those of
// batch.Next, or of reading.
func (s *scanner) next() (batch.Batch, int64, error) {
	if s.pos >= s.end {
		return nil, s.pos, io.EOF
	}
	raw, err := s.peek(s.pos, batch.HeaderSize)
	if err != nil {
		return nil, s.pos, err
	}
	if len(raw) < batch.HeaderSize {
		_, _, err := batch.Next(raw)
		return nil, s.pos, at(s.pos, err)
	}
	h := batch.Batch(raw)
	if err := s.checkHeader(h); err != nil {
		return nil, s.pos, at(s.pos, err)
	}
	if s.checksum {
		// Reading on moves the window, so the header needs a place of its own.
		copy(s.header[:], h)
		h = s.header[:]
		if err := s.checkCRC(h); err != nil {
			return nil, s.pos, at(s.pos, err)
		}
	}
	pos := s.pos
	s.pos += int64(h.Size())
	return h, pos, nil
}

func at(pos int64, err error) error { return fmt.Errorf("batch at byte %d: %w", pos, err) }

func (s *scanner) checkHeader(h batch.Batch) error {
	if h.Size() < batch.HeaderSize || h.Magic() != batch.Magic {
		return fmt.Errorf("%w: size %d, format %d", ErrCorrupt, h.Size(), h.Magic())
	}
	if h.LastOffsetDelta() < 0 || h.BaseOffset() < 0 || h.LastOffset() < h.BaseOffset() {
		return fmt.Errorf("%w: base offset %d, last offset delta %d", ErrCorrupt, h.BaseOffset(), h.LastOffsetDelta())
	}
	if have := s.end - s.pos; int64(h.Size()) > have {
		return fmt.Errorf("%w: %d of %d bytes", batch.ErrIncomplete, have, h.Size())
	}
	return nil
}

func (s *scanner) checkCRC(h batch.Batch) error {
	sum, err := s.sum(h, s.pos)
	if err != nil {
		return err
	}
	if sum != h.CRC() && !guard.Off(guard.RecoveryChecksums) {
		return fmt.Errorf("%w: checksum at offset %d is %08x, the header says %08x", ErrCorrupt, h.BaseOffset(), sum, h.CRC())
	}
	return nil
}

// sum is the checksum of the batch at a position, window by window. It moves the window,
// so the header must lie elsewhere.
func (s *scanner) sum(h batch.Batch, at int64) (uint32, error) {
	const crcStart = 21
	var sum uint32
	for pos, end := at+crcStart, at+int64(h.Size()); pos < end; {
		b, err := s.peek(pos, 1)
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		b = s.buf[pos-s.bufStart:]
		b = b[:min(int64(len(b)), end-pos)]
		sum = crc32.Update(sum, castagnoli, b)
		pos += int64(len(b))
	}
	return sum, nil
}

// peek returns n bytes from pos on, fewer at the end.
func (s *scanner) peek(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.end-pos))
	if pos < s.bufStart || pos+int64(n) > s.bufStart+int64(len(s.buf)) {
		if err := s.load(pos); err != nil {
			return nil, err
		}
	}
	b := s.buf[pos-s.bufStart:]
	return b[:min(n, len(b))], nil
}

func (s *scanner) load(pos int64) error {
	want := int(min(int64(s.window), s.end-pos))
	if cap(s.buf) < want {
		s.buf = make([]byte, want)
	}
	s.buf = s.buf[:want]
	n, err := s.r.ReadAt(s.buf, pos)
	s.buf, s.bufStart = s.buf[:n], pos
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read segment at byte %d: %w", pos, err)
	}
	return nil
}

// seek hops on to the first batch that ends at or behind target. io.EOF: there is
// none.
func (s *scanner) seek(target epoch.Offset) (batch.Batch, int64, error) {
	for {
		h, pos, err := s.next()
		if err != nil || h.LastOffset() >= target {
			return h, pos, err
		}
	}
}
