package log

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Suffixes of a compacted segment's files on their way into the log, as Kafka has them. What
// is .cleaned may be half written, and is removed by a start. From .swap on it is whole and
// durable, and a start completes what was begun (KAFKA-6264).
const (
	suffixCleaned = ".cleaned"
	suffixSwap    = ".swap"
)

// cleanedFile says up to where the log is compacted.
const cleanedFile = "cleaner-offset-checkpoint"

// SwapCompacted replaces the segments that the last step has compacted. It reports that the
// run goes on with another step; otherwise all of it is done, and noted. Only the appender
// calls it.
//
// Errors: ErrCompactionStale, ErrNoSpace, ErrFailed. After an error the run is to be closed.
func (l *Log) SwapCompacted(c *Compaction) (more bool, err error) {
	if err := l.writable(); err != nil {
		return false, err
	}
	if c.stale() && !guard.Off(guard.SwapUnchanged) {
		return false, ErrCompactionStale
	}
	if c.made == nil {
		return false, l.fault(l.cleaned.set(c.to))
	}
	i := slices.Index(l.segments, c.groups[0][0])
	if i < 0 || i+len(c.groups[0]) > len(l.segments) || !slices.Equal(l.segments[i:i+len(c.groups[0])], c.groups[0]) {
		return false, ErrCompactionStale // retention has taken some
	}
	group, made := c.groups[0], c.made
	c.groups, c.made = c.groups[1:], nil
	if err := l.swap(i, group, made); err != nil {
		return false, l.fail(fmt.Errorf("swap the compacted segment %d in: %w", made.base, err))
	}
	for _, s := range group {
		c.stats.Freed += s.size
	}
	c.stats.Freed -= made.size
	return true, nil
}

// swap is Kafka's order. Between its three parts the directory is synced: the first makes it
// certain that a start finds the new segment, before the old ones go; the second that none of
// the old indexes, which would lie about the new segment, comes back. Readers see the new
// segment, with its indexes in memory, before the first name of an old one goes, and what
// they had of the old ones they throw away.
func (l *Log) swap(i int, group []*segment, made *segment) error {
	suffixes := []string{suffixIndex, suffixTimeIndex, suffixLog}
	for _, suffix := range suffixes {
		if err := l.fs.Rename(made.stem+suffix+suffixCleaned, made.stem+suffix+suffixSwap); err != nil {
			return err
		}
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	l.segments = slices.Concat(l.segments[:i], []*segment{made}, l.segments[i+len(group):])
	l.swaps++
	l.mu.Unlock()
	for _, s := range group {
		if err := s.removeFiles(); err != nil {
			return err
		}
	}
	l.discard(group)
	if err := l.fs.SyncDir(l.dir); err != nil {
		return err
	}
	for _, suffix := range suffixes {
		if err := l.fs.Rename(made.stem+suffix+suffixSwap, made.stem+suffix); err != nil {
			return err
		}
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	made.offsets, made.times, made.sealed = nil, nil, true
	l.mu.Unlock()
	return nil
}

// completeSwaps finishes the swaps that a crash has interrupted, and reports whether there
// were any. The indexes are made anew.
func (o *opener) completeSwaps(names []string) (bool, error) {
	var bases []epoch.Offset
	for _, name := range names {
		if base, ok := parseFileName(name, suffixLog+suffixSwap); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	done := epoch.Offset(0)
	for _, base := range bases {
		end, err := o.swapEnd(base)
		if err == nil && base < done {
			err = fmt.Errorf("%w: it begins within the one before it", ErrCorrupt)
		}
		if err != nil {
			return false, fmt.Errorf("%s is an unfinished compaction that cannot be completed; if Kafka wrote it, let Kafka open and stop the log once, "+
				"otherwise set the volume aside, and the replica copies the log from the others: %w", path.Base(fileName(o.dir, base, suffixLog+suffixSwap)), err)
		}
		if err := o.completeSwap(base, end, names); err != nil {
			return false, fmt.Errorf("complete the compaction of segment %d: %w", base, err)
		}
		o.log.Info("an interrupted compaction was completed", "from", base, "to", end)
		done = end
	}
	return len(bases) > 0, nil
}

// swapEnd reads and checks the new segment: only whole it may take the place of others.
func (o *opener) swapEnd(base epoch.Offset) (epoch.Offset, error) {
	f, err := o.fs.Open(fileName(o.dir, base, suffixLog+suffixSwap))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	next := base
	for sc := dataScanner(f, 0, size); ; {
		h, pos, err := sc.next()
		switch {
		case errors.Is(err, io.EOF) && next > base:
			return next, nil
		case errors.Is(err, io.EOF):
			return 0, fmt.Errorf("%w: it is empty", ErrCorrupt)
		case err != nil:
			return 0, err
		case h.BaseOffset() != next:
			return 0, fmt.Errorf("%w: offset %d at byte %d where offset %d should follow", ErrCorrupt, h.BaseOffset(), pos, next)
		}
		next = h.NextOffset()
	}
}

// completeSwap puts the new segment in the place of those in its range.
func (o *opener) completeSwap(base, end epoch.Offset, names []string) error {
	for _, name := range names {
		for _, suffix := range []string{suffixLog, suffixIndex, suffixTimeIndex, suffixTxnIndex} {
			old, ok := parseFileName(name, suffix)
			if !ok || old < base || old >= end || old == base && suffix == suffixLog { // that one is replaced
				continue
			}
			if err := o.fs.Remove(path.Join(o.dir, name)); err != nil {
				return err
			}
		}
	}
	if err := o.fs.SyncDir(o.dir); err != nil {
		return err
	}
	if err := o.fs.Rename(fileName(o.dir, base, suffixLog+suffixSwap), fileName(o.dir, base, suffixLog)); err != nil {
		return err
	}
	return o.fs.SyncDir(o.dir)
}

// ReadForFollower is LendToFollower into memory of the caller's own.
func (l *Log) ReadForFollower(from, limit epoch.Offset, maxBytes int) ([]byte, error) {
	n, err := l.LendToFollower(from, limit, maxBytes)
	return n.keep(), err
}

// LendToFollower is Lend for a log that ends at from and goes on with what is read. Where
// from lies within a filler, that begins there.
func (l *Log) LendToFollower(from, limit epoch.Offset, maxBytes int) (Loan, error) {
	n, err := l.Lend(from, limit, maxBytes, true)
	if err != nil || len(n.Records) == 0 {
		return n, err
	}
	if err := clip(n.Records, from); err != nil {
		n.Return()
		return Loan{}, err
	}
	return n, nil
}

// CleanedOffset is up to where the log is compacted, NoOffset if it never was.
func (l *Log) CleanedOffset() epoch.Offset { return l.cleaned.get() }
