package log

import (
	"errors"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Compaction in short (docs/compaction.md): of every key the last record is kept. A run goes
// from the log's start to the end of what may be compacted. It has three parts, which take
// turns:
//
//	PlanCompaction  the appender: which segments, and in which groups they become one
//	Compaction.Step anybody, slowly: the map of keys, then one group into .cleaned files
//	SwapCompacted   the appender: the group's segments are replaced, if they are still the same
//
// Kept batches keep their offsets, and what lost all its records becomes a batch without
// records (a filler), so that the log has no gaps still.
//
// Replicas compact for themselves, and copy from each other all the same. Why that always
// goes on: call the bounds of the batches that leaders once wrote original. Every bound in
// every log is original: appends make originals, compaction only takes bounds away, a
// truncation cuts at a bound, and what is appended to a follower begins at its end. So where
// a follower's end lies within a batch of its leader, below which both have the same history,
// that is no original batch; it is a filler, and ReadForFollower cuts it there. There is one
// exception: a log may begin anywhere (DeleteRecords), and so its start may lie within an
// original batch. A log that ends there is empty, and takes the batch whole (KAFKA-6975).

// CompactionRules are what a run has to keep to.
type CompactionRules struct {
	// HighWatermark is what compaction stays below: a record above it may be truncated, and
	// then the one before it is the key's last again.
	HighWatermark epoch.Offset
	// TombstonesBelow is below where every replica was seen to have the log. A tombstone
	// above it stays whatever its age: a replica that has not seen it would keep what it
	// deletes, for ever.
	TombstonesBelow epoch.Offset
	// Now is the time by which ages are told.
	Now time.Time
	// MinLag keeps segments with younger records as they are (min.compaction.lag.ms).
	MinLag time.Duration
	// DeleteRetention is how long tombstones stay after the run that found them first
	// (delete.retention.ms).
	DeleteRetention time.Duration
	// MinDirtyPercent is how much of what may be compacted must be dirty, that is, appended
	// since the last run (min.cleanable.dirty.ratio).
	MinDirtyPercent int
	// MapBytes bounds the map of keys; a run ends before the record that does not fit. Zero:
	// DefaultKeyMapBytes.
	MapBytes int64
}

// ErrCompactionStale says that the log was truncated, or lost segments, since the run was
// planned. Nothing was changed; the next run begins anew.
var ErrCompactionStale = errors.New("the log has changed under its compaction")

// Compaction is one run.
type Compaction struct {
	log      *Log
	rules    CompactionRules
	interval int // between index entries, in bytes
	// segments are what the run goes over, kept open until it ends; groups those that
	// become one.
	segments []*segment
	groups   [][]*segment
	// truncations is the log's counter when the run was planned.
	truncations uint64
	// producers are those known then.
	producers map[int64]bool
	// from is the first dirty offset, to the first that the map does not cover.
	from, to epoch.Offset

	keys *keyMap
	// lastOf is, of each producer, the last offset of its last batch below to.
	lastOf map[int64]epoch.Offset
	// made is the new segment of groups[0], nil if it is to stay as it is.
	made *segment

	stats CompactionStats
}

// CompactionStats say what a run has done.
type CompactionStats struct {
	// Read counts the bytes of segments gone through, Freed those that were replaced by
	// nothing.
	Read, Freed int64
	// Removed counts records.
	Removed int64
}

// Stats may be called between the steps.
func (c *Compaction) Stats() CompactionStats { return c.stats }

// Dirty is how many bytes may be compacted, and how many of them no run has seen yet.
type Dirty struct{ Bytes, Of int64 }

// Ratio is 0 for nothing, 1 for all.
func (d Dirty) Ratio() float64 {
	if d.Of == 0 {
		return 0
	}
	return float64(d.Bytes) / float64(d.Of)
}

// PlanCompaction begins a run, if there is enough for one: nil otherwise. The run must be
// ended by Close. Only the appender calls it.
func (l *Log) PlanCompaction(r CompactionRules) (*Compaction, Dirty) {
	if l.writable() != nil {
		return nil, Dirty{}
	}
	if r.MapBytes <= 0 {
		r.MapBytes = DefaultKeyMapBytes
	}
	n, flushed := 0, l.FlushedOffset()
	for n < len(l.segments)-1 && l.compactable(l.segments[n], r, flushed) {
		n++
	}
	c := &Compaction{log: l, rules: r, interval: l.cfg.IndexIntervalBytes, segments: slices.Clone(l.segments[:n]), truncations: l.truncations,
		from: max(l.cleaned.get(), l.start)}
	var d Dirty
	for _, s := range c.segments {
		d.Of += s.size
		if s.end > c.from {
			d.Bytes += s.size
		}
	}
	if d.Bytes == 0 || d.Bytes*100 < int64(r.MinDirtyPercent)*d.Of {
		return nil, d
	}
	l.mu.Lock()
	for _, s := range c.segments {
		s.retain()
	}
	l.mu.Unlock()
	c.groups = groupsOf(c.segments, l.cfg.SegmentBytes)
	c.producers = make(map[int64]bool, len(l.producers.producers))
	for id := range l.producers.producers {
		c.producers[id] = true
	}
	return c, d
}

// compactable: what may still be truncated, or lost in a power cut, does not decide which
// records go; what proves to a start that the log is whole (its last batch) stays.
func (l *Log) compactable(s *segment, r CompactionRules, flushed epoch.Offset) bool {
	committed := s.end <= r.HighWatermark || guard.Off(guard.CompactCommittedOnly)
	last := s.end == l.end && !guard.Off(guard.CompactKeepsLast)
	old := r.MinLag <= 0 || l.newestTime(s) <= r.Now.Add(-r.MinLag).UnixMilli()
	return s.sealed && s.size > 0 && committed && s.end <= flushed && !last && old
}

// groupsOf joins neighbours as long as all of them fit into one segment, as they are now.
func groupsOf(segments []*segment, limit int64) (groups [][]*segment) {
	var size int64
	for _, s := range segments {
		if n := len(groups) - 1; n >= 0 && size+s.size <= limit && s.end-1-groups[n][0].base <= maxSegmentOffsets {
			groups[n], size = append(groups[n], s), size+s.size
			continue
		}
		groups, size = append(groups, []*segment{s}), s.size
	}
	return groups
}

// LargestGroup is how many bytes the largest segment to be written may take.
func (c *Compaction) LargestGroup() (largest int64) {
	for _, g := range c.groups {
		var size int64
		for _, s := range g {
			size += s.size
		}
		largest = max(largest, size)
	}
	return largest
}

// Close ends a run, and removes what it has written and not swapped in. It may be called
// at any moment between the steps.
func (c *Compaction) Close() {
	if c.made != nil {
		_ = c.made.file.Close()
		c.removeCleaned(c.made.stem)
		c.made = nil
	}
	for _, s := range c.segments {
		c.log.release(s)
	}
	c.segments, c.groups, c.keys = nil, nil, nil
}
