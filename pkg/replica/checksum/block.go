package checksum

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// MaxBlocks is how many blocks one answer may have.
const MaxBlocks = 1024

// Block is the batches whose last offsets are in [From, To).
type Block struct {
	From epoch.Offset `json:"from"`
	To   epoch.Offset `json:"to"`
	// First is the first offset of the first batch, and may be below From; Last the last
	// offset of the last batch. Both are -1 if there is no batch.
	First epoch.Offset `json:"first"`
	Last  epoch.Offset `json:"last"`
	// Batches, Records and Bytes count what is in the block.
	Batches int64 `json:"batches"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// SHA256 is over the bytes of the batches, in hex.
	SHA256 string `json:"sha256"`
}

// Line is one line of the answer: a block, or how it ends. An answer without Done or Error
// was cut off on its way.
type Line struct {
	*Block
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

// Range says what to sum up: [From, To), in blocks of Step offsets.
type Range struct {
	From, To epoch.Offset
	Step     int64
}

// StepFor is the step that cuts a range into that many blocks, or fewer.
func StepFor(from, to epoch.Offset, blocks int64) int64 {
	return max(1, (int64(to-from)+blocks-1)/blocks)
}

// Check says what is wrong with a range.
func (r Range) Check() error {
	switch {
	case r.From < 0 || r.To < r.From:
		return fmt.Errorf("from %d to %d is no range of offsets", r.From, r.To)
	case r.Step < StepFor(r.From, r.To, MaxBlocks):
		return fmt.Errorf("a step of %d gives more than %d blocks between %d and %d; it must be at least %d",
			r.Step, MaxBlocks, r.From, r.To, StepFor(r.From, r.To, MaxBlocks))
	}
	return nil
}

// Read returns whole batches from the one that holds an offset on, at least one, and what
// gives their memory back.
type Read func(from epoch.Offset) (records []byte, done func(), err error)

// Sum reads a range and hands out its blocks, each as soon as it is known, empty ones too.
// It ends with the first error, its own, read's or emit's.
func Sum(r Range, read Read, emit func(Block) error) error {
	s := summer{end: r.To, step: epoch.Offset(r.Step), emit: emit}
	s.begin(r.From)
	for next := r.From; next < r.To; {
		records, done, err := read(next)
		if err != nil {
			return err
		}
		next, err = s.add(next, records)
		done()
		if err != nil {
			return err
		}
	}
	return s.upTo(r.To)
}

type summer struct {
	block Block
	hash  hash.Hash
	end   epoch.Offset
	step  epoch.Offset
	emit  func(Block) error
}

func (s *summer) begin(from epoch.Offset) {
	s.block = Block{From: from, To: min(from+s.step, s.end), First: epoch.NoOffset, Last: epoch.NoOffset}
	s.hash = sha256.New()
}

// add returns the offset to read on at, which is the end once that is reached.
func (s *summer) add(next epoch.Offset, records []byte) (epoch.Offset, error) {
	if len(records) == 0 {
		return next, fmt.Errorf("the log ends at offset %d", next)
	}
	for len(records) > 0 {
		b, rest, err := batch.Next(records)
		if err != nil {
			return next, fmt.Errorf("batch at offset %d: %w", next, err)
		}
		if b.LastOffset() >= s.end {
			return s.end, nil
		}
		if err := s.upTo(b.LastOffset()); err != nil {
			return next, err
		}
		s.note(b)
		next, records = b.NextOffset(), rest
	}
	return next, nil
}

func (s *summer) note(b batch.Batch) {
	if s.block.Batches == 0 {
		s.block.First = b.BaseOffset()
	}
	s.block.Last = b.LastOffset()
	s.block.Batches++
	s.block.Records += int64(b.Count())
	s.block.Bytes += int64(len(b))
	_, _ = s.hash.Write(b) // a hash never fails
}

// upTo hands out the blocks that end at or before an offset.
func (s *summer) upTo(o epoch.Offset) error {
	for s.block.From < s.block.To && s.block.To <= o {
		s.block.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
		if err := s.emit(s.block); err != nil {
			return err
		}
		s.begin(s.block.To)
	}
	return nil
}
