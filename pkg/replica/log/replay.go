package log

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// replayBytes is how much of the log's end is replayed even where a snapshot
// covers it, since a snapshot holds only the last batch of a producer: a client
// that sends its five batches in flight again after our restart must find them.
const replayBytes = 32 << 20

// loadProducers computes the producer state of the log as it is: the newest usable
// snapshot, and over it what the batches behind say.
func (l *Log) loadProducers() (*ProducerState, error) {
	state, from, err := l.newestSnapshot()
	if err != nil {
		return nil, err
	}
	tail := newProducerState()
	if err := l.replay(tail, from); err != nil {
		return nil, err
	}
	state.overlay(tail)
	return state, nil
}

// newestSnapshot returns the newest snapshot within the log that can be read, and
// its offset; an empty state and the log's start if there is none.
func (l *Log) newestSnapshot() (*ProducerState, epoch.Offset, error) {
	offsets, err := l.snapshots()
	if err != nil {
		return nil, 0, err
	}
	for _, o := range slices.Backward(offsets) {
		if o > l.end || o <= l.start {
			continue
		}
		data, err := vfs.ReadFile(l.fs, fileName(l.dir, o, suffixSnapshot), snapshotLimit)
		if err != nil {
			return nil, 0, fmt.Errorf("read producer snapshot: %w", err)
		}
		state, err := decodeSnapshot(data)
		if err == nil {
			return state, o, nil
		}
		l.log.Info("producer snapshot ignored", "offset", o, "reason", err.Error())
	}
	return newProducerState(), l.start, nil
}

// snapshots lists the offsets of the snapshot files, ascending.
func (l *Log) snapshots() ([]epoch.Offset, error) {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.dir, err)
	}
	var out []epoch.Offset
	for _, name := range names {
		if o, ok := parseFileName(name, suffixSnapshot); ok {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out, nil
}

// replay takes the batches from offset from on into account, and as many before
// it as make up replayBytes.
func (l *Log) replay(state *ProducerState, from epoch.Offset) error {
	var after int64 // bytes behind the segment at hand
	first := len(l.segments) - 1
	for first > 0 && (l.segments[first].base > from || after+l.segments[first].size < replayBytes) {
		after += l.segments[first].size
		first--
	}
	for i, s := range l.segments[first:] {
		pos := int64(0)
		if i == 0 {
			pos = l.replayPosition(s, from, s.size+after-replayBytes)
		}
		sc := headerScanner(s.file, pos, s.size)
		for {
			h, _, err := sc.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("replay producers in segment %d: %w", s.base, err)
			}
			state.update(h)
		}
	}
	return nil
}

// replayPosition is a batch's position at or before both the offset and the byte.
func (l *Log) replayPosition(s *segment, from epoch.Offset, byteLimit int64) int64 {
	if byteLimit <= 0 {
		return 0
	}
	return s.offsetIndex().lastOffset(func(e offsetEntry) bool {
		return e.position <= byteLimit && s.base+epoch.Offset(e.relative) <= from
	}).position
}

// writeSnapshot writes the producer state at the log's end, not yet durable: a torn
// snapshot is recognised and passed over.
func (l *Log) writeSnapshot() (string, error) {
	name := fileName(l.dir, l.EndOffset(), suffixSnapshot)
	if err := vfs.WriteFile(l.fs, name, l.producers.encode()); err != nil {
		_ = l.fs.Remove(name)
		return "", fmt.Errorf("write producer snapshot: %w", err)
	}
	return name, nil
}

// pruneSnapshots removes the snapshots that no start would use: all but those at
// the bases of the two newest segments and the newest one. Snapshots behind the
// log's end are of a history that was truncated, and go in any case.
func (l *Log) pruneSnapshots() error {
	offsets, err := l.snapshots()
	if err != nil {
		return l.fail(err)
	}
	end := l.EndOffset()
	offsets = slices.DeleteFunc(offsets, func(o epoch.Offset) bool {
		if o > end {
			_ = l.fs.Remove(fileName(l.dir, o, suffixSnapshot))
		}
		return o > end
	})
	for i, o := range offsets {
		if i == len(offsets)-1 || l.isNewBase(o) {
			continue
		}
		_ = l.fs.Remove(fileName(l.dir, o, suffixSnapshot))
	}
	return nil
}

func (l *Log) isNewBase(o epoch.Offset) bool {
	newest := l.segments[max(0, len(l.segments)-2):]
	return slices.ContainsFunc(newest, func(s *segment) bool { return s.base == o })
}
