package log

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Suffixes of the files of a segment.
const (
	suffixLog       = ".log"
	suffixIndex     = ".index"
	suffixTimeIndex = ".timeindex"
	suffixTxnIndex  = ".txnindex"
	suffixSnapshot  = ".snapshot"
)

// segment is one file of batches with its two indexes. Its fields, other than the
// first four, are guarded by Log.mu.
type segment struct {
	fs   vfs.FS
	base epoch.Offset
	// stem is the path without suffix.
	stem string
	file vfs.File

	// size is how many bytes of the file count; end is the offset behind them.
	size int64
	end  epoch.Offset
	// offsets and times hold the indexes while the segment is active. A sealed
	// segment has them in its files.
	offsets, times []byte
	sealed         bool
	// sinceEntry is how many bytes were written since the last index entry.
	sinceEntry int64
	// firstTimestamp is the first batch's maximum, for rolling by age.
	firstTimestamp int64
	// maxTimestamp is the greatest timestamp, and maxTimestampOffset the last offset
	// of the batch that brought it.
	maxTimestamp       int64
	maxTimestampOffset epoch.Offset
	// fresh is from where on the bytes were written by this process, as long as the
	// segment is not sealed. Reads check what is older: a disk may change it.
	fresh int64
	// dirty says that the file has bytes, or a size, that were not synced.
	dirty bool
	// refs counts readers; a removed segment is closed by the last of them.
	refs    int
	removed bool
}

// fileName is the 20-digit form of an offset that names a segment's files.
func fileName(dir string, base epoch.Offset, suffix string) string {
	return path.Join(dir, fmt.Sprintf("%020d%s", int64(base), suffix))
}

// parseFileName is the reverse of fileName, without the directory.
func parseFileName(name, suffix string) (epoch.Offset, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return epoch.Offset(n), err == nil && n >= 0
}

func newSegment(fsys vfs.FS, dir string, base epoch.Offset, f vfs.File) *segment {
	s := &segment{fs: fsys, base: base, stem: strings.TrimSuffix(fileName(dir, base, suffixLog), suffixLog), file: f}
	s.reset()
	return s
}

// reset makes the segment an empty one.
func (s *segment) reset() {
	s.size, s.end, s.sinceEntry = 0, s.base, 0
	s.offsets, s.times, s.sealed = nil, nil, false
	s.firstTimestamp, s.maxTimestamp, s.maxTimestampOffset = batch.NoTimestamp, batch.NoTimestamp, s.base
}

// note takes a batch that stands at position into account. Index entries are made
// here and nowhere else, so that a rebuilt index equals the one that was lost.
func (s *segment) note(b batch.Batch, position int64, interval int) {
	if s.size == 0 {
		s.firstTimestamp = newest(b)
	}
	if ts := newest(b); ts > s.maxTimestamp {
		s.maxTimestamp, s.maxTimestampOffset = ts, b.LastOffset()
	}
	if s.sinceEntry > int64(interval) {
		s.offsets = appendOffsetEntry(s.offsets, int64(b.LastOffset()-s.base), position)
		s.noteTime()
		s.sinceEntry = 0
	}
	s.sinceEntry += int64(b.Size())
	s.size = position + int64(b.Size())
	s.end = b.NextOffset()
}

// newest is the greatest timestamp of a batch's records. What compaction has left without
// records has none, although a producer's last batch keeps its own.
func newest(b batch.Batch) int64 {
	if b.Count() == 0 {
		return batch.NoTimestamp
	}
	return b.MaxTimestamp()
}

// noteTime adds the greatest timestamp to the time index, unless it is there.
func (s *segment) noteTime() {
	prev := timeEntry{batch.NoTimestamp, -1}
	if n := len(s.times); n > 0 {
		prev = decodeTimeEntry(s.times[n-timeEntrySize:])
	}
	if rel := int64(s.maxTimestampOffset - s.base); s.maxTimestamp > prev.timestamp && rel > prev.relative {
		s.times = appendTimeEntry(s.times, s.maxTimestamp, rel)
	}
}

// fits reports whether a write of that size, up to that offset, can be addressed
// with the 32-bit numbers of the indexes.
func (s *segment) fits(size int64, last epoch.Offset) bool {
	return s.size+size <= math.MaxInt32 && last-s.base <= math.MaxInt32
}

// offsetIndex is the offset index for a reader. Log.mu must be held.
func (s *segment) offsetIndex() indexView {
	if s.sealed {
		return indexView{fs: s.fs, name: s.stem + suffixIndex}
	}
	return indexView{mem: s.offsets}
}

// timeIndex is the time index for a reader. Log.mu must be held.
func (s *segment) timeIndex() indexView {
	if s.sealed {
		return indexView{fs: s.fs, name: s.stem + suffixTimeIndex}
	}
	return indexView{mem: s.times}
}

// writeIndexes writes both index files from memory. The time index ends with the
// segment's greatest timestamp, as Kafka leaves it at a roll and at a stop.
func (s *segment) writeIndexes() error {
	if err := vfs.WriteFile(s.fs, s.stem+suffixIndex, s.offsets); err != nil {
		return fmt.Errorf("write offset index: %w", err)
	}
	if err := vfs.WriteFile(s.fs, s.stem+suffixTimeIndex, s.times); err != nil {
		return fmt.Errorf("write time index: %w", err)
	}
	return nil
}

// indexFileLimit bounds an index file: entries of a segment of 2 GiB with an
// interval of one small batch.
const indexFileLimit = 1 << 29

// readIndexes checks the index files of a segment whose size and end are known, and
// takes its greatest timestamp from them. They stay in memory.
func (s *segment) readIndexes() error {
	offsets, err := vfs.ReadFile(s.fs, s.stem+suffixIndex, indexFileLimit)
	if err != nil {
		return err
	}
	times, err := vfs.ReadFile(s.fs, s.stem+suffixTimeIndex, indexFileLimit)
	if err != nil {
		return err
	}
	if err := checkOffsetIndex(offsets, s.size); err != nil {
		return err
	}
	if err := checkTimeIndex(times, int64(s.end-s.base)); err != nil {
		return err
	}
	s.offsets, s.times = offsets, times
	s.sinceEntry = s.size
	if n := len(offsets); n > 0 {
		s.sinceEntry = s.size - decodeOffsetEntry(offsets[n-offsetEntrySize:]).position
	}
	if n := len(times); n > 0 {
		e := decodeTimeEntry(times[n-timeEntrySize:])
		s.maxTimestamp, s.maxTimestampOffset = e.timestamp, s.base+epoch.Offset(e.relative)
	}
	return nil
}

// removeFiles removes the segment's names, the log first: an index without a log is
// tidied up at the next start, a log without its index costs a scan.
func (s *segment) removeFiles() error {
	if err := s.fs.Remove(s.stem + suffixLog); err != nil {
		return err
	}
	for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
		_ = s.fs.Remove(s.stem + suffix)
	}
	return nil
}
