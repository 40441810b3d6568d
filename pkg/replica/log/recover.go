package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// header is a batch of which only the fixed part is there.
type header = batch.Batch

// eachBatch calls f for every batch until the end of the bytes.
func eachBatch(sc *scanner, f func(header)) error {
	for {
		h, _, err := sc.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(h)
	}
}

// recover finds out, for every segment, how many of its bytes count.
func (o *opener) recover() error {
	if err := o.loadEpochs(); err != nil {
		return err
	}
	if o.cfg.CheckAll {
		o.report.Clean = false
		return o.scan(0)
	}
	if o.report.Clean {
		done, err := o.trust(len(o.segments))
		if err != nil || done {
			return err
		}
		o.log.Info("log does not end as an orderly stop leaves it, scanning")
		o.report.Clean = false
	}
	first := o.segmentAt(max(o.recoveryPoint.get(), 0))
	if done, err := o.trust(first); err != nil || !done {
		// A segment below the recovery point that does not fit: look at everything.
		if err != nil {
			return err
		}
		first = 0
	}
	return o.scan(first)
}

func (o *opener) loadEpochs() error {
	c, found, broken, err := readEpochs(o.fs, o.dir)
	if err != nil {
		return err
	}
	if broken != nil {
		o.log.Info("leader epochs are computed from the batches", "file", epochFile, "reason", broken.Error())
	}
	o.epochs = c
	o.epochsUsable = found && broken == nil
	o.report.EpochCacheRebuilt = broken != nil
	return nil
}

// trust takes the first n segments without reading their batches: a sealed one is
// its whole file, and ends where the next begins. Of the last segment of the log it
// reads the headers behind the last index entry. It reports false, having changed
// nothing that a scan would not set again, if something does not fit.
func (o *opener) trust(n int) (bool, error) {
	for i, s := range o.segments[:n] {
		size, err := s.file.Size()
		if err != nil {
			return false, fmt.Errorf("size of segment %d: %w", s.base, err)
		}
		s.reset()
		if i == len(o.segments)-1 {
			return o.trustLast(s, size)
		}
		s.size, s.end = size, o.segments[i+1].base
		if err := s.readIndexes(); err != nil {
			s.reset()
			if s.rebuild(size, o.cfg.IndexIntervalBytes) != nil || s.end != o.segments[i+1].base {
				return false, nil
			}
			s.noteTime()
			if err := s.writeIndexes(); err != nil {
				return false, fmt.Errorf("rebuild indexes of segment %d: %w", s.base, err)
			}
			o.unsynced = append(o.unsynced, s.stem+suffixIndex, s.stem+suffixTimeIndex)
		}
		s.offsets, s.times, s.sealed = nil, nil, true
	}
	return true, nil
}

// trustLast finds the end of the log's last segment. Its indexes are used if they
// fit, and made from the batches' headers otherwise.
func (o *opener) trustLast(s *segment, size int64) (bool, error) {
	// The end is not known yet: any offset that the index can name is inside.
	s.size, s.end = size, s.base+1<<31
	var entry offsetEntry
	if err := s.readIndexes(); err == nil && len(s.offsets) > 0 {
		entry = decodeOffsetEntry(s.offsets[len(s.offsets)-offsetEntrySize:])
	} else {
		s.reset()
	}
	offsets, times := s.offsets, s.times
	sc := headerScanner(s.file, entry.position, size)
	next := s.base
	for first := len(offsets) > 0; ; first = false {
		h, at, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		fits := err == nil && (h.BaseOffset() == next || first && int64(h.LastOffset()-s.base) == entry.relative)
		if !fits || o.contradicts(h) {
			return false, nil
		}
		next = h.NextOffset()
		s.note(h, at, o.cfg.IndexIntervalBytes)
	}
	s.size, s.end = size, next
	if len(offsets) > 0 {
		s.offsets, s.times, s.sinceEntry = offsets, times, size-entry.position
	}
	if h, _, err := headerScanner(s.file, 0, size).next(); err == nil {
		s.firstTimestamp = newest(h)
	}
	return checkTimeIndex(s.times, int64(s.end-s.base)) == nil, nil
}

// contradicts reports a batch whose epoch is not what the cache has for its offset,
// and notes it.
func (o *opener) contradicts(h header) bool {
	start := max(o.logStart.get(), o.segments[0].base)
	if !o.epochsUsable || h.LastOffset() < start {
		return false
	}
	if o.epochs.EpochAt(max(h.BaseOffset(), start)) == h.LeaderEpoch() {
		return false
	}
	if !o.report.EpochContradiction {
		o.log.Info("batch contradicts the leader-epoch checkpoint", "offset", h.BaseOffset(),
			"batchEpoch", h.LeaderEpoch(), "checkpoint", o.epochs.String())
	}
	o.report.EpochContradiction = true
	return true
}

// scan reads and checks every batch from segment first on, and cuts the log before
// the first that is not whole or does not continue it.
func (o *opener) scan(first int) error {
	if err := o.measureScan(first); err != nil {
		return err
	}
	for i := first; i < len(o.segments); i++ {
		s := o.segments[i]
		size, err := s.file.Size()
		if err != nil {
			return fmt.Errorf("size of segment %d: %w", s.base, err)
		}
		if i > first && s.base != o.segments[i-1].end {
			return o.dropFrom(i)
		}
		cause, err := o.scanSegment(s, size)
		if err != nil {
			return err
		}
		if cause != nil || s.size < size {
			return o.cutTail(i, size, cause)
		}
		if i < len(o.segments)-1 {
			if err := o.seal(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanSegment goes through a segment's batches. cause says why it stopped before
// the end; err that reading failed, which says nothing about the bytes.
func (o *opener) scanSegment(s *segment, size int64) (cause, err error) {
	s.reset()
	s.dirty = true
	sc := dataScanner(s.file, 0, size)
	for {
		h, pos, err := sc.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, ErrCorrupt), errors.Is(err, batch.ErrIncomplete):
			return err, nil
		case err != nil:
			return nil, fmt.Errorf("scan segment %d: %w", s.base, err)
		case h.BaseOffset() != s.end || h.LeaderEpoch() < 0:
			return fmt.Errorf("%w: offset %d, leader epoch %d where offset %d should follow", ErrCorrupt, h.BaseOffset(), h.LeaderEpoch(), s.end), nil
		case !s.fits(int64(h.Size()), h.LastOffset()):
			return fmt.Errorf("%w: the segment is larger than its index can address", ErrCorrupt), nil
		}
		o.contradicts(h)
		s.note(h, pos, o.cfg.IndexIntervalBytes)
		o.checked(int64(h.Size()))
	}
}

// checkStep is after how many bytes a scan tells how far it is.
const checkStep = 64 << 20

func (o *opener) measureScan(first int) error {
	o.toCheck, o.doneChecking = 0, 0
	for _, s := range o.segments[first:] {
		size, err := s.file.Size()
		if err != nil {
			return fmt.Errorf("size of segment %d: %w", s.base, err)
		}
		o.toCheck += size
	}
	o.checked(0)
	return nil
}

func (o *opener) checked(bytes int64) {
	before := o.doneChecking
	o.doneChecking += bytes
	if o.cfg.Checking != nil && (before == 0 || o.doneChecking/checkStep > before/checkStep || o.doneChecking == o.toCheck) {
		o.cfg.Checking(o.doneChecking, o.toCheck)
	}
}

func (o *opener) seal(s *segment) error {
	s.noteTime()
	if err := s.writeIndexes(); err != nil {
		return fmt.Errorf("rebuild indexes of segment %d: %w", s.base, err)
	}
	s.offsets, s.times, s.sealed = nil, nil, true
	o.unsynced = append(o.unsynced, s.stem+suffixIndex, s.stem+suffixTimeIndex)
	return nil
}

// cutTail cuts segment i, of which s.size bytes count, and removes those behind it:
// they would leave a hole.
func (o *opener) cutTail(i int, fileSize int64, cause error) error {
	s := o.segments[i]
	torn, err := isTorn(s, fileSize)
	if err != nil {
		return err
	}
	o.report.OnlyTornTail = torn && i == len(o.segments)-1
	if !o.report.OnlyTornTail {
		if err := o.tellDamage(); err != nil {
			return err
		}
	}
	o.report.CutBytes += fileSize - s.size
	o.log.Info("log is cut", "offset", s.end, "bytes", fileSize-s.size, "tornWrite", o.report.OnlyTornTail, "reason", fmt.Sprint(cause))
	if err := o.removeBehind(i); err != nil {
		return err
	}
	if err := s.file.Truncate(s.size); err != nil {
		return fmt.Errorf("cut segment %d to %d bytes: %w", s.base, s.size, err)
	}
	return nil
}

// dropFrom removes the segments from i on, since i does not continue the log.
func (o *opener) dropFrom(i int) error {
	o.report.OnlyTornTail = false
	if err := o.tellDamage(); err != nil {
		return err
	}
	o.log.Info("log has a hole", "offset", o.segments[i-1].end, "nextSegment", o.segments[i].base)
	if err := o.removeBehind(i - 1); err != nil {
		return err
	}
	s := o.segments[i-1]
	return o.unseal(s)
}

func (o *opener) tellDamage() error {
	if o.cfg.Damaged == nil {
		return nil
	}
	if err := o.cfg.Damaged(); err != nil {
		return fmt.Errorf("note the damage of the log: %w", err)
	}
	return nil
}

func (o *opener) removeBehind(i int) error {
	o.report.CutAt = o.segments[i].end
	gone := o.segments[i+1:]
	for j := len(gone) - 1; j >= 0; j-- {
		size, err := gone[j].file.Size()
		if err != nil {
			return fmt.Errorf("size of segment %d: %w", gone[j].base, err)
		}
		o.report.CutBytes += size
		o.report.SegmentsRemoved++
		if err := gone[j].removeFiles(); err != nil {
			return fmt.Errorf("remove segment %d: %w", gone[j].base, err)
		}
	}
	o.discard(gone)
	o.segments = o.segments[: i+1 : i+1]
	return nil
}

// tornLimit bounds how much of a tail is examined. One write is smaller, and more
// than this is not called torn.
const tornLimit = 256 << 20

// isTorn reports whether what follows the bytes that count can only be an unfinished
// last write: zeros (the size reached the disk before the data), or the beginning of
// the batch that comes next, with no whole batch anywhere behind. A batch that is
// all there with a wrong checksum is damage, not an unfinished write.
func isTorn(s *segment, fileSize int64) (bool, error) {
	torn, err := tornTail(s.file, s.size, fileSize, s.end)
	if err != nil {
		return false, fmt.Errorf("read the tail of segment %d: %w", s.base, err)
	}
	return torn, nil
}

// tornTail is isTorn for the bytes of a file from one position to another, where the
// batch of offset next should begin.
func tornTail(r io.ReaderAt, from, to int64, next epoch.Offset) (bool, error) {
	if to-from > tornLimit {
		return false, nil
	}
	tail := make([]byte, to-from)
	if k, err := r.ReadAt(tail, from); k < len(tail) {
		return false, err
	}
	if allZero(tail) {
		return true, nil
	}
	_, _, err := batch.Next(tail)
	if !errors.Is(err, batch.ErrIncomplete) || !beginsAt(tail, next) {
		return false, nil
	}
	return !holdsBatch(tail, next), nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// beginsAt reports that b begins with that offset, as far as there are bytes.
func beginsAt(b []byte, o epoch.Offset) bool {
	want := binary.BigEndian.AppendUint64(nil, uint64(o))
	n := min(len(b), len(want))
	return string(b[:n]) == string(want[:n])
}

// holdsBatch looks for a whole batch of a later offset at any byte of b: then a
// length field is damaged, and more than one write was cut.
func holdsBatch(b []byte, after epoch.Offset) bool {
	for i := 1; i+batch.HeaderSize <= len(b); i++ {
		if b[i+16] != batch.Magic {
			continue
		}
		c, _, err := batch.Next(b[i:])
		if err == nil && c.BaseOffset() > after && c.CheckCRC() == nil {
			return true
		}
	}
	return false
}
