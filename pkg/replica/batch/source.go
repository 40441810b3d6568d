package batch

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// source is where encoded records come from: the batch itself, or what a
// decompressor makes of it. Running out of bytes is io.EOF or
// io.ErrUnexpectedEOF; the caller decides what that means.
type source interface {
	io.ByteReader
	// skip drops n bytes.
	skip(n int64) error
	// take returns the next n bytes. They stay valid.
	take(n int64) ([]byte, error)
}

// memory is a source over uncompressed records; take does not copy.
type memory struct{ b []byte }

func (m *memory) ReadByte() (byte, error) {
	if len(m.b) == 0 {
		return 0, io.EOF
	}
	c := m.b[0]
	m.b = m.b[1:]
	return c, nil
}

func (m *memory) skip(n int64) error {
	_, err := m.take(n)
	return err
}

func (m *memory) take(n int64) ([]byte, error) {
	if n > int64(len(m.b)) {
		return nil, io.ErrUnexpectedEOF
	}
	head := m.b[:n:n]
	m.b = m.b[n:]
	return head, nil
}

// stream is a source over a decompressor that gives at most limit bytes, so that
// a small batch cannot claim much memory or time ("zip bomb").
type stream struct {
	r    *bufio.Reader
	left int64
}

const streamBuffer = 4 << 10

func newStream(r io.Reader, limit int64) *stream {
	return &stream{r: bufio.NewReaderSize(r, streamBuffer), left: limit}
}

func (s *stream) spend(n int64) error {
	if n > s.left {
		return fmt.Errorf("%w: its records take more than the limit when decompressed", ErrMessageTooLarge)
	}
	s.left -= n
	return nil
}

func (s *stream) ReadByte() (byte, error) {
	if err := s.spend(1); err != nil {
		return 0, err
	}
	return s.r.ReadByte()
}

func (s *stream) skip(n int64) error {
	if err := s.spend(n); err != nil {
		return err
	}
	for n > 0 {
		// Discard takes an int, which is 32 bits wide on some machines.
		k, err := s.r.Discard(int(min(n, 1<<20)))
		if err != nil {
			return err
		}
		n -= int64(k)
	}
	return nil
}

// take grows the result as bytes arrive: a length that lies costs nothing.
func (s *stream) take(n int64) ([]byte, error) {
	if err := s.spend(n); err != nil {
		return nil, err
	}
	out := make([]byte, 0, min(n, 64<<10))
	for int64(len(out)) < n {
		k := min(n-int64(len(out)), 64<<10)
		at := len(out)
		out = append(out, make([]byte, k)...)
		if _, err := io.ReadFull(s.r, out[at:]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// varint reads a zig-zag number and takes its length off *left, the bytes that
// remain of the record around it.
func varint(s source, left *int64) (int64, error) {
	c := counter{s: s}
	v, err := binary.ReadVarint(&c)
	*left -= c.n
	return v, err
}

type counter struct {
	s source
	n int64
}

func (c *counter) ReadByte() (byte, error) {
	c.n++
	return c.s.ReadByte()
}
