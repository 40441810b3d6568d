package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// rewriteChunk is how much Rewrite copies at a time, in bytes.
const rewriteChunk = 1 << 20

// Rewrite writes once more, in place and unchanged, what is not known to be durable.
// It is for a start after a failed sync: the kernel may have taken pages for clean
// that never reached the disk ("fsyncgate"), so that the next sync has nothing to write
// and succeeds, and a power cut shows what is missing. Call it after Open, which has
// checked what it reads, and before Flush. Only the appender calls it.
//
// Errors: ErrNoSpace, ErrFailed.
func (l *Log) Rewrite() error {
	if err := l.writable(); err != nil {
		return err
	}
	l.mu.Lock()
	segments, flushed := l.segments, l.flushed
	l.mu.Unlock()
	for _, s := range segments {
		if s.end <= flushed && s != l.active() {
			continue
		}
		if err := l.rewrite(s, flushed); err != nil {
			return l.fault(fmt.Errorf("rewrite segment %d: %w", s.base, err))
		}
	}
	return nil
}

// rewrite copies a segment onto itself from the batch that holds an offset on.
func (l *Log) rewrite(s *segment, from epoch.Offset) error {
	pos := int64(0)
	if from > s.base && !s.sealed { // the index of a sealed segment is a file, and as doubtful
		pos = s.seekPosition(from)
	}
	buf := make([]byte, min(rewriteChunk, s.size-pos))
	for pos < s.size {
		n, err := s.file.ReadAt(buf[:min(int64(len(buf)), s.size-pos)], pos)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := s.file.WriteVec([][]byte{buf[:n]}, pos); err != nil {
			return err
		}
		pos += int64(n)
	}
	l.mu.Lock()
	s.dirty = true
	l.mu.Unlock()
	return nil
}
