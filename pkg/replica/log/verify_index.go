package log

import (
	"iter"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// indexCheck reads both indexes of a segment along with its batches.
type indexCheck struct {
	s       *segmentCheck
	offsets cursor[IndexEntry]
	times   cursor[TimeIndexEntry]
	// newest is the greatest timestamp so far of the segment's batches that have records;
	// newestOfAll is of those, too, that compaction has emptied: Kafka's may count.
	newest, newestOfAll int64
	lastEntry           TimeIndexEntry
	end                 epoch.Offset
}

// cursor goes through an index; at is the entry to be judged next, if there is one.
type cursor[E any] struct {
	next func() (E, error, bool)
	stop func()
	at   E
	more bool
	err  error
	n    int64 // entries read
}

func newCursor[E any](seq iter.Seq2[E, error]) cursor[E] {
	c := cursor[E]{}
	c.next, c.stop = iter.Pull2(seq)
	c.step()
	return c
}

func (c *cursor[E]) step() {
	c.at, c.err, c.more = c.next()
	c.more = c.more && c.err == nil
	c.n++
}

func newIndexCheck(s *segmentCheck) *indexCheck {
	c := &indexCheck{s: s, newest: -1, newestOfAll: -1, lastEntry: TimeIndexEntry{-1, s.base - 1}, end: s.base,
		offsets: newCursor(s.in.OffsetIndex(s.base)), times: newCursor(s.in.TimeIndex(s.base))}
	return c
}

func (c *indexCheck) stop() {
	c.offsets.stop()
	c.times.stop()
}

// wrong tells of an entry. The index of the segment being written is made anew by a start
// that follows no orderly stop.
func (c *indexCheck) wrong(suffix string, entry int64, format string, args ...any) {
	severity, remedy := Error, remedyRemove
	if c.s.last && !c.s.clean {
		severity, remedy = Warning, remedyRebuilt
	}
	size := int64(offsetEntrySize)
	if suffix == suffixTimeIndex {
		size = timeEntrySize
	}
	c.s.find(severity, c.s.path(fileName("", c.s.base, suffix)), (entry-1)*size, remedy, format, args...)
}

// batch judges the entries that are about a batch, or lie before it. An entry names the
// last offset of the batch at its position; brokers before 4.0 name the last of several
// batches that were appended at once. It is useful as long as nothing between the entry's
// offset and the batch is left out.
func (c *indexCheck) batch(b StoredBatch) {
	o := &c.offsets
	for o.more && o.at.Position <= b.Position {
		switch e := o.at; {
		case e.Position < b.Position:
			c.wrong(suffixIndex, o.n, "sends who looks for offset %d to byte %d, where no batch begins", e.Offset, e.Position)
		case e.Offset < b.Header.BaseOffset(), c.s.own && e.Offset != b.Header.LastOffset():
			c.wrong(suffixIndex, o.n, "sends who looks for offset %d to byte %d, the batch of offsets %d to %d", e.Offset, e.Position, b.Header.BaseOffset(), b.Header.LastOffset())
		}
		prev := o.at
		o.step()
		if o.more && (o.at.Offset <= prev.Offset || o.at.Position <= prev.Position) {
			c.wrong(suffixIndex, o.n, "offset %d at byte %d follows offset %d at byte %d", o.at.Offset, o.at.Position, prev.Offset, prev.Position)
		}
	}
	c.newestOfAll = max(c.newestOfAll, b.Header.MaxTimestamp())
	if b.Header.Count() > 0 {
		c.newest = max(c.newest, b.Header.MaxTimestamp())
	}
	c.end = b.Header.NextOffset()
	t := &c.times
	for t.more && t.at.Offset <= b.Header.LastOffset() {
		switch e := t.at; {
		case e.Timestamp <= c.lastEntry.Timestamp || e.Offset <= c.lastEntry.Offset:
			c.wrong(suffixTimeIndex, t.n, "time %d at offset %d follows time %d at offset %d", e.Timestamp, e.Offset, c.lastEntry.Timestamp, c.lastEntry.Offset)
		case e.Timestamp != c.newest && (c.s.own || e.Timestamp != c.newestOfAll):
			c.wrong(suffixTimeIndex, t.n, "says that the greatest time up to offset %d is %d, and it is %d", e.Offset, e.Timestamp, c.newest)
		}
		c.lastEntry = t.at
		t.step()
	}
}

// finish judges what is left behind the last batch.
func (c *indexCheck) finish() {
	s := c.s
	switch o := &c.offsets; {
	case o.more && s.readable:
		c.wrong(suffixIndex, o.n, "offset %d is sent to byte %d, behind the last batch", o.at.Offset, o.at.Position)
	case o.err != nil && !s.missing(suffixIndex, o.err):
		c.wrong(suffixIndex, o.n, "%v", o.err)
	}
	switch t := &c.times; {
	case t.more && s.readable:
		c.wrong(suffixTimeIndex, t.n, "time %d is that of offset %d, and the segment ends with %d", t.at.Timestamp, t.at.Offset, c.end-1)
	case t.err != nil && !s.missing(suffixTimeIndex, t.err):
		c.wrong(suffixTimeIndex, t.n, "%v", t.err)
	case t.err == nil && !s.last && s.readable && c.newest > c.lastEntry.Timestamp:
		c.wrong(suffixTimeIndex, t.n, "ends with time %d, and the segment has records up to time %d: lookups by time pass it over", c.lastEntry.Timestamp, c.newest)
	}
}
