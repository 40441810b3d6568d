package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/internal/buffers"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// extent is a part of the log as one moment showed it: a segment with what counted
// of it. It keeps the segment's file open until it is released.
type extent struct {
	segment        *segment
	size           int64
	fresh          int64 // batches from here on need no check
	offsets, times indexView
	maxTimestamp   int64
	end            epoch.Offset
	known          int64 // position of the batch that is looked for, -1 if nobody remembers
}

// extentAt takes segment i for reading. mu must be held.
func (l *Log) extentAt(i int) extent {
	s := l.segments[i]
	s.retain()
	fresh := s.fresh
	if s.sealed {
		fresh = s.size
	}
	return extent{
		segment: s, size: s.size, fresh: fresh, end: s.end, maxTimestamp: s.maxTimestamp, known: -1,
		offsets: s.offsetIndex(), times: s.timeIndex(),
	}
}

// changedSince reports that bytes were taken from the log's end, or segments replaced, after
// the counter had that value: what was read in between, or failed to be read, says nothing.
func (l *Log) changedSince(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes() != n
}

// wish is what a reader asks for.
type wish struct {
	from, limit epoch.Offset
	maxBytes    int
	atLeastOne  bool
	everything  bool // is checked
}

// Read is Lend into memory of the caller's own.
func (l *Log) Read(from, limit epoch.Offset, maxBytes int, atLeastOne bool) ([]byte, error) {
	n, err := l.Lend(from, limit, maxBytes, atLeastOne)
	return n.keep(), err
}

// Lend returns whole batches from the one that holds offset from up to, not
// including, the first that does not end below limit. The first may begin below
// from. There are at most maxBytes of them, or with atLeastOne the first one
// whatever its size, and they end with a segment: an answer may be shorter than it
// could be, and is empty only if nothing fits or from is at limit or the log's end.
// The checksum of every batch is checked that this process did not write into the
// segment being written itself, a short while ago: a disk may change what it holds. Whole
// batches before a damaged one are returned; the next read tells of it.
//
// Errors, with nothing lent: ErrOffsetOutOfRange outside of [start, end], ErrDamaged,
// ErrClosed.
func (l *Log) Lend(from, limit epoch.Offset, maxBytes int, atLeastOne bool) (Loan, error) {
	return l.lend(wish{from: from, limit: limit, maxBytes: maxBytes, atLeastOne: atLeastOne})
}

// Verify reads like Lend, checks everything, and returns how far it got.
func (l *Log) Verify(from, limit epoch.Offset, maxBytes int) (next epoch.Offset, err error) {
	n, err := l.lend(wish{from: from, limit: limit, maxBytes: maxBytes, atLeastOne: true, everything: true})
	defer n.Return()
	if err != nil || len(n.Records) == 0 {
		return from, err
	}
	return n.next, nil
}

func (l *Log) lend(w wish) (Loan, error) {
	for {
		x, n, limit, err := l.extentFor(w.from, w.limit)
		if err != nil || x.segment == nil {
			return Loan{}, err
		}
		if w.limit = limit; w.everything {
			x.fresh = x.size
		}
		out, err := x.read(w)
		if !l.leave(x.segment, out, n) {
			out.Return()
			continue
		}
		if l.closed.Load() && err != nil {
			return Loan{}, ErrClosed
		}
		switch {
		case errors.Is(err, ErrCorrupt), errors.Is(err, batch.ErrIncomplete):
			err = fmt.Errorf("%w: %w: %w", ErrDamaged, ErrCorrupt, err)
		case err != nil:
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err != nil {
			return Loan{}, fmt.Errorf("read at offset %d: %w", w.from, err)
		}
		return out, nil
	}
}

// leave gives a segment back after a read, and remembers where that has ended. It reports
// false if the read says nothing.
func (l *Log) leave(s *segment, n Loan, changes uint64) bool {
	defer l.release(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes() != changes {
		return false
	}
	if len(n.Records) > 0 {
		l.places.add(place{s, n.next, n.position, changes})
	}
	return true
}

// extentFor finds the segment to read offset from in, none if there is nothing
// below the limit, and the limit within the log.
func (l *Log) extentFor(from, limit epoch.Offset) (extent, uint64, epoch.Offset, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return extent{}, 0, 0, ErrClosed
	}
	if from < l.start || from > l.end {
		return extent{}, 0, 0, fmt.Errorf("%w: %d is not in [%d, %d]", ErrOffsetOutOfRange, from, l.start, l.end)
	}
	limit = min(limit, l.end)
	if from >= limit {
		return extent{}, 0, 0, nil
	}
	x := l.extentAt(l.segmentAt(from))
	x.known = l.places.find(x.segment, from, l.changes())
	return x, l.changes(), limit, nil
}

func (x extent) read(w wish) (Loan, error) {
	h, pos, err := x.seek(w.from)
	if errors.Is(err, io.EOF) {
		return Loan{}, nil
	}
	if err != nil {
		return Loan{}, err
	}
	first := h.Size()
	if h.LastOffset() >= w.limit || first > w.maxBytes && !w.atLeastOne {
		return Loan{}, nil
	}
	n := Loan{buffer: buffers.Get(int(min(max(int64(w.maxBytes), int64(first)), x.size-pos)))}
	err = x.fill(&n, pos, w.limit)
	if err != nil {
		n.Return()
	}
	return n, err
}

// fill reads into a loan's buffer from a position on.
func (x extent) fill(n *Loan, pos int64, limit epoch.Offset) (err error) {
	if got, err := x.segment.file.ReadAt(n.buffer, pos); got < len(n.buffer) {
		return fmt.Errorf("read %d bytes at byte %d of segment %d: %w", len(n.buffer), pos, x.segment.base, err)
	}
	n.Records, n.next, err = wholeBatches(n.buffer, limit, x.fresh-pos)
	n.position = pos + int64(len(n.Records))
	return err
}

// seek finds the first batch that ends at or behind o, with the help of what is remembered
// or of the index.
func (x extent) seek(o epoch.Offset) (batch.Batch, int64, error) {
	if x.known >= 0 {
		s := headerScanner(x.segment.file, x.known, x.size)
		s.window = batch.HeaderSize
		if h, pos, err := s.next(); err == nil && h.BaseOffset() == o {
			return h, pos, nil
		}
	}
	rel := int64(o - x.segment.base)
	start := x.offsets.lastOffset(func(e offsetEntry) bool { return e.relative <= rel }).position
	h, pos, err := headerScanner(x.segment.file, start, x.size).seek(o)
	if err != nil && start > 0 && !errors.Is(err, io.EOF) {
		// An index file that lies costs time, not answers.
		return headerScanner(x.segment.file, 0, x.size).seek(o)
	}
	return h, pos, err
}

// wholeBatches is the part of b that consists of whole batches below limit, with the
// right checksum as far as they begin before byte check; and the offset behind them.
func wholeBatches(b []byte, limit epoch.Offset, check int64) (whole []byte, next epoch.Offset, err error) {
	n := 0
	for rest := b; len(rest) > 0; {
		bt, tail, err := batch.Next(rest)
		if errors.Is(err, batch.ErrIncomplete) {
			break
		}
		if err == nil && bt.LastOffset() >= limit {
			break
		}
		if err == nil && int64(n) < check {
			err = bt.CheckCRC()
		}
		if err != nil && n == 0 {
			return nil, 0, err
		}
		if err != nil {
			break
		}
		n += len(bt)
		next = bt.NextOffset()
		rest = tail
	}
	return b[:n:n], next, nil
}

// clip makes the first of some batches begin at from, if it is a filler in which that lies.
func clip(b []byte, from epoch.Offset) error {
	first, _, err := batch.Next(b)
	if err == nil {
		first.ClipFiller(from)
	}
	return err
}

// BatchEndingAt identifies the batch whose last record has that offset; false if no
// batch ends there.
//
// Errors: ErrCorrupt, ErrClosed, or what reading the file gave.
func (l *Log) BatchEndingAt(last epoch.Offset) (BatchID, bool, error) {
	for {
		x, n, _, err := l.extentFor(last, last+1)
		if errors.Is(err, ErrOffsetOutOfRange) || err == nil && x.segment == nil {
			return BatchID{}, false, nil
		}
		if err != nil {
			return BatchID{}, false, err
		}
		h, _, err := x.seek(last)
		l.release(x.segment)
		switch {
		case l.changedSince(n):
			continue
		case errors.Is(err, io.EOF):
			return BatchID{}, false, nil
		case err != nil:
			return BatchID{}, false, fmt.Errorf("find the batch that ends at offset %d: %w", last, err)
		}
		id := idOf(h)
		return id, id.LastOffset == last, nil
	}
}

// findLast looks up the last batch of the log after its end has changed.
func (l *Log) findLast() error {
	l.mu.Lock()
	l.last, l.hasLast = BatchID{}, false
	l.mu.Unlock()
	for i := len(l.segments) - 1; i >= 0; i-- {
		s := l.segments[i]
		if s.size == 0 {
			continue
		}
		sc := headerScanner(s.file, s.seekPosition(s.end-1), s.size)
		h, _, err := sc.seek(s.end - 1)
		if err != nil {
			return fmt.Errorf("find the last batch, in segment %d: %w", s.base, err)
		}
		l.mu.Lock()
		l.last, l.hasLast = idOf(h), true
		l.mu.Unlock()
		return nil
	}
	return nil
}
