package log

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// segmentCheck is a segment on its way through Verify.
type segmentCheck struct {
	*verifier
	base epoch.Offset
	name string // of the .log file, as findings say it
	last bool   // the segment that is written to
	// readable: up to its end the file is batches.
	readable bool
	indexes  *indexCheck
	// What is told once for the segment.
	thinned, gaps int64
	firstGap      string
}

func (v *verifier) segment(i int) error {
	base := v.bases[i]
	f, err := v.in.open(fileName("", base, suffixLog))
	if err != nil {
		return err
	}
	defer f.Close()
	s := &segmentCheck{verifier: v, base: base, name: v.path(fileName("", base, suffixLog)), last: i == len(v.bases)-1, readable: true}
	if !v.known {
		v.next = base
	}
	s.indexes = newIndexCheck(s)
	defer s.indexes.stop()
	for b, err := range batchesOf(f) {
		var bad *BadBytes
		if errors.As(err, &bad) {
			s.badBytes(f, bad)
			break
		}
		if err != nil {
			return err
		}
		s.batch(b)
	}
	v.sum.Bytes += f.size
	s.tellOnce()
	s.indexes.finish()
	return nil
}

// tellOnce tells what would be a line for every batch.
func (s *segmentCheck) tellOnce() {
	if s.gaps > 0 {
		s.find(s.foreign(), s.name, -1, "Kafka's compaction leaves gaps; without compaction batches are missing. Tidemark cuts a log before a gap", "has %d gaps between batches, the first %s", s.gaps, s.firstGap)
	}
	s.sum.Thinned += s.thinned
}

func (s *segmentCheck) batch(b StoredBatch) {
	h := b.Header
	s.sum.Batches++
	s.place(b)
	s.compareSnapshots(h.BaseOffset())
	s.epochOf(b)
	if !b.Sound() {
		s.find(Error, s.name, b.Position, remedyReplica, "the batch of offsets %d to %d has checksum %08x and should have %08x: its bytes have changed", h.BaseOffset(), h.LastOffset(), b.CRC, h.CRC())
	} else {
		s.records(b)
	}
	s.indexes.batch(b)
	s.producer(b)
	s.next, s.known, s.lost = h.NextOffset(), true, false
}

// place checks that the batch follows the one before it.
func (s *segmentCheck) place(b StoredBatch) {
	base := b.Header.BaseOffset()
	switch {
	case base < s.base:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch begins at offset %d, below its segment's first offset %d", base, s.base)
	case !s.known && base == s.base, s.lost, base == s.next:
	case base < s.next:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch begins at offset %d, where offset %d should follow: offsets are there twice", base, s.next)
	default:
		if s.gaps == 0 {
			s.firstGap = fmt.Sprintf("of offsets %d to %d before byte %d", s.next, base-1, b.Position)
		}
		s.gaps++
		s.sum.Gaps++
	}
}

func (s *segmentCheck) epochOf(b StoredBatch) {
	h := b.Header
	e, n, before := h.LeaderEpoch(), len(s.runs), s.epochBefore
	s.epochBefore = e
	switch {
	case e < 0:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch at offset %d has no leader epoch", h.BaseOffset())
		return
	case n > 0 && e < s.runs[n-1].epoch && e == before:
		return // told with the first of them
	case n > 0 && e < s.runs[n-1].epoch:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch at offset %d is of leader epoch %d and follows one of epoch %d", h.BaseOffset(), e, s.runs[n-1].epoch)
		return
	case n > 0 && e == s.runs[n-1].epoch:
		s.runs[n-1].last = h.LastOffset()
	default:
		s.runs = append(s.runs, epochRun{e, h.BaseOffset(), h.LastOffset(), s.name, b.Position})
	}
	s.sum.Latest = max(s.sum.Latest, e)
}

// records decodes a batch and compares its records with its header.
func (s *segmentCheck) records(b StoredBatch) {
	h := b.Header
	whole, err := b.Load()
	if errors.Is(err, batch.ErrMessageTooLarge) {
		s.find(Warning, s.name, b.Position, "only its checksum was checked", "%v", err)
		return
	}
	var n int64
	newest, delta := int64(batch.NoTimestamp), epoch.Offset(-1)
	if err == nil {
		for r, rerr := range batch.AllRecords(whole) {
			if rerr != nil {
				err = rerr
				break
			}
			d := r.Offset - h.BaseOffset()
			if d <= delta || d > epoch.Offset(h.LastOffsetDelta()) {
				err = fmt.Errorf("record %d has offset %d, where offsets end with %d", n, r.Offset, h.LastOffset())
				break
			}
			if h.Control() && n == 0 {
				s.marker(h, r)
			}
			delta, newest = d, max(newest, r.Timestamp)
			n++
		}
	}
	s.sum.Records += n
	full := int64(h.LastOffsetDelta()) + 1
	switch count := int64(h.Count()); {
	case errors.Is(err, batch.ErrMessageTooLarge):
		s.find(Warning, s.name, b.Position, "only its checksum was checked", "the batch at offset %d: %v", h.BaseOffset(), err)
	case err != nil:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch at offset %d has a right checksum, and its records cannot be read: %v", h.BaseOffset(), err)
	case count < 0 || count > full:
		s.find(Error, s.name, b.Position, remedyReplica, "the batch at offset %d counts %d records for %d offsets", h.BaseOffset(), count, full)
	case count < full:
		s.thinned++
		s.compacted = true
	case newest > h.MaxTimestamp():
		s.find(Error, s.name, b.Position, "lookups by time miss its records; "+remedyReplica, "the batch at offset %d has a record of time %d, after its greatest, %d", h.BaseOffset(), newest, h.MaxTimestamp())
	case newest < h.MaxTimestamp():
		s.find(Warning, s.name, b.Position, remedyNone, "the batch at offset %d has no record of its greatest time, %d", h.BaseOffset(), h.MaxTimestamp())
	}
}

// badBytes judges what follows the last batch that could be told apart.
func (s *segmentCheck) badBytes(f file, bad *BadBytes) {
	n := bad.Size - bad.Position
	s.readable = false
	if errors.Is(bad.Err, ErrOldFormat) {
		s.sum.OldFormat++
		s.lost, s.blind = true, true
		s.find(Error, s.name, bad.Position, "Tidemark keeps format 2 only: read the topic with a client and write it anew", "%v: Kafka wrote them before 0.11, or for log.message.format.version below that", bad.Err)
		return
	}
	if s.last {
		torn, err := tornTail(f, bad.Position, bad.Size, s.next)
		if err == nil && torn {
			s.find(s.unfinished(), s.name, bad.Position, "the next start cuts it off", "%d bytes behind offset %d are an unfinished last write", n, s.next)
			return
		}
	}
	s.lost, s.blind = true, true
	s.find(Error, s.name, bad.Position, remedyReplica, "the last %d bytes, from offset %d on, are no batches: %v", n, s.next, bad.Err)
}

// missing reports an index that is not there.
func (s *segmentCheck) missing(suffix string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if !s.last || s.clean {
		s.find(Warning, s.path(fileName("", s.base, suffix)), -1, remedyRebuilt, "is missing")
	}
	return true
}
