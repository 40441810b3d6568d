package log

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Recovery tells what Open found, for the judgement whether the directory still
// holds all that was acknowledged under its id.
type Recovery struct {
	// Clean reports that the log was taken as an orderly stop left it. It is false
	// after a scan, also if a clean open was asked for and the end did not look it.
	Clean bool
	// CutAt is the offset at which the log was cut, NoOffset if it was not.
	CutAt epoch.Offset
	// CutBytes is how many bytes were cut off, removed segments included.
	CutBytes int64
	// SegmentsRemoved counts the segments that went because a cut lay before them.
	SegmentsRemoved int
	// OnlyTornTail reports that what was cut, if anything, is an unfinished last
	// write: an incomplete batch, or zeros, at the very end of the last segment.
	OnlyTornTail bool
	// HighWatermark is the one last written by Checkpoint, NoOffset if there is none.
	// Unlike Log.CheckpointedHighWatermark it may lie behind the log's end: then
	// committed records are missing here.
	HighWatermark epoch.Offset
	// EpochCacheRebuilt reports that the leader-epoch checkpoint was missing beside
	// data, or broken, and was computed from the batches.
	EpochCacheRebuilt bool
	// EpochContradiction reports a batch whose epoch is not the one that the
	// checkpoint has for its offset. The cache was computed from the batches.
	EpochContradiction bool
}

// Open opens the log of cfg.Topic in dataDir, making it if there is none. With
// clean the caller vouches for an orderly stop: everything is taken as it is.
// Without, every batch from the recovery point on is read and checked, the log is
// cut before the first that is not whole, and indexes are made anew.
//
// A successful scan does not raise the flushed offset: the bytes came from the page
// cache. Call Flush before relying on them. Nothing is written to the log itself
// other than the cut.
//
// Errors: ErrTopicID if the directory is another topic's, ErrNoSpace, or what the
// file system gave. A damaged log is not an error: see Recovery.
func Open(fs vfs.FS, dataDir string, cfg Config, clean bool, log logr.Logger) (*Log, Recovery, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, Recovery{}, err
	}
	dir := path.Join(dataDir, cfg.Topic+"-0")
	l := &Log{fs: fs, dir: dir, cfg: cfg, log: log, producers: newProducerState()}
	o := opener{Log: l, report: Recovery{Clean: clean, CutAt: epoch.NoOffset, HighWatermark: epoch.NoOffset, OnlyTornTail: true}}
	if err := o.open(dataDir); err != nil {
		l.discard(l.segments)
		if vfs.IsNoSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return nil, o.report, fmt.Errorf("open log %s: %w", dir, err)
	}
	return l, o.report, nil
}

// opener is a log on its way to being open. Nobody else sees it yet.
type opener struct {
	*Log
	report Recovery
	// epochsUsable says that the checkpoint was read and may be compared with the
	// batches.
	epochsUsable bool
	// doneChecking of toCheck bytes are read and checked, for Config.Checking.
	doneChecking, toCheck int64
}

func (o *opener) open(dataDir string) error {
	if err := o.fs.MkdirAll(o.dir); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := o.fs.SyncDir(dataDir); err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	bases, err := o.tidy()
	if err != nil {
		return err
	}
	if err := claimDirectory(o.fs, o.dir, o.cfg.TopicID, len(bases) == 0); err != nil {
		return err
	}
	if err := o.readCheckpoints(dataDir); err != nil {
		return err
	}
	if err := o.openSegments(bases); err != nil {
		return err
	}
	if err := o.recover(); err != nil {
		return err
	}
	err = o.derive()
	if errors.Is(err, ErrCorrupt) || errors.Is(err, batch.ErrIncomplete) {
		return o.doubt(err)
	}
	return err
}

// doubt is for damage in what was taken as it is: everything is read and checked after
// all, and cut before it. What is lost by that is on other replicas.
func (o *opener) doubt(cause error) error {
	o.log.Info("log is damaged where it was taken as it is, scanning", "reason", cause.Error())
	o.report.Clean = false
	if err := o.scan(0); err != nil {
		return err
	}
	return o.derive()
}

// tidy completes or removes what unfinished work left behind and lists the segments' bases.
func (o *opener) tidy() ([]epoch.Offset, error) {
	names, err := o.fs.List(o.dir)
	if err != nil {
		return nil, fmt.Errorf("list directory: %w", err)
	}
	swapped, err := o.completeSwaps(names)
	if err != nil {
		return nil, err
	}
	if swapped {
		if names, err = o.fs.List(o.dir); err != nil {
			return nil, fmt.Errorf("list directory: %w", err)
		}
	}
	var bases []epoch.Offset
	for _, name := range names {
		if base, ok := parseFileName(name, suffixLog); ok {
			bases = append(bases, base)
		}
	}
	for _, name := range names {
		if leftover(name, bases) {
			if err := o.fs.Remove(path.Join(o.dir, name)); err != nil {
				return nil, fmt.Errorf("remove leftover: %w", err)
			}
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// leftover reports a file of unfinished work, or an index without its segment.
func leftover(name string, bases []epoch.Offset) bool {
	for _, suffix := range []string{".deleted", suffixCleaned, suffixSwap, ".tmp"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	for _, suffix := range []string{suffixIndex, suffixTimeIndex, suffixTxnIndex} {
		if base, ok := parseFileName(name, suffix); ok {
			return !slices.Contains(bases, base)
		}
	}
	return false
}

func (o *opener) readCheckpoints(dataDir string) error {
	for _, f := range []struct {
		name string
		to   **offsetFile
	}{
		{highWatermarkFile, &o.highWatermark},
		{recoveryPointFile, &o.recoveryPoint},
		{logStartFile, &o.logStart},
		{cleanedFile, &o.cleaned},
	} {
		file, broken, err := readOffsetFile(o.fs, dataDir, f.name, o.cfg.Topic)
		if err != nil {
			return err
		}
		if broken != nil {
			o.log.Info("checkpoint ignored", "file", f.name, "reason", broken.Error())
		}
		*f.to = file
	}
	o.report.HighWatermark = o.highWatermark.get()
	return nil
}

// openSegments opens the segments that are not wholly below the log's start,
// finishing a removal that was cut short, or makes the first.
func (o *opener) openSegments(bases []epoch.Offset) error {
	start := max(o.logStart.get(), 0)
	for len(bases) > 1 && bases[1] <= start {
		s := newSegment(o.fs, o.dir, bases[0], nil)
		if err := s.removeFiles(); err != nil {
			return fmt.Errorf("remove segment %d below the log's start: %w", s.base, err)
		}
		bases, o.dirtyDir = bases[1:], true
	}
	for _, base := range bases {
		f, err := o.fs.Open(fileName(o.dir, base, suffixLog))
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		o.segments = append(o.segments, newSegment(o.fs, o.dir, base, f))
	}
	if len(o.segments) == 0 {
		s, err := o.createSegment(start)
		if err != nil {
			return err
		}
		o.segments = []*segment{s}
	}
	return nil
}

// derive computes what follows from the batches.
func (o *opener) derive() error {
	active := o.active()
	o.start = max(o.logStart.get(), o.segments[0].base)
	o.end = active.end
	if o.end < o.start {
		if err := o.beginAtStart(); err != nil {
			return err
		}
		active = o.active()
	}
	o.flushed = max(min(o.recoveryPoint.get(), o.end), o.start)
	// What is appended from here on is not durable: no recovery point may say so.
	if err := o.recoveryPoint.lower(o.end); err != nil {
		return err
	}
	if err := o.cleaned.lower(o.end); err != nil {
		return err
	}
	active.dirty, active.fresh, o.dirtyDir = true, active.size, true
	for _, s := range o.segments {
		s.dirty = s.dirty || s.end > o.flushed
	}
	if err := o.deriveEpochs(); err != nil {
		return err
	}
	if err := o.findLast(); err != nil {
		return err
	}
	producers, err := o.loadProducers()
	if err != nil {
		return err
	}
	o.producers = producers
	return o.pruneSnapshots()
}

// beginAtStart is for a log that lost its end down below its own start: what is
// left may not be read, and what follows is on other replicas.
func (o *opener) beginAtStart() error {
	o.log.Info("log ends below its start and begins anew there", "end", o.end, "start", o.start)
	o.report.CutAt = o.end
	o.report.CutBytes += o.Size()
	o.report.SegmentsRemoved += len(o.segments)
	o.report.OnlyTornTail = false
	if err := o.tellDamage(); err != nil {
		return err
	}
	if err := o.restartAt(o.start, o.start); err != nil {
		return err
	}
	o.epochs, o.epochsUsable = epoch.Cache{}, true
	return o.writeEpochs(o.epochs)
}

// deriveEpochs brings the cache in line with the log, or makes it from the batches.
func (o *opener) deriveEpochs() error {
	stored := o.epochs
	if o.report.EpochContradiction {
		if err := o.tellDamage(); err != nil {
			return err
		}
	}
	if !o.epochsUsable || o.report.EpochContradiction {
		c, err := o.scanEpochs()
		if err != nil {
			return err
		}
		o.epochs = c
		o.report.EpochCacheRebuilt = o.report.EpochCacheRebuilt || o.end > o.segments[0].base
	}
	// Entries behind the end are of batches that are not there (KAFKA-15046). One at
	// the end stays: it is the epoch of a leader that has not written (KAFKA-7415).
	o.epochs.TruncateFromEnd(o.end + 1)
	o.epochs.TruncateFromStart(o.start)
	if o.epochsUsable && o.epochs.Equal(stored) {
		return nil
	}
	if err := o.writeEpochs(o.epochs); err != nil && !errors.Is(err, ErrNoSpace) {
		return err
	}
	return nil
}

// scanEpochs makes a cache from all batches of the log. Epochs in which nothing was
// written are lost, which costs a follower a round of truncation and nothing more;
// a leader's own is assigned anew at its next election.
func (o *opener) scanEpochs() (epoch.Cache, error) {
	var c epoch.Cache
	for _, s := range o.segments {
		err := eachBatch(headerScanner(s.file, 0, s.size), func(h header) {
			if h.LastOffset() >= o.start && h.LeaderEpoch() > c.Latest() {
				c.Assign(h.LeaderEpoch(), max(h.BaseOffset(), o.start))
			}
		})
		if err != nil {
			return c, fmt.Errorf("read epochs of segment %d: %w", s.base, err)
		}
	}
	return c, nil
}
