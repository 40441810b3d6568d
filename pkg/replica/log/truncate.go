package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// TruncateTo removes what lies at or behind offset o: the batches, and the epochs in
// which nothing else was written. A batch that o falls into goes whole, so the log
// may end below o. At or behind the log's end only epochs go (KAFKA-10706). The
// high watermark is the caller's to lower. When it returns without error the cut is
// durable.
//
// Errors: ErrNoSpace, when only the epoch file is still to be written (done before
// the next append, and by the next start); ErrFailed.
func (l *Log) TruncateTo(o epoch.Offset) error {
	if err := l.writable(); err != nil {
		return err
	}
	if o < 0 {
		return fmt.Errorf("truncate to %d: %w", o, ErrOffsetOutOfRange)
	}
	if o < l.EndOffset() {
		if err := l.cut(o); err != nil {
			return err
		}
		o = min(o, l.EndOffset())
	}
	c := l.EpochCache()
	if !c.TruncateFromEnd(o) && !l.epochsStale {
		return nil
	}
	l.setEpochs(c)
	return l.writeEpochs(c)
}

// cut removes batches from offset o < end on.
func (l *Log) cut(o epoch.Offset) error {
	if o < l.segments[0].base {
		return l.restartAt(o, o)
	}
	i := l.segmentAt(o)
	s := l.segments[i]
	pos, end, err := l.cutPosition(s, o)
	if err != nil {
		return err
	}
	if s.sealed {
		if err := l.unseal(s); err != nil {
			return err
		}
	}
	l.producers = newProducerState() // before the end, KAFKA-12153
	gone := l.hideFrom(i, pos, end)
	if err := l.lowerCheckpoints(end, l.StartOffset()); err != nil {
		return err
	}
	if err := l.removeFromEnd(gone, s); err != nil {
		return err
	}
	return l.afterCut()
}

// cutPosition finds the first batch that reaches o: where it begins, in the file
// and in offsets.
func (l *Log) cutPosition(s *segment, o epoch.Offset) (int64, epoch.Offset, error) {
	sc := headerScanner(s.file, s.seekPosition(o), s.size)
	h, pos, err := sc.seek(o)
	if errors.Is(err, io.EOF) {
		return s.size, s.end, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("find offset %d in segment %d: %w", o, s.base, err)
	}
	return pos, h.BaseOffset(), nil
}

// seekPosition is the position of a batch at or before the one that holds o.
func (s *segment) seekPosition(o epoch.Offset) int64 {
	return s.offsetIndex().lastOffset(func(e offsetEntry) bool { return s.base+epoch.Offset(e.relative) <= o }).position
}

// lowerCheckpoints makes the checkpoints on disk true of a log that ends at end and
// begins at start, before its files are changed: otherwise, after a crash, bytes
// appended after the cut would count as synced, or as committed (a truncation below the
// high watermark follows an unclean election), or the whole log as lying below its own
// start. In memory both were lowered before, so that a
// Checkpoint running beside does not raise them again.
func (l *Log) lowerCheckpoints(end, start epoch.Offset) error {
	if !guard.Off(guard.LowerRecoveryPoint) {
		if err := l.recoveryPoint.lower(end); err != nil {
			return l.fail(err)
		}
	}
	if err := l.logStart.lower(start); err != nil {
		return l.fail(err)
	}
	// What will be appended there is not compacted.
	if err := l.cleaned.lower(end); err != nil {
		return l.fail(err)
	}
	if guard.Off(guard.LowerHighWatermark) {
		return nil
	}
	if err := l.highWatermark.lower(end); err != nil {
		return l.fail(err)
	}
	return nil
}

// unseal makes a sealed segment one that can be written: its indexes come back into
// memory, by a scan if the files are no good.
func (l *Log) unseal(s *segment) error {
	fresh := newSegment(l.fs, l.dir, s.base, s.file)
	fresh.size, fresh.end = s.size, s.end
	if err := fresh.readIndexes(); err != nil {
		fresh.reset()
		if err := fresh.rebuild(s.size, l.cfg.IndexIntervalBytes); err != nil {
			return fmt.Errorf("rebuild indexes of segment %d: %w", s.base, err)
		}
	}
	l.mu.Lock()
	s.offsets, s.times, s.sealed = fresh.offsets, fresh.times, false
	l.mu.Unlock()
	return nil
}

// rebuild fills an empty segment's indexes from the first size bytes of its file.
func (s *segment) rebuild(size int64, interval int) error {
	sc := headerScanner(s.file, 0, size)
	for {
		h, pos, err := sc.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.note(h, pos, interval)
	}
}

// hideFrom ends the log, for everybody who looks, in segment i at pos, and returns
// the segments behind it. The counter tells readers that are at it to throw away
// what they read.
func (l *Log) hideFrom(i int, pos int64, end epoch.Offset) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, gone := l.segments[i], l.segments[i+1:]
	l.segments = l.segments[: i+1 : i+1]
	l.truncations++
	if s.sealed {
		s.fresh = pos
	}
	s.fresh = min(s.fresh, pos)
	s.size, s.end, l.end = pos, end, end
	s.offsets = cutOffsetIndex(s.offsets, pos)
	s.times = cutTimeIndex(s.times, int64(end-s.base))
	l.start, l.flushed = min(l.start, end), min(l.flushed, end)
	return gone
}

// removeFromEnd removes segments from the newest to the oldest, so that a crash
// leaves a log without a hole, cuts the file of the one that stays, and syncs.
func (l *Log) removeFromEnd(gone []*segment, s *segment) error {
	for i := len(gone) - 1; i >= 0; i-- {
		if err := gone[i].removeFiles(); err != nil {
			return l.fail(fmt.Errorf("remove segment %d: %w", gone[i].base, err))
		}
	}
	l.discard(gone)
	if err := s.file.Truncate(s.size); err != nil {
		return l.fail(fmt.Errorf("truncate segment %d to %d bytes: %w", s.base, s.size, err))
	}
	if err := s.file.Sync(); err != nil {
		return l.fail(fmt.Errorf("sync segment %d: %w", s.base, err))
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.fail(fmt.Errorf("sync directory: %w", err))
	}
	return nil
}

// afterCut brings what depends on the batches in line with those that are left.
func (l *Log) afterCut() error {
	if err := l.summarise(l.active()); err != nil {
		return l.fail(err)
	}
	if err := l.findLast(); err != nil {
		return l.fail(err)
	}
	state, err := l.loadProducers()
	if err != nil {
		return l.fail(err)
	}
	l.producers = state
	if err := l.pruneSnapshots(); err != nil {
		return err
	}
	return nil
}

// summarise computes a segment's timestamps anew, from the index as far as it goes
// and from the batches behind.
func (l *Log) summarise(s *segment) error {
	sum := newSegment(l.fs, l.dir, s.base, s.file)
	pos := int64(0)
	if n := len(s.offsets); n > 0 {
		pos = decodeOffsetEntry(s.offsets[n-offsetEntrySize:]).position
	}
	if n := len(s.times); n > 0 {
		e := decodeTimeEntry(s.times[n-timeEntrySize:])
		sum.maxTimestamp, sum.maxTimestampOffset = e.timestamp, s.base+epoch.Offset(e.relative)
	}
	for sc := headerScanner(s.file, pos, s.size); ; {
		h, _, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read segment %d: %w", s.base, err)
		}
		if ts := newest(h); ts > sum.maxTimestamp {
			sum.maxTimestamp, sum.maxTimestampOffset = ts, h.LastOffset()
		}
	}
	first := int64(batch.NoTimestamp)
	if h, _, err := headerScanner(s.file, 0, s.size).next(); err == nil {
		first = newest(h)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.maxTimestamp, s.maxTimestampOffset, s.firstTimestamp = sum.maxTimestamp, sum.maxTimestampOffset, first
	s.sinceEntry = s.size - pos
	return nil
}

// TruncateFullyAndStartAt empties the log and makes it begin at o, with no epoch
// and no producer: what a follower does whose offset the leader no longer has.
//
// Errors: ErrOffsetOutOfRange for a negative offset, ErrNoSpace, ErrFailed.
func (l *Log) TruncateFullyAndStartAt(o epoch.Offset) error {
	if err := l.writable(); err != nil {
		return err
	}
	if o < 0 {
		return fmt.Errorf("start the log at %d: %w", o, ErrOffsetOutOfRange)
	}
	if err := l.restartAt(o, o); err != nil {
		return err
	}
	l.setEpochs(epoch.Cache{})
	return l.writeEpochs(epoch.Cache{})
}

// restartAt replaces all segments by an empty one at base. The log's start is at or
// behind it (behind only in the case of KAFKA-6975). A crash on the way leaves a
// beginning of the old log, or an empty one.
func (l *Log) restartAt(base, start epoch.Offset) error {
	first := l.segments[0]
	gone := append([]*segment{first}, l.hideFrom(0, 0, first.base)...)
	if err := l.lowerCheckpoints(base, start); err != nil {
		return err
	}
	for i := len(gone) - 1; i >= 0; i-- {
		if err := gone[i].removeFiles(); err != nil {
			return l.fail(fmt.Errorf("remove segment %d: %w", gone[i].base, err))
		}
	}
	next, err := l.createSegment(base)
	if err != nil {
		// The old files are gone: there is no log to go on with.
		return l.fail(err)
	}
	if start > base {
		if err := l.logStart.set(start); err != nil {
			return l.fail(err)
		}
	}
	l.producers = newProducerState()
	l.mu.Lock()
	l.segments = []*segment{next}
	l.truncations++
	l.start, l.end, l.flushed = start, base, base
	l.last, l.hasLast = BatchID{}, false
	l.mu.Unlock()
	l.discard(gone)
	return l.pruneSnapshots()
}
