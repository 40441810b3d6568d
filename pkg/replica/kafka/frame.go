package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/tidemark-io/tidemark/internal/buffers"
)

// errMalformed wraps everything that a well-behaved client never sends. It closes
// the connection.
var errMalformed = errors.New("malformed request")

// minFrame is the smallest request header: key, version, correlation id.
const minFrame = 8

// frame is one request as received, without its size. It is owned by one side at a
// time: the reader, then the writer or, for an accepted batch, the partition.
type frame struct {
	bytes    []byte
	counted  int64
	budget   *semaphore.Weighted
	released atomic.Bool
}

// release gives the buffer and its share of the budget back; nothing may look at
// the bytes afterwards. A second call does nothing.
func (f *frame) release() {
	if f == nil || f.released.Swap(true) {
		return
	}
	if f.counted > 0 {
		f.budget.Release(f.counted)
	}
	buffers.Put(f.bytes)
	f.bytes = nil
}

// frameReader cuts the bytes of a connection into frames.
type frameReader struct {
	r io.Reader
	// arm is called before each read that has to make progress.
	arm      func() error
	maxBytes int
	budget   *semaphore.Weighted
	head     [4]byte
}

// next reads one frame. io.EOF means that the other side closed between frames.
func (fr *frameReader) next(ctx context.Context) (*frame, error) {
	if err := fr.readFull(fr.head[:]); err != nil {
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(fr.head[:]))
	if size < minFrame || int64(size) > int64(fr.maxBytes) {
		return nil, fmt.Errorf("%w: size %d is not between %d and %d", errMalformed, size, minFrame, fr.maxBytes)
	}
	f := &frame{budget: fr.budget}
	if size > freeRequestBytes {
		if err := fr.budget.Acquire(ctx, int64(size)); err != nil {
			return nil, err
		}
		f.counted = int64(size)
	}
	if err := fr.body(f, int(size)); err != nil {
		f.release()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return f, nil
}

// body fills a frame. A buffer of more than 1 MiB grows as the bytes come in, so that a
// size alone makes nobody allocate.
func (fr *frameReader) body(f *frame, size int) error {
	const step = 1 << 20
	f.bytes = buffers.Get(min(size, step))
	if err := fr.readFull(f.bytes); err != nil {
		return err
	}
	for have := len(f.bytes); have < size; have = len(f.bytes) {
		grown := make([]byte, min(size, 2*have))
		copy(grown, f.bytes)
		buffers.Put(f.bytes)
		f.bytes = grown
		if err := fr.readFull(f.bytes[have:]); err != nil {
			return err
		}
	}
	return nil
}

// readFull is io.ReadFull with a new deadline for every chunk: a slow client is
// served, a stalled one is not.
func (fr *frameReader) readFull(b []byte) error {
	const chunk = 256 << 10
	for len(b) > 0 {
		if err := fr.arm(); err != nil {
			return err
		}
		n, err := io.ReadFull(fr.r, b[:min(len(b), chunk)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
