package log

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// OffsetForTimestamp finds the first record at or behind the log's start and below
// limit whose timestamp (milliseconds) is ts or later, and returns its offset and
// timestamp.
//
// Errors: ErrCorrupt, ErrClosed, or what reading the file gave.
func (l *Log) OffsetForTimestamp(ts int64, limit epoch.Offset) (off epoch.Offset, at int64, found bool, err error) {
	for {
		xs, start, limit, n, err := l.extents(limit)
		if err != nil {
			return epoch.NoOffset, batch.NoTimestamp, false, err
		}
		off, at, found, err := firstSince(xs, ts, start, limit)
		l.releaseAll(xs)
		if l.changedSince(n) {
			continue
		}
		if err != nil {
			return epoch.NoOffset, batch.NoTimestamp, false, fmt.Errorf("find timestamp %d: %w", ts, err)
		}
		return off, at, found, nil
	}
}

// MaxTimestamp finds the first record with the greatest timestamp among those below
// limit. found is false if no record has a timestamp. Errors are those of
// OffsetForTimestamp.
func (l *Log) MaxTimestamp(limit epoch.Offset) (off epoch.Offset, at int64, found bool, err error) {
	for {
		xs, start, limit, n, err := l.extents(limit)
		if err != nil {
			return epoch.NoOffset, batch.NoTimestamp, false, err
		}
		newest, err := maxBelow(xs, start, limit)
		if err == nil && newest >= 0 {
			off, at, found, err = firstSince(xs, newest, start, limit)
		} else {
			off, at, found = epoch.NoOffset, batch.NoTimestamp, false
		}
		l.releaseAll(xs)
		if l.changedSince(n) {
			continue
		}
		if err != nil {
			return epoch.NoOffset, batch.NoTimestamp, false, fmt.Errorf("find the greatest timestamp: %w", err)
		}
		return off, at, found, nil
	}
}

// extents takes all segments with something below limit for reading.
func (l *Log) extents(limit epoch.Offset) ([]extent, epoch.Offset, epoch.Offset, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return nil, 0, 0, 0, ErrClosed
	}
	limit = min(limit, l.end)
	var out []extent
	for i, s := range l.segments {
		if s.base < limit {
			out = append(out, l.extentAt(i))
		}
	}
	return out, l.start, limit, l.changes(), nil
}

func (l *Log) releaseAll(xs []extent) {
	for _, x := range xs {
		l.release(x.segment)
	}
}

func firstSince(xs []extent, ts int64, start, limit epoch.Offset) (epoch.Offset, int64, bool, error) {
	for _, x := range xs {
		if x.maxTimestamp < ts {
			continue
		}
		off, at, found, err := x.firstSince(ts, start, limit)
		if err != nil || found {
			return off, at, found, err
		}
	}
	return epoch.NoOffset, batch.NoTimestamp, false, nil
}

// firstSince looks in one segment: the time index says up to where all is older,
// the headers which batch is the first that is not, its records which record.
func (x extent) firstSince(ts int64, start, limit epoch.Offset) (epoch.Offset, int64, bool, error) {
	from := start
	if e, ok := x.times.lastTime(func(e timeEntry) bool { return e.timestamp < ts }); ok {
		from = max(from, x.segment.base+epoch.Offset(e.relative))
	}
	_, pos, err := x.seek(from)
	for sc := headerScanner(x.segment.file, pos, x.size); err == nil; {
		var h batch.Batch
		h, pos, err = sc.next()
		if err != nil || h.BaseOffset() >= limit {
			break
		}
		if newest(h) < ts {
			continue
		}
		off, at, found, err := x.firstRecordSince(pos, h.Size(), ts, start, limit)
		if err != nil || found {
			return off, at, found, err
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, false, err
	}
	return 0, 0, false, nil
}

func (x extent) firstRecordSince(pos int64, size int, ts int64, start, limit epoch.Offset) (epoch.Offset, int64, bool, error) {
	buf := make([]byte, size)
	if n, err := x.segment.file.ReadAt(buf, pos); n < size {
		return 0, 0, false, fmt.Errorf("read batch at byte %d of segment %d: %w", pos, x.segment.base, err)
	}
	b := batch.Batch(buf)
	if err := b.CheckCRC(); err != nil {
		return 0, 0, false, err
	}
	for r, err := range batch.Records(b) {
		if err != nil {
			return 0, 0, false, err
		}
		if r.Timestamp >= ts && r.Offset >= start && r.Offset < limit {
			return r.Offset, r.Timestamp, true, nil
		}
	}
	return 0, 0, false, nil
}

// maxBelow is the greatest timestamp of the batches in [start, limit). What the
// segments remember is enough for those that lie wholly inside.
func maxBelow(xs []extent, start, limit epoch.Offset) (int64, error) {
	newest := int64(math.MinInt64)
	for _, x := range xs {
		if x.segment.base >= start && x.end <= limit {
			newest = max(newest, x.maxTimestamp)
			continue
		}
		ts, err := x.maxBetween(start, limit)
		if err != nil {
			return 0, err
		}
		newest = max(newest, ts)
	}
	return newest, nil
}

// maxBetween goes through the headers. Where limit is the end of a batch, as every
// high watermark is, the header says all; otherwise the records are not looked at
// and the answer may be that of a record behind limit, which is then not found.
func (x extent) maxBetween(start, limit epoch.Offset) (int64, error) {
	latest := int64(batch.NoTimestamp)
	_, pos, err := x.seek(start)
	for sc := headerScanner(x.segment.file, pos, x.size); err == nil; {
		var h batch.Batch
		h, _, err = sc.next()
		if err != nil || h.LastOffset() >= limit {
			break
		}
		latest = max(latest, newest(h))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return latest, nil
}
