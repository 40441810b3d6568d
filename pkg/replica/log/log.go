package log

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Defaults of Config, Kafka's own.
const (
	DefaultSegmentBytes       = 1 << 30
	DefaultIndexIntervalBytes = 4096
)

// Config says where and how a log is kept. Only Topic and TopicID are required.
type Config struct {
	// Topic names the directory, together with partition 0.
	Topic string
	// TopicID is the id that the directory must belong to.
	TopicID epoch.UUID
	// SegmentBytes is the size at which a segment is rolled. It is exceeded only by
	// a single Append, or a single fetched batch, that is larger. Zero:
	// DefaultSegmentBytes. At most 2147483647, which the index can address.
	SegmentBytes int64
	// IndexIntervalBytes is how much log lies between two index entries. Zero:
	// DefaultIndexIntervalBytes.
	IndexIntervalBytes int
	// RetentionBytes is the size that ApplyRetention cuts the log down to. Zero or
	// less: no limit.
	RetentionBytes int64
	// Retention is the age at which ApplyRetention removes segments. Zero or less:
	// no limit.
	Retention time.Duration
	// SegmentAge rolls a segment when a batch is that much newer than the segment's
	// first, by their timestamps. Zero or less: no limit.
	SegmentAge time.Duration
	// ProducerExpiry is after how long without a batch a producer is forgotten, by
	// ExpireProducers. Zero or less: never.
	ProducerExpiry time.Duration
	// Damaged is told, before Open changes anything for it, of more damage than an
	// unfinished last write: after the cut nothing shows it to who opens the log next. Its
	// error ends Open. Nil: nobody is told.
	Damaged func() error
	// CheckAll makes Open read and check everything, whatever speaks for the log: damage was
	// seen before.
	CheckAll bool
	// Checking is told how far Open is in reading and checking the log, in bytes: at the
	// beginning, about every 64 MiB, and at the end. Nil: nobody is told.
	Checking func(done, total int64)
}

func (c Config) withDefaults() (Config, error) {
	if c.Topic == "" || strings.ContainsAny(c.Topic, "/ \n") {
		return c, fmt.Errorf("open log: topic %q cannot name a directory", c.Topic)
	}
	if c.TopicID.IsZero() {
		return c, errors.New("open log: the topic id is missing")
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.IndexIntervalBytes == 0 {
		c.IndexIntervalBytes = DefaultIndexIntervalBytes
	}
	if c.SegmentBytes < batch.HeaderSize || c.SegmentBytes > 1<<31-1 {
		return c, fmt.Errorf("open log: segments of %d bytes; allowed are %d to %d", c.SegmentBytes, batch.HeaderSize, 1<<31-1)
	}
	if c.IndexIntervalBytes < 0 {
		return c, fmt.Errorf("open log: index interval of %d bytes is negative", c.IndexIntervalBytes)
	}
	return c, nil
}

// BatchID identifies a batch well enough to say that it is still there.
type BatchID struct {
	LastOffset epoch.Offset
	Epoch      epoch.LeaderEpoch
	CRC        uint32
}

func idOf(b batch.Batch) BatchID { return BatchID{b.LastOffset(), b.LeaderEpoch(), b.CRC()} }

// Log is an open log. See the package comment for who may call what.
type Log struct {
	fs  vfs.FS
	dir string
	cfg Config
	log logr.Logger

	failure atomic.Pointer[error]
	closed  atomic.Bool

	// The appender's own.
	producers   *ProducerState
	epochsStale bool // the epoch file may differ from the cache

	highWatermark, recoveryPoint, logStart *offsetFile
	// cleaned is up to where the log is compacted: below it no key has two records, other
	// than what a run has left on purpose.
	cleaned *offsetFile

	// mu guards what follows, and the segments' fields. It is never held over I/O.
	mu       sync.Mutex
	segments []*segment // ascending; never empty; the last is written to
	start    epoch.Offset
	end      epoch.Offset
	flushed  epoch.Offset
	epochs   epoch.Cache
	last     BatchID
	hasLast  bool
	// truncations counts the calls that took bytes away from the end, swaps those that
	// put compacted segments in the place of others.
	truncations, swaps uint64
	places             places
	// unsynced are files other than segments to sync with the next flush; dirtyDir
	// says the same of the directory.
	unsynced []string
	dirtyDir bool

	// flushMu lets one flush run at a time.
	flushMu sync.Mutex
}

// StartOffset is the offset of the first record that may be read.
func (l *Log) StartOffset() epoch.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// EndOffset is the log end offset (LEO): the offset that the next record gets.
func (l *Log) EndOffset() epoch.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// FlushedOffset is the offset below which everything is known to be durable.
func (l *Log) FlushedOffset() epoch.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushed
}

// CheckpointedHighWatermark is the high watermark last written by Checkpoint,
// within the log's bounds; the log's start if there is none. It is a lower bound of
// the true one, and nothing may be truncated because of it (KIP-101).
func (l *Log) CheckpointedHighWatermark() epoch.Offset {
	hw := l.highWatermark.get()
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(max(hw, l.start), l.end)
}

// EpochCache is a copy of the leader-epoch cache.
func (l *Log) EpochCache() epoch.Cache {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs
}

// Size is how many bytes of batches the segments hold.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// SizeFrom is about how many bytes of batches the log holds from an offset on. Within a
// segment the bytes are taken as evenly spread over its offsets.
func (l *Log) SizeFrom(o epoch.Offset) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	o = min(max(o, l.start), l.end)
	var n int64
	for i := l.segmentAt(o); i < len(l.segments); i++ {
		s, end := l.segments[i], l.end
		if i+1 < len(l.segments) {
			end = l.segments[i+1].base
		}
		if o <= s.base {
			n += s.size
		} else if end > o {
			n += int64(float64(s.size) * float64(end-o) / float64(end-s.base))
		}
	}
	return n
}

// Producers is the state of the idempotent producers. Only the appender may use it,
// and it is replaced by a truncation: do not keep it.
func (l *Log) Producers() *ProducerState { return l.producers }

// LastBatch identifies the last batch of the log, false if it holds none.
func (l *Log) LastBatch() (BatchID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.hasLast
}

// active is the segment being written. mu must be held, or the caller be the
// appender.
func (l *Log) active() *segment { return l.segments[len(l.segments)-1] }

// segmentAt is the index of the segment that holds an offset: the last one that
// begins at or before it, or the first. mu must be held.
func (l *Log) segmentAt(o epoch.Offset) int {
	i, found := slices.BinarySearchFunc(l.segments, o, func(s *segment, o epoch.Offset) int {
		return int(min(max(s.base-o, -1), 1))
	})
	if found {
		return i
	}
	return max(i-1, 0)
}

// retain keeps a segment's file open. mu must be held.
func (s *segment) retain() { s.refs++ }

// release gives a segment back. The last one out closes the file of a segment that
// was removed.
func (l *Log) release(s *segment) {
	l.mu.Lock()
	s.refs--
	closing := s.removed && s.refs == 0
	l.mu.Unlock()
	if closing {
		_ = s.file.Close()
	}
}

// discard marks segments as removed and closes those that nobody reads.
func (l *Log) discard(segs []*segment) {
	for _, s := range segs {
		l.mu.Lock()
		s.removed = true
		s.refs++
		l.mu.Unlock()
		l.release(s)
	}
}

// createSegment makes a segment's file and its name durable (KAFKA-3968). On an
// error nothing remains.
func (l *Log) createSegment(base epoch.Offset) (*segment, error) {
	name := fileName(l.dir, base, suffixLog)
	f, err := l.fs.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		_ = f.Close()
		_ = l.fs.Remove(name)
		return nil, fmt.Errorf("sync directory of a new segment: %w", err)
	}
	for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
		_ = l.fs.Remove(fileName(l.dir, base, suffix))
	}
	s := newSegment(l.fs, l.dir, base, f)
	s.dirty = true
	return s, nil
}
