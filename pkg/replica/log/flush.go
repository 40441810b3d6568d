package log

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// unsyncedWork is what one pass of a flush makes durable.
type unsyncedWork struct {
	segments    []*segment
	names       []string
	directory   bool
	end         epoch.Offset
	truncations uint64
}

// Flush makes everything durable that was written before the call, names included,
// and returns the offset below which the log is. A sync that fails ends the log:
// the kernel may have dropped the bytes and report success the next time.
//
// Errors: ErrFailed.
func (l *Log) Flush() (epoch.Offset, error) {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	for {
		if f := l.failure.Load(); f != nil {
			return epoch.NoOffset, *f
		}
		w := l.takeUnsynced()
		err := l.sync(w)
		for _, s := range w.segments {
			l.release(s)
		}
		if err != nil {
			return epoch.NoOffset, l.fail(err)
		}
		if o, done := l.flushedTo(w); done {
			return o, nil
		}
	}
}

func (l *Log) takeUnsynced() unsyncedWork {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := unsyncedWork{names: l.unsynced, directory: l.dirtyDir, end: l.end, truncations: l.truncations}
	l.unsynced, l.dirtyDir = nil, false
	for _, s := range l.segments {
		if s.dirty {
			s.dirty = false
			s.retain()
			w.segments = append(w.segments, s)
		}
	}
	return w
}

func (l *Log) sync(w unsyncedWork) error {
	for _, s := range w.segments {
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync segment %d: %w", s.base, err)
		}
	}
	for _, name := range w.names {
		// Removed meanwhile: nothing to keep (KAFKA-6624, KAFKA-19571).
		if err := l.syncName(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync %s: %w", name, err)
		}
	}
	if w.directory {
		if err := l.fs.SyncDir(l.dir); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}

func (l *Log) syncName(name string) error {
	f, err := l.fs.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// flushedTo raises the flushed offset. If a truncation came between, what was synced
// says nothing about what lies at these offsets now, and another pass is needed.
func (l *Log) flushedTo(w unsyncedWork) (epoch.Offset, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.truncations != l.truncations {
		return 0, false
	}
	l.flushed = max(l.flushed, w.end)
	return l.flushed, true
}

// Checkpoint makes the high watermark durable, with the recovery point (what Flush
// made durable) and the log's start. It may be called after Close.
//
// Errors: ErrNoSpace, ErrFailed.
func (l *Log) Checkpoint(hw epoch.Offset) error {
	if f := l.failure.Load(); f != nil {
		return *f
	}
	l.mu.Lock()
	flushed, start := l.flushed, l.start
	hw = min(max(hw, start), l.end)
	truncations := l.truncations
	l.mu.Unlock()
	current := func() bool { return l.unchangedSince(truncations) }
	err := l.logStart.setIf(start, func(onDisk epoch.Offset) bool { return onDisk < start && current() })
	if err == nil {
		err = l.recoveryPoint.setIf(flushed, func(epoch.Offset) bool { return current() })
	}
	if err == nil {
		err = l.highWatermark.set(hw)
	}
	return l.fault(err)
}

func (l *Log) unchangedSince(truncations uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.truncations == truncations
}

// changes is what a reader compares: while it stays the same, the files behind an extent are
// those that it was taken of. mu must be held.
func (l *Log) changes() uint64 { return l.truncations + l.swaps }

// Close makes everything durable and closes the files, leaving what a clean start
// expects: indexes complete, a snapshot of the producers at the log's end. It
// returns an error if the log cannot vouch for what it holds: then there must be no
// clean mark. Call Checkpoint after it.
//
// Errors: ErrFailed, ErrClosed.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return ErrClosed
	}
	err := l.finish()
	l.mu.Lock()
	segs := l.segments
	l.mu.Unlock()
	l.discard(segs)
	return err
}

func (l *Log) finish() error {
	if f := l.failure.Load(); f != nil {
		return *f
	}
	s := l.active()
	l.mu.Lock()
	s.noteTime()
	l.mu.Unlock()
	snapshot, err := l.writeSnapshot()
	if err == nil {
		err = s.writeIndexes()
	}
	switch err := l.fault(err); {
	case errors.Is(err, ErrNoSpace):
		// A start can do without these; half written they would only be looked at.
		for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
			_ = l.fs.Remove(s.stem + suffix)
		}
	case err != nil:
		return err
	}
	l.mu.Lock()
	l.unsynced = append(l.unsynced, s.stem+suffixIndex, s.stem+suffixTimeIndex)
	if snapshot != "" {
		l.unsynced = append(l.unsynced, snapshot)
	}
	l.dirtyDir = true
	l.mu.Unlock()
	if err := l.pruneSnapshots(); err != nil {
		return err
	}
	_, err = l.Flush()
	return err
}
