package log

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// maxSegmentOffsets is how far the offsets of a segment may lie from its base.
const maxSegmentOffsets = math.MaxInt32

// cleanChunk is how much a step reads and writes at a time.
const cleanChunk = 1 << 20

// Pace is told of bytes before they are read, and delays them. Its error ends the step.
type Pace func(bytes int64) error

// Step goes on with a run, up to where the appender has to swap a segment in or the run is
// over: SwapCompacted is to be called next. It runs beside everything else.
//
// Errors: ErrCompactionStale, ErrNoSpace, ErrDamaged, ErrClosed, that of pace, or what keeps
// a batch from being decoded. After an error the run is to be closed.
func (c *Compaction) Step(pace Pace) error {
	err := c.step(pace)
	switch {
	case err == nil:
		return nil
	case c.log.closed.Load():
		return ErrClosed
	case c.stale():
		return ErrCompactionStale
	case vfs.IsNoSpace(err):
		return fmt.Errorf("%w: compact the log: %w", ErrNoSpace, err)
	}
	return fmt.Errorf("compact the log: %w", err)
}

func (c *Compaction) stale() bool {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.truncations != c.log.truncations
}

func (c *Compaction) step(pace Pace) error {
	if c.keys == nil {
		if err := c.readKeys(pace); err != nil {
			return err
		}
	}
	for len(c.groups) > 0 && c.made == nil && c.groups[0][0].base < c.to {
		if err := c.clean(c.groups[0], pace); err != nil {
			return err
		}
		if c.made == nil {
			c.groups = c.groups[1:]
		}
	}
	if c.made == nil {
		c.groups = nil
	}
	return nil
}

// readKeys fills the map with the keys of the dirty part, or with as many as it takes, and
// finds the last batch of every producer.
func (c *Compaction) readKeys(pace Pace) error {
	end := c.segments[len(c.segments)-1].end
	keys := newKeyMap(c.rules.MapBytes, int64(end-c.from))
	c.lastOf, c.to = map[int64]epoch.Offset{}, end
	for _, s := range c.segments {
		if s.end <= c.from {
			if err := c.readProducers(s, pace); err != nil {
				return err
			}
			continue
		}
		err := c.eachWhole(s, pace, func(b batch.Batch) error {
			if c.to < end {
				return io.EOF
			}
			c.noteProducer(b)
			return c.noteKeys(keys, b)
		})
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	c.keys = keys
	return nil
}

func (c *Compaction) readProducers(s *segment, pace Pace) error {
	if len(c.producers) == 0 {
		return nil
	}
	for sc := headerScanner(s.file, 0, s.size); ; {
		h, _, err := sc.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = pace(min(headerWindow, int64(h.Size())))
		}
		if err != nil {
			return err
		}
		c.noteProducer(h)
	}
}

// noteProducer: the last batch of a producer below what the run covers is what a truncation
// may make its last of all. Of producers that the log has forgotten nothing is kept.
func (c *Compaction) noteProducer(b batch.Batch) {
	if tracked(b) && c.producers[b.ProducerID()] && !guard.Off(guard.CompactKeepsProducers) {
		c.lastOf[b.ProducerID()] = b.LastOffset()
	}
}

func (c *Compaction) noteKeys(keys *keyMap, b batch.Batch) error {
	if b.Control() || b.LastOffset() < c.from {
		return nil
	}
	for r, err := range batch.Records(b) {
		if err != nil {
			return err
		}
		if r.Key != nil && r.Offset >= c.from && !keys.put(r.Key, r.Offset) {
			c.to = r.Offset
			return nil
		}
	}
	return nil
}

// keeps is Kafka's rule, and its order: what the map does not cover stays; a record without
// key has no place here; a record stays if it is its key's last, and a tombstone not beyond
// its time. When a tombstone goes nothing older of its key is left: it is below what this or
// an earlier run covers, and the groups are replaced from the log's start on.
func (c *Compaction) keeps(b batch.Batch, r batch.Record) bool {
	switch {
	case r.Offset >= c.to:
		return true
	case r.Key == nil, r.Offset < c.keys.last(r.Key):
		return false
	}
	return r.Value != nil || !b.HasDeleteHorizon() || c.rules.Now.UnixMilli() < b.Horizon() || r.Offset >= c.rules.TombstonesBelow
}

// clean writes a group's segments into one, unless nothing of them would change.
func (c *Compaction) clean(group []*segment, pace Pace) error {
	base := group[0].base
	w, err := c.create(base)
	if err != nil {
		return err
	}
	for _, s := range group {
		if err == nil {
			err = c.eachWhole(s, pace, func(b batch.Batch) error { return c.cleanBatch(w, b) })
		}
		c.stats.Read += s.size
	}
	if err == nil {
		err = w.finish()
	}
	if err == nil && (w.changed || len(group) > 1) {
		err = w.store()
		if err == nil {
			c.made = w.segment
			return nil
		}
	}
	_ = w.segment.file.Close()
	c.removeCleaned(w.segment.stem)
	return err
}

func (c *Compaction) cleanBatch(w *cleaner, b batch.Batch) error {
	if b.BaseOffset() >= c.to || b.Control() {
		return w.put(b)
	}
	last, known := c.lastOf[b.ProducerID()]
	ofProducer := known && last == b.LastOffset()
	if b.Count() == 0 {
		if ofProducer {
			return w.put(b)
		}
		return w.skip(b)
	}
	k, err := batch.Compact(b, c.rules.Now.Add(c.rules.DeleteRetention).UnixMilli(), func(r batch.Record) bool { return c.keeps(b, r) })
	if err != nil {
		return err
	}
	c.stats.Removed += int64(k.Removed)
	if k.Records == 0 && !ofProducer {
		return w.skip(b)
	}
	w.changed = w.changed || &k.Batch[0] != &b[0]
	return w.put(k.Batch)
}

// eachWhole reads the batches of a segment, and checks every one: what is damaged must not
// get a new checksum.
func (c *Compaction) eachWhole(s *segment, pace Pace, f func(batch.Batch) error) error {
	var buf []byte // what was read and not used yet ends at pos
	next := s.base
	for pos := int64(0); pos < s.size || len(buf) > 0; {
		b, rest, err := batch.Next(buf)
		if errors.Is(err, batch.ErrIncomplete) && pos < s.size {
			if err := pace(min(cleanChunk, s.size-pos)); err != nil {
				return err
			}
			if buf, pos, err = readOn(s, buf, pos); err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			continue
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err == nil && b.BaseOffset() != next {
			err = fmt.Errorf("%w: offset %d where offset %d should follow", ErrCorrupt, b.BaseOffset(), next)
		}
		if err != nil {
			return fmt.Errorf("%w: %w: segment %d: %w", ErrDamaged, ErrCorrupt, s.base, err)
		}
		if err := f(b); err != nil {
			return err
		}
		buf, next = rest, b.NextOffset()
	}
	return nil
}

// readOn reads on at pos behind what is left in buf.
func readOn(s *segment, buf []byte, pos int64) ([]byte, int64, error) {
	n := min(cleanChunk, s.size-pos)
	if len(buf) >= batch.PrefixSize { // a large batch is read at once
		n = min(max(n, int64(batch.Batch(buf).Size()-len(buf))), s.size-pos)
	}
	more := make([]byte, len(buf)+int(n))
	copy(more, buf)
	if k, err := s.file.ReadAt(more[len(buf):], pos); k < int(n) {
		return nil, pos, fmt.Errorf("read %d bytes at byte %d of segment %d: %w", n, pos, s.base, err)
	}
	return more, pos + n, nil
}

// cleaner writes a segment under the names of one that is not part of the log yet.
type cleaner struct {
	segment  *segment
	interval int
	buf      []byte
	written  int64 // bytes in the file; buf follows
	// filler is a run of offsets without records that is not written yet.
	filler struct {
		base, next epoch.Offset
		epoch      epoch.LeaderEpoch
		batches    int
	}
	changed bool
}

func (c *Compaction) create(base epoch.Offset) (*cleaner, error) {
	f, err := c.log.fs.Create(fileName(c.log.dir, base, suffixLog+suffixCleaned))
	if err != nil {
		return nil, err
	}
	return &cleaner{segment: newSegment(c.log.fs, c.log.dir, base, f), interval: c.interval}, nil
}

// skip leaves a batch out, whose offsets a filler will stand for: one of one leader epoch,
// so that the epochs can be made out of the batches still.
func (w *cleaner) skip(b batch.Batch) error {
	f := &w.filler
	if f.batches > 0 && f.epoch == b.LeaderEpoch() {
		f.next, f.batches, w.changed = b.NextOffset(), f.batches+1, true
		return nil
	}
	if err := w.writeFiller(); err != nil {
		return err
	}
	f.base, f.next, f.epoch, f.batches = b.BaseOffset(), b.NextOffset(), b.LeaderEpoch(), 1
	w.changed = w.changed || !b.IsFiller()
	return nil
}

func (w *cleaner) writeFiller() error {
	f := &w.filler
	if f.batches == 0 {
		return nil
	}
	f.batches = 0
	b, err := batch.Empty(f.base, f.next-1, f.epoch)
	if err != nil {
		return err
	}
	return w.write(b)
}

func (w *cleaner) put(b batch.Batch) error {
	if err := w.writeFiller(); err != nil {
		return err
	}
	return w.write(b)
}

// errSegmentOverflow: recompressed, batches may take a little more than before.
var errSegmentOverflow = errors.New("the segment would be larger than its index can address")

func (w *cleaner) write(b batch.Batch) error {
	if !w.segment.fits(int64(len(b)), b.LastOffset()) {
		return fmt.Errorf("segment %d: %w", w.segment.base, errSegmentOverflow)
	}
	w.segment.note(b, w.segment.size, w.interval)
	w.buf = append(w.buf, b...)
	if len(w.buf) < cleanChunk {
		return nil
	}
	return w.flush()
}

func (w *cleaner) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.segment.file.WriteVec([][]byte{w.buf}, w.written)
	w.written += n
	w.buf = w.buf[:0]
	return err
}

func (w *cleaner) finish() error {
	if err := w.writeFiller(); err != nil {
		return err
	}
	return w.flush()
}

// store makes the segment and its indexes durable. Their names are not, yet.
func (w *cleaner) store() error {
	s := w.segment
	s.noteTime()
	s.fresh = s.size // what is read of it is checked
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync the compacted segment %d: %w", s.base, err)
	}
	for _, x := range []struct {
		suffix string
		data   []byte
	}{{suffixIndex, s.offsets}, {suffixTimeIndex, s.times}} {
		if err := vfs.WriteFileSynced(s.fs, s.stem+x.suffix+suffixCleaned, x.data); err != nil {
			return fmt.Errorf("write an index of the compacted segment %d: %w", s.base, err)
		}
	}
	return nil
}

func (c *Compaction) removeCleaned(stem string) {
	for _, suffix := range []string{suffixLog, suffixIndex, suffixTimeIndex} {
		_ = c.log.fs.Remove(stem + suffix + suffixCleaned)
	}
}
