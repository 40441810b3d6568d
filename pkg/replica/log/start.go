package log

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// SetStartOffset moves the log's start up to o (DeleteRecords, retention, the
// leader's start), durably, and removes the segments that lie wholly below it. An
// offset at or below the start changes nothing. The caller sees to it that o is not
// above the high watermark.
//
// Errors: ErrOffsetOutOfRange behind the log's end, ErrNoSpace, ErrFailed.
func (l *Log) SetStartOffset(o epoch.Offset) error {
	if err := l.writable(); err != nil {
		return err
	}
	if o <= l.StartOffset() {
		return nil
	}
	if o > l.EndOffset() {
		return fmt.Errorf("move the log's start to %d: %w, it ends at %d", o, ErrOffsetOutOfRange, l.EndOffset())
	}
	if o == l.EndOffset() && l.active().size > 0 {
		if err := l.roll(); err != nil {
			return err
		}
	}
	// The checkpoint goes first: a start that finds it finishes the removal.
	if err := l.logStart.set(o); err != nil {
		return l.fault(err)
	}
	c := l.EpochCache()
	changed := c.TruncateFromStart(o)
	gone := l.raiseStart(o, c)
	if err := l.removeFromStart(gone); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	// The file may lag: the next start cuts it likewise, so a full disk is no error.
	if err := l.writeEpochs(c); err != nil && l.failure.Load() != nil {
		return err
	}
	return nil
}

// raiseStart moves the start in memory and returns the segments below it.
func (l *Log) raiseStart(o epoch.Offset, c epoch.Cache) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.segments)-1 && l.segments[n].end <= o {
		n++
	}
	gone := l.segments[:n]
	l.segments = append([]*segment(nil), l.segments[n:]...)
	l.start, l.epochs = o, c
	l.flushed = max(l.flushed, l.start)
	if l.hasLast && l.segments[0].size == 0 {
		l.last, l.hasLast = BatchID{}, false
	}
	return gone
}

// removeFromStart removes segments from the oldest on, so that a crash leaves no
// hole in the log.
func (l *Log) removeFromStart(gone []*segment) error {
	if len(gone) == 0 {
		return nil
	}
	for _, s := range gone {
		if err := s.removeFiles(); err != nil {
			return l.fail(fmt.Errorf("remove segment %d: %w", s.base, err))
		}
	}
	l.discard(gone)
	l.mu.Lock()
	l.dirtyDir = true
	l.mu.Unlock()
	return l.pruneSnapshots()
}

// ExpireProducers forgets the idempotent producers that have been silent for longer
// than Config.ProducerExpiry, by now, since an earlier call. Leaders and followers both
// call it from time to time.
func (l *Log) ExpireProducers(now time.Time) { l.producers.expire(now, l.cfg.ProducerExpiry) }

// ApplyRetention removes the oldest segments as the limits of Config demand. Only whole
// segments below the high watermark go (KAFKA-5634), first for their age, then for the
// log's size. A segment without timestamps is as old as its file. It returns the log's
// start afterwards.
//
// Errors: ErrNoSpace, ErrFailed.
func (l *Log) ApplyRetention(now time.Time, hw epoch.Offset) (epoch.Offset, error) {
	if err := l.writable(); err != nil {
		return epoch.NoOffset, err
	}
	start := l.StartOffset()
	n := l.expired(now, hw)
	n = max(n, l.surplus(hw))
	if n > 0 {
		start = max(start, l.segments[n-1].end)
	}
	if err := l.SetStartOffset(start); err != nil {
		return epoch.NoOffset, err
	}
	return l.StartOffset(), nil
}

// removable reports whether a segment may go at all.
func removable(s *segment, hw epoch.Offset) bool { return s.size > 0 && s.end <= hw }

// expired counts the oldest segments that are too old.
func (l *Log) expired(now time.Time, hw epoch.Offset) int {
	if l.cfg.Retention <= 0 {
		return 0
	}
	oldest := now.Add(-l.cfg.Retention).UnixMilli()
	n := 0
	for n < len(l.segments) && removable(l.segments[n], hw) && l.newestTime(l.segments[n]) < oldest {
		n++
	}
	return n
}

func (l *Log) newestTime(s *segment) int64 {
	if s.maxTimestamp >= 0 {
		return s.maxTimestamp
	}
	info, err := l.fs.Stat(s.stem + suffixLog)
	if err != nil {
		return 1<<63 - 1 // keep what cannot be judged
	}
	return info.ModTime.UnixMilli()
}

// surplus counts the oldest segments without which the log is still not smaller
// than its limit.
func (l *Log) surplus(hw epoch.Offset) int {
	if l.cfg.RetentionBytes <= 0 {
		return 0
	}
	over := l.Size() - l.cfg.RetentionBytes
	n := 0
	for n < len(l.segments) && removable(l.segments[n], hw) && over >= l.segments[n].size {
		over -= l.segments[n].size
		n++
	}
	return n
}
