package log

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Append writes a leader's batches, all or none, and returns the offset of the
// first record. It stamps offsets and epoch into the batches, notes a new epoch
// durably before any byte, rolls the segment if they do not fit, and writes them
// with one vectored write. The caller has validated them and judged them against a
// stage of Producers. Nothing is synced.
//
// Errors: ErrStaleEpoch, ErrBatchTooLarge, ErrCorrupt for bytes that are no batch,
// ErrNoSpace with nothing changed, ErrFailed.
func (l *Log) Append(e epoch.LeaderEpoch, batches []batch.Batch) (epoch.Offset, error) {
	if err := l.writable(); err != nil {
		return epoch.NoOffset, err
	}
	base := l.EndOffset()
	if len(batches) == 0 {
		return base, nil
	}
	if newest := l.EpochCache().Latest(); e < newest {
		return epoch.NoOffset, fmt.Errorf("append in leader epoch %d: %w, %d", e, ErrStaleEpoch, newest)
	}
	g, err := l.leaderGroup(base, e, batches)
	if err != nil {
		return epoch.NoOffset, err
	}
	if err := l.writeGroup(g); err != nil {
		return epoch.NoOffset, err
	}
	return base, nil
}

// group is what goes into one segment with one write.
type group struct {
	batches []batch.Batch
	bufs    [][]byte
	bytes   int64
}

func (l *Log) leaderGroup(base epoch.Offset, e epoch.LeaderEpoch, batches []batch.Batch) (group, error) {
	g := group{batches: batches, bufs: make([][]byte, len(batches))}
	next := base
	for i, b := range batches {
		if len(b) < batch.HeaderSize || b.Size() != len(b) || b.LastOffsetDelta() < 0 {
			return g, fmt.Errorf("append batch %d of %d: %w: %d bytes are no batch", i, len(batches), ErrCorrupt, len(b))
		}
		if int64(len(b)) > l.cfg.SegmentBytes {
			return g, fmt.Errorf("append batch of %d bytes: %w of %d bytes", len(b), ErrBatchTooLarge, l.cfg.SegmentBytes)
		}
		b.SetBaseOffset(next)
		b.SetLeaderEpoch(e)
		next = b.NextOffset()
		g.bufs[i] = b
		g.bytes += int64(len(b))
	}
	if g.bytes > math.MaxInt32 || next-base > math.MaxInt32 {
		return g, fmt.Errorf("append %d batches of %d bytes: %w can be", len(batches), g.bytes, ErrBatchTooLarge)
	}
	return g, nil
}

// AppendFetched writes what a follower fetched, bytes exactly as they are, and
// returns how many batches it took. It ends quietly before a batch of a later epoch
// than maxEpoch, the epoch that the fetch was sent in (KAFKA-18723: the leader was
// truncated and refilled while it answered), and before an incomplete batch at the
// end. Every batch must have a right checksum, no older epoch than the one before
// it, and begin at the log's end, with one exception: if the log is empty, a batch
// that begins below its start and reaches it is taken whole, and the log's start
// stays inside of it (KAFKA-6975).
//
// Errors: ErrCorrupt, ErrOutOfOrder, ErrBatchTooLarge, ErrNoSpace, ErrFailed.
// Batches before the one that caused the error may have been appended: the count
// says so.
func (l *Log) AppendFetched(records []byte, maxEpoch epoch.LeaderEpoch) (appended int, err error) {
	if err := l.writable(); err != nil {
		return 0, err
	}
	batches, broken := l.fetchedBatches(records, maxEpoch)
	for len(batches) > 0 {
		g := l.followerGroup(batches, records)
		if err := l.writeGroup(g); err != nil {
			return appended, err
		}
		appended += len(g.batches)
		batches, records = batches[len(g.batches):], records[g.bytes:]
	}
	return appended, broken
}

// fetchedBatches returns the batches that may be appended, and why it stopped if
// that is an error.
func (l *Log) fetchedBatches(records []byte, maxEpoch epoch.LeaderEpoch) ([]batch.Batch, error) {
	var out []batch.Batch
	next, newest := l.EndOffset(), epoch.NoEpoch
	if last, ok := l.LastBatch(); ok && l.StartOffset() < next {
		newest = last.Epoch
	}
	for rest := records; len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		if errors.Is(err, batch.ErrIncomplete) {
			break
		}
		if err != nil {
			return out, fmt.Errorf("fetched batch at offset %d: %w", next, err)
		}
		if b.LeaderEpoch() > maxEpoch {
			break
		}
		if err := b.CheckCRC(); err != nil && !guard.Off(guard.FetchedChecksums) {
			return out, fmt.Errorf("fetched batch at offset %d: %w", next, err)
		}
		if err := l.checkPlace(b, next, len(out) == 0); err != nil {
			return out, err
		}
		if b.LeaderEpoch() < newest {
			return out, fmt.Errorf("%w: leader epoch %d at offset %d follows epoch %d", ErrOutOfOrder, b.LeaderEpoch(), next, newest)
		}
		out = append(out, b)
		next, newest, rest = b.NextOffset(), b.LeaderEpoch(), tail
	}
	return out, nil
}

func (l *Log) checkPlace(b batch.Batch, next epoch.Offset, first bool) error {
	if b.LastOffsetDelta() < 0 || b.BaseOffset() < 0 || b.LeaderEpoch() < 0 || b.LastOffset() < b.BaseOffset() {
		return fmt.Errorf("fetched batch at offset %d: %w: base offset %d, last offset delta %d, leader epoch %d",
			next, ErrCorrupt, b.BaseOffset(), b.LastOffsetDelta(), b.LeaderEpoch())
	}
	if b.BaseOffset() == next || first && l.reachesEmptyStart(b) {
		return nil
	}
	return fmt.Errorf("%w: it begins at %d, the log ends at %d", ErrOutOfOrder, b.BaseOffset(), next)
}

func (l *Log) reachesEmptyStart(b batch.Batch) bool {
	start := l.StartOffset()
	return start == l.EndOffset() && b.BaseOffset() < start && start <= b.LastOffset()
}

// followerGroup is as many of the batches as the active segment takes, or as a new
// one takes if it takes none: at least one.
func (l *Log) followerGroup(batches []batch.Batch, records []byte) group {
	used := l.active().size
	if l.mustRoll(int64(len(batches[0])), batches[0], batches[0]) {
		used = 0
	}
	var g group
	for i, b := range batches {
		if i > 0 && used+g.bytes+int64(len(b)) > l.cfg.SegmentBytes {
			break
		}
		g.bytes += int64(len(b))
		g.batches = batches[:i+1]
	}
	g.bufs = [][]byte{records[:g.bytes]}
	return g
}

// mustRoll reports whether bytes from first to last cannot go into the active
// segment. An empty segment takes anything.
func (l *Log) mustRoll(bytes int64, first, last batch.Batch) bool {
	s := l.active()
	if s.size == 0 {
		return false
	}
	old := l.cfg.SegmentAge > 0 && s.firstTimestamp >= 0 && first.MaxTimestamp()-s.firstTimestamp > l.cfg.SegmentAge.Milliseconds()
	return s.size+bytes > l.cfg.SegmentBytes || !s.fits(bytes, last.LastOffset()) || old
}

// writeGroup is the order of effects that all appends share: place, epochs, bytes,
// and only then everything in memory (KAFKA-6683).
func (l *Log) writeGroup(g group) error {
	first := g.batches[0]
	if first.BaseOffset() < l.EndOffset() {
		return l.writeBelowStart(g)
	}
	if last, ok := l.LastBatch(); ok && first.LeaderEpoch() < last.Epoch {
		// All that the log holds is deleted, and of a history that an unclean election has
		// ended: its bytes go, so that epochs only grow in a segment.
		if err := l.restartAt(l.EndOffset(), l.EndOffset()); err != nil {
			return err
		}
	}
	return l.writeAtEnd(g)
}

// writeBelowStart is the case of KAFKA-6975, an empty log that takes a batch in
// which its start lies.
func (l *Log) writeBelowStart(g group) error {
	start := l.StartOffset()
	if err := l.restartAt(g.batches[0].BaseOffset(), start); err != nil {
		return err
	}
	err := l.writeAtEnd(g)
	if errors.Is(err, ErrNoSpace) {
		return errors.Join(err, l.restartAt(start, start))
	}
	return err
}

func (l *Log) writeAtEnd(g group) error {
	first, last := g.batches[0], g.batches[len(g.batches)-1]
	if l.mustRoll(g.bytes, first, last) {
		if err := l.roll(); err != nil {
			return err
		}
	}
	before := l.EpochCache()
	if err := l.storeEpochs(l.epochsWith(g.batches)); err != nil {
		return err
	}
	if err := l.write(g); err != nil {
		l.epochsStale = l.epochsStale || !before.Equal(l.EpochCache())
		l.setEpochs(before)
		return err
	}
	for _, b := range g.batches {
		l.producers.update(b)
	}
	l.publish(g)
	return nil
}

func (l *Log) epochsWith(batches []batch.Batch) epoch.Cache {
	c, start := l.EpochCache(), l.StartOffset()
	for _, b := range batches {
		if b.LeaderEpoch() != c.Latest() {
			c.Assign(b.LeaderEpoch(), max(b.BaseOffset(), start))
		}
	}
	return c
}

// write writes the bytes behind the active segment's. What a full disk leaves of
// them is cut off again; after any other error nobody knows what the file holds.
func (l *Log) write(g group) error {
	s := l.active()
	_, err := s.file.WriteVec(g.bufs, s.size)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write %d bytes at offset %d: %w", g.bytes, g.batches[0].BaseOffset(), err)
	if !vfs.IsNoSpace(err) {
		return l.fail(err)
	}
	if cutErr := s.file.Truncate(s.size); cutErr != nil {
		return l.fail(errors.Join(err, fmt.Errorf("cut the partial batch off: %w", cutErr)))
	}
	return l.fault(err)
}

// publish lets readers see the batches that were written.
func (l *Log) publish(g group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.active()
	for _, b := range g.batches {
		s.note(b, s.size, l.cfg.IndexIntervalBytes)
	}
	last := g.batches[len(g.batches)-1]
	s.dirty = true
	l.end = last.NextOffset()
	l.last, l.hasLast = idOf(last), true
}

// roll seals the active segment and begins another at the log's end. If it fails
// for want of space nothing has changed.
func (l *Log) roll() error {
	s := l.active()
	l.mu.Lock()
	s.noteTime()
	l.mu.Unlock()
	if err := s.writeIndexes(); err != nil {
		return l.fault(err)
	}
	snapshot, err := l.writeSnapshot()
	if err != nil {
		return l.fault(err)
	}
	next, err := l.createSegment(s.end)
	if err != nil {
		return l.fault(err)
	}
	l.mu.Lock()
	s.offsets, s.times, s.sealed = nil, nil, true
	l.segments = append(l.segments[:len(l.segments):len(l.segments)], next)
	l.unsynced = append(l.unsynced, s.stem+suffixIndex, s.stem+suffixTimeIndex, snapshot)
	l.dirtyDir = true
	l.mu.Unlock()
	return l.pruneSnapshots()
}
