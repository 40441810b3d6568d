package batch

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// source is where encoded records come from: the batch itself (r is nil), or what
// a decompressor makes of it. It is one struct for both, since an interface here
// costs more than all the rest of a validation.
//
// Running out of bytes is io.EOF or io.ErrUnexpectedEOF; the caller decides what
// that means.
type source struct {
	// b holds the uncompressed records.
	b []byte
	// r is the decompressor's output. It gives at most left bytes, so that a small
	// batch cannot claim much memory or time ("zip bomb").
	r    *bufio.Reader
	left int64
}

const streamBuffer = 4 << 10

func newStream(r io.Reader, limit int64) *source {
	return &source{r: bufio.NewReaderSize(r, streamBuffer), left: limit}
}

func (s *source) spend(n int64) error {
	if n > s.left {
		return fmt.Errorf("%w: its records take more than the limit when decompressed", ErrMessageTooLarge)
	}
	s.left -= n
	return nil
}

func (s *source) readByte() (byte, error) {
	if s.r != nil {
		if err := s.spend(1); err != nil {
			return 0, err
		}
		return s.r.ReadByte()
	}
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c, nil
}

// atEnd returns nil if no byte is left, and an error otherwise.
func (s *source) atEnd() error {
	if s.r != nil {
		if _, err := s.r.ReadByte(); err != io.EOF {
			if err != nil {
				return broken(err)
			}
			return fmt.Errorf("%w: bytes follow its last record", ErrInvalidRecord)
		}
	}
	if len(s.b) > 0 {
		return fmt.Errorf("%w: %d bytes follow its last record", ErrInvalidRecord, len(s.b))
	}
	return nil
}

// skip drops n bytes.
func (s *source) skip(n int64) error {
	if s.r == nil {
		_, err := s.take(n)
		return err
	}
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

// take returns the next n bytes, which stay valid. Uncompressed ones are not
// copied; of a decompressor the result grows as bytes arrive, so that a length
// which lies costs nothing.
func (s *source) take(n int64) ([]byte, error) {
	if s.r == nil {
		if n > int64(len(s.b)) {
			return nil, io.ErrUnexpectedEOF
		}
		head := s.b[:n:n]
		s.b = s.b[n:]
		return head, nil
	}
	if err := s.spend(n); err != nil {
		return nil, err
	}
	const step = 64 << 10
	out := make([]byte, 0, min(n, step))
	for int64(len(out)) < n {
		at := len(out)
		out = append(out, make([]byte, min(n-int64(at), step))...)
		if _, err := io.ReadFull(s.r, out[at:]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// varint reads a zig-zag number and takes its length off *left, the bytes that
// remain of the record around it.
func (s *source) varint(left *int64) (int64, error) {
	if len(s.b) > 0 && s.b[0] < 0x80 { // nearly all are one byte
		c := s.b[0]
		s.b = s.b[1:]
		*left--
		return int64(c>>1) ^ -int64(c&1), nil
	}
	var u uint64
	for i := range binary.MaxVarintLen64 {
		c, err := s.readByte()
		if err != nil {
			return 0, err
		}
		*left--
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
	return 0, fmt.Errorf("%w: a number of more than %d bytes", ErrInvalidRecord, binary.MaxVarintLen64)
}
