package log

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/tidemark-io/tidemark/internal/vfs"
)

// Both indexes are arrays of fixed entries, big endian, with offsets relative to
// the segment's base.
//
//	.index      int32 offset, int32 position    last offset of the batch there
//	.timeindex  int64 timestamp, int32 offset   up to offset, none is later
//
// An entry follows after IndexIntervalBytes of log. Keys are strictly increasing.
const (
	offsetEntrySize = 8
	timeEntrySize   = 12
)

// errBrokenIndex says that an index file must be rebuilt.
var errBrokenIndex = errors.New("index is broken")

func appendOffsetEntry(b []byte, relative, position int64) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(relative))
	return binary.BigEndian.AppendUint32(b, uint32(position))
}

func appendTimeEntry(b []byte, timestamp, relative int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(timestamp))
	return binary.BigEndian.AppendUint32(b, uint32(relative))
}

type offsetEntry struct{ relative, position int64 }

type timeEntry struct{ timestamp, relative int64 }

func decodeOffsetEntry(b []byte) offsetEntry {
	return offsetEntry{int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))}
}

func decodeTimeEntry(b []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))}
}

// table is a sorted array of entries, in memory or in a file.
type table[E any] struct {
	r      io.ReaderAt
	n      int
	size   int
	decode func([]byte) E
}

func offsetTable(r io.ReaderAt, bytes int64) table[offsetEntry] {
	return table[offsetEntry]{r, int(bytes / offsetEntrySize), offsetEntrySize, decodeOffsetEntry}
}

func timeTable(r io.ReaderAt, bytes int64) table[timeEntry] {
	return table[timeEntry]{r, int(bytes / timeEntrySize), timeEntrySize, decodeTimeEntry}
}

func (t table[E]) at(i int) (E, error) {
	var buf [timeEntrySize]byte
	b := buf[:t.size]
	if n, err := t.r.ReadAt(b, int64(i)*int64(t.size)); n < len(b) {
		var zero E
		return zero, fmt.Errorf("read index entry %d: %w", i, err)
	}
	return t.decode(b), nil
}

// last returns the last entry for which ok holds, where ok holds for a first part of
// the table only.
func (t table[E]) last(ok func(E) bool) (E, bool, error) {
	var failed error
	i := sort.Search(t.n, func(i int) bool {
		e, err := t.at(i)
		if err != nil {
			failed = err
			return true
		}
		return !ok(e)
	})
	if failed != nil || i == 0 {
		var zero E
		return zero, false, failed
	}
	e, err := t.at(i - 1)
	return e, err == nil, err
}

// checkOffsetIndex looks for what a crash leaves: a partial entry, a tail of zeros
// (preallocated, never trimmed), a position behind the segment's end.
func checkOffsetIndex(b []byte, segmentSize int64) error {
	if len(b)%offsetEntrySize != 0 {
		return fmt.Errorf("%w: %d bytes are no whole entries", errBrokenIndex, len(b))
	}
	prev := offsetEntry{-1, -1}
	for ; len(b) > 0; b = b[offsetEntrySize:] {
		e := decodeOffsetEntry(b)
		if e.relative <= prev.relative || e.position <= prev.position || e.position >= segmentSize {
			return fmt.Errorf("%w: offset %d at %d follows offset %d at %d in a segment of %d bytes", errBrokenIndex,
				e.relative, e.position, prev.relative, prev.position, segmentSize)
		}
		prev = e
	}
	return nil
}

// checkTimeIndex is checkOffsetIndex for the other index. span is the segment's
// number of offsets.
func checkTimeIndex(b []byte, span int64) error {
	if len(b)%timeEntrySize != 0 {
		return fmt.Errorf("%w: %d bytes are no whole entries", errBrokenIndex, len(b))
	}
	prev := timeEntry{-1, -1}
	for ; len(b) > 0; b = b[timeEntrySize:] {
		e := decodeTimeEntry(b)
		if e.timestamp <= prev.timestamp || e.relative <= prev.relative || e.relative >= span {
			return fmt.Errorf("%w: timestamp %d at offset %d follows timestamp %d at offset %d in a segment of %d offsets",
				errBrokenIndex, e.timestamp, e.relative, prev.timestamp, prev.relative, span)
		}
		prev = e
	}
	return nil
}

// cutOffsetIndex drops entries at or behind position. The capacity goes too, so that
// a reader's older slice is never written over.
func cutOffsetIndex(b []byte, position int64) []byte {
	n := sort.Search(len(b)/offsetEntrySize, func(i int) bool {
		return decodeOffsetEntry(b[i*offsetEntrySize:]).position >= position
	}) * offsetEntrySize
	return b[:n:n]
}

// cutTimeIndex drops entries at or behind the relative offset.
func cutTimeIndex(b []byte, relative int64) []byte {
	n := sort.Search(len(b)/timeEntrySize, func(i int) bool {
		return decodeTimeEntry(b[i*timeEntrySize:]).relative >= relative
	}) * timeEntrySize
	return b[:n:n]
}

// indexView is an index as a reader sees it: in memory for the segment being
// written, in its file for the others.
type indexView struct {
	fs   vfs.FS
	name string
	mem  []byte
}

// open returns the entries and a function to call when done.
func (v indexView) open() (io.ReaderAt, int64, func(), error) {
	if v.name == "" {
		return bytes.NewReader(v.mem), int64(len(v.mem)), func() {}, nil
	}
	f, err := v.fs.Open(v.name)
	if err != nil {
		return nil, 0, nil, err
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close()
		return nil, 0, nil, err
	}
	return f, size, func() { _ = f.Close() }, nil
}

// lastOffset finds the last entry for which ok holds. No entry, or an index that
// cannot be read, sends the caller to the segment's start: slower, still right.
func (v indexView) lastOffset(ok func(offsetEntry) bool) (e offsetEntry) {
	r, size, done, err := v.open()
	if err != nil {
		return offsetEntry{}
	}
	defer done()
	e, found, err := offsetTable(r, size).last(ok)
	if err != nil || !found {
		return offsetEntry{}
	}
	return e
}

// lastTime is lastOffset for the time index.
func (v indexView) lastTime(ok func(timeEntry) bool) (timeEntry, bool) {
	r, size, done, err := v.open()
	if err != nil {
		return timeEntry{}, false
	}
	defer done()
	e, found, err := timeTable(r, size).last(ok)
	return e, found && err == nil
}
