package log

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// inspectLimit bounds the batches of which the records are looked at, in bytes. It is
// far above what brokers accept.
const inspectLimit = 128 << 20

// ErrOldFormat says that a segment holds messages of format 0 or 1, of before Kafka
// 0.11.
var ErrOldFormat = errors.New("messages of an older format")

// StoredBatch is a batch as it stands in a segment.
type StoredBatch struct {
	// Header is the batch cut off behind its fixed part, valid until the next step.
	Header batch.Batch
	// Position is where the batch begins in the file.
	Position int64
	// CRC is what the checksum is, to be compared with Header.CRC.
	CRC uint32

	file io.ReaderAt
}

// Sound reports that the checksum is right.
func (b StoredBatch) Sound() bool { return b.CRC == b.Header.CRC() }

// Load reads the whole batch.
func (b StoredBatch) Load() (batch.Batch, error) {
	size := b.Header.Size()
	if size > inspectLimit {
		return nil, fmt.Errorf("%w: %d bytes; records are looked at up to %d", batch.ErrMessageTooLarge, size, inspectLimit)
	}
	buf := make([]byte, size)
	if n, err := b.file.ReadAt(buf, b.Position); n < size {
		return nil, fmt.Errorf("read %d of %d bytes: %w", n, size, err)
	}
	// The file may have changed since the header was read.
	whole, _, err := batch.Next(buf)
	return whole, err
}

// BadBytes is the error of a sequence of batches that cannot go on: from Position on the
// file's bytes cannot be told apart into batches.
type BadBytes struct {
	Position, Size int64 // Size is the file's
	Err            error
}

func (e *BadBytes) Error() string { return fmt.Sprintf("byte %d of %d: %v", e.Position, e.Size, e.Err) }

// Unwrap gives the reason.
func (e *BadBytes) Unwrap() error { return e.Err }

// Batches goes through a segment. Batches with a wrong checksum are there, too; where
// the next one cannot be found, the sequence ends with *BadBytes. Other errors are of
// reading.
func (in *Inspector) Batches(base epoch.Offset) iter.Seq2[StoredBatch, error] {
	return func(yield func(StoredBatch, error) bool) {
		f, err := in.open(fileName("", base, suffixLog))
		if err != nil {
			yield(StoredBatch{}, err)
			return
		}
		defer f.Close()
		for b, err := range batchesOf(f) {
			if !yield(b, err) {
				return
			}
		}
	}
}

func batchesOf(f file) iter.Seq2[StoredBatch, error] {
	return func(yield func(StoredBatch, error) bool) {
		sc := headerScanner(f, 0, f.size)
		sc.window = dataWindow
		for {
			h, pos, err := sc.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(StoredBatch{}, sc.bad(err))
				return
			}
			copy(sc.header[:], h)
			b := StoredBatch{Header: sc.header[:], Position: pos, file: f}
			if b.CRC, err = sc.sum(b.Header, pos); err != nil {
				yield(b, err)
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// bad tells bytes that are no batch from bytes that could not be read.
func (s *scanner) bad(err error) error {
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, batch.ErrIncomplete) {
		return err
	}
	// All formats have their number at the same place; a message has 14 bytes at least.
	const oldest = 17
	if b, perr := s.peek(s.pos, oldest); perr == nil && len(b) == oldest && (b[16] == 0 || b[16] == 1) {
		if n := batch.Batch(b).Size(); n-batch.PrefixSize >= 14 && int64(n) <= s.end-s.pos {
			err = fmt.Errorf("%w (%d)", ErrOldFormat, b[16])
		}
	}
	return &BadBytes{s.pos, s.end, err}
}
