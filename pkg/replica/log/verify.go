package log

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Severity says what a finding means for the log.
type Severity int

// Severities. The zero value is a warning.
const (
	// Warning: worth knowing, and nothing that was written whole is missing or wrong.
	Warning Severity = iota
	// Error: the directory is not what was once written, or contradicts itself.
	Error
)

// String gives the word that a finding's line begins with.
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity
	// File is relative to the data directory.
	File string
	// Position is a byte of the file, -1 if the finding is about all of it.
	Position int64
	// Problem says what is wrong and what that means, Remedy what to do.
	Problem, Remedy string
}

// String gives the finding in one line.
func (f Finding) String() string {
	at := f.File
	if f.Position >= 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Position)
	}
	return fmt.Sprintf("%-7s  %s  %s; %s", f.Severity, at, f.Problem, f.Remedy)
}

// Summary counts what Verify saw.
type Summary struct {
	Errors, Warnings int
	Segments         int
	Batches, Records int64
	Bytes            int64
	// Start and End are the log's: its first offset, and the one behind its last batch.
	Start, End epoch.Offset
	// Latest is the newest leader epoch, of batches or checkpoint.
	Latest epoch.LeaderEpoch
	// ProducerID is the greatest that batches or snapshots name, -1 for none.
	ProducerID int64

	// What Tidemark's log does not take, without being damaged:

	// OldFormat counts the segments with messages of format 0 or 1.
	OldFormat int
	// Gaps counts the holes between batches, and Thinned the batches without some of
	// their records, as Kafka's compaction leaves them.
	Gaps, Thinned int64
	// Aborted counts the markers of aborted transactions, and OpenTransactions the
	// producers that had not ended theirs.
	Aborted          int64
	OpenTransactions int
	// UnfinishedSwap reports a compaction that was interrupted.
	UnfinishedSwap bool
}

// What to do about a finding.
const (
	remedyRebuilt  = "the next start makes it anew"
	remedyRemove   = "stop the replica and remove the file, and the next start makes it anew"
	remedyReplica  = "take the log from another replica: with the replica stopped, remove the partition's directory"
	remedyNone     = "nothing needs to be done"
	remedyTellWhat = "find out what wrote it"
)

// Verify checks all that a directory says against what it holds, and tells every
// finding as it comes. The error means that it could not be read, which says nothing
// about the log. Of a log in use, what changes meanwhile may be told as a finding: if in
// doubt, stop it, or verify again.
func Verify(in *Inspector, report func(Finding)) (Summary, error) {
	v := newVerifier(in, report)
	if err := v.readSurroundings(); err != nil {
		return v.sum, err
	}
	if err := v.segmentsAndSnapshots(); err != nil {
		return v.sum, err
	}
	v.epochs()
	v.checkpoints()
	v.names()
	v.dataDirectory()
	return v.sum, nil
}

// verifier is a directory on its way through Verify.
type verifier struct {
	in     *Inspector
	report func(Finding)
	sum    Summary

	// clean: an orderly stop left the directory, so nothing may be unfinished.
	clean bool
	// own: a Tidemark volume. Its log has no gaps.
	own   bool
	ident []Property
	marks [3]Checkpoint

	bases []epoch.Offset
	// next is the offset that the next batch should have, known once known is set.
	next  epoch.Offset
	known bool
	// lost: since the last batch there were bytes that are none. blind: there were some
	// anywhere, so the replay lacks batches.
	lost, blind bool
	// compacted: records were seen to be missing from batches, and older ones of producers
	// may be.
	compacted bool
	runs      []epochRun
	// epochBefore is the leader epoch of the batch before.
	epochBefore epoch.LeaderEpoch

	producers     *ProducerState
	transactional map[int64]bool         // producers of transactions, which markers change
	open          map[int64]epoch.Offset // producers with an open transaction
	snapshots     []epoch.Offset         // not yet compared
}

// epochRun is the batches of one leader epoch: first offset of the first, last of the
// last.
type epochRun struct {
	epoch       epoch.LeaderEpoch
	first, last epoch.Offset
	file        string
	position    int64
}

func newVerifier(in *Inspector, report func(Finding)) *verifier {
	return &verifier{
		in: in, report: report, producers: newProducerState(),
		transactional: map[int64]bool{}, open: map[int64]epoch.Offset{}, sum: Summary{Latest: epoch.NoEpoch, ProducerID: batch.NoProducer}, epochBefore: epoch.NoEpoch,
	}
}

func (v *verifier) find(s Severity, file string, position int64, remedy, format string, args ...any) {
	if s == Error {
		v.sum.Errors++
	} else {
		v.sum.Warnings++
	}
	v.report(Finding{s, file, position, fmt.Sprintf(format, args...), remedy})
}

// unfinished is the severity of what only an orderly stop finishes.
func (v *verifier) unfinished() Severity {
	if v.clean {
		return Error
	}
	return Warning
}

// foreign is the severity of what Kafka may have left, and Tidemark never does.
func (v *verifier) foreign() Severity {
	if v.own {
		return Error
	}
	return Warning
}

// path is a file of the partition's directory as findings name it.
func (v *verifier) path(name string) string { return v.in.Name + "/" + name }

// readSurroundings reads the data directory, and lists the log only then: a checkpoint of a
// log in use must not be newer than the batches that it is compared with.
func (v *verifier) readSurroundings() error {
	v.clean = v.in.StoppedCleanly()
	v.ident, _ = v.in.Identity()
	for _, p := range v.ident {
		v.own = v.own || p.Key == "tidemark.topic"
	}
	v.marks = v.in.Checkpoints()
	in, err := Inspect(v.in.root, v.in.Name)
	if err != nil {
		return err
	}
	v.in, v.bases, v.snapshots = in, in.Segments(), in.Snapshots()
	if len(v.bases) > 0 {
		v.sum.Start = v.bases[0]
	}
	v.sum.Start = max(v.sum.Start, v.marks[2].Offset)
	v.sum.End = v.sum.Start
	return nil
}

func (v *verifier) segmentsAndSnapshots() error {
	for i, base := range v.bases {
		if err := v.segment(i); err != nil {
			if errors.Is(err, fs.ErrNotExist) && base < v.firstNow() {
				v.find(Warning, v.path(fileName("", base, suffixLog)), -1, remedyNone, "is gone: it was removed meanwhile, from the log's start")
				v.lost, v.blind = true, true
				continue
			}
			return fmt.Errorf("segment %d: %w", base, err)
		}
		v.sum.Segments++
	}
	if v.known {
		v.sum.End = v.next
	}
	if len(v.bases) == 0 {
		v.find(Warning, v.in.Name, -1, remedyNone, "holds no segment")
	}
	v.compareSnapshots(v.sum.End)
	for _, at := range v.snapshots {
		v.find(v.unfinished(), v.path(fileName("", at, suffixSnapshot)), -1, "the next start removes it",
			"is of offset %d, and the log ends at %d", at, v.sum.End)
	}
	v.sum.OpenTransactions = len(v.open)
	for id, at := range v.open {
		v.find(Warning, v.in.Name, -1, "end it before a move to Tidemark, which has no transactions", "producer %d has a transaction open since offset %d", id, at)
	}
	return nil
}

// firstNow is the first segment that is there at this moment: of a log in use the oldest ones
// may have gone since it was listed.
func (v *verifier) firstNow() epoch.Offset {
	in, err := Inspect(v.in.root, v.in.Name)
	if err != nil {
		return epoch.NoOffset
	}
	if bases := in.Segments(); len(bases) > 0 {
		return bases[0]
	}
	return epoch.NoOffset
}

// checkpoints compares what the data directory says of the log with its bounds.
func (v *verifier) checkpoints() {
	hw, recovered, start := v.marks[0], v.marks[1], v.marks[2]
	for _, c := range v.marks {
		if c.Err != nil && !errors.Is(c.Err, fs.ErrNotExist) {
			v.find(Error, c.File, -1, "it reads as unknown; the next checkpoint writes it anew", "cannot be used: %v", c.Err)
		}
	}
	if hw.Offset > v.sum.End {
		v.find(Error, hw.File, -1, remedyReplica, "says that everything below offset %d was committed, and the log ends at %d: committed records are missing", hw.Offset, v.sum.End)
	}
	if hw.Offset != epoch.NoOffset && hw.Offset < v.sum.Start {
		v.find(Warning, hw.File, -1, remedyNone, "has a high watermark of %d, below the log's start at %d", hw.Offset, v.sum.Start)
	}
	if recovered.Offset > v.sum.End {
		v.find(Error, recovered.File, -1, remedyReplica, "says that everything below offset %d was synced to the disk, and the log ends at %d", recovered.Offset, v.sum.End)
	}
	if start.Offset > v.sum.End {
		v.find(Error, start.File, -1, remedyReplica, "says that the log begins at offset %d, and it ends at %d", start.Offset, v.sum.End)
	}
}

// epochs compares leader-epoch-checkpoint with the batches.
func (v *verifier) epochs() {
	name := v.path(epochFile)
	cache, err := v.in.Epochs()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(v.runs) > 0 {
			v.find(Warning, name, -1, "the next start makes it from the batches", "is missing")
		}
		return
	case err != nil:
		v.find(Error, name, -1, "Tidemark's next start makes it from the batches; Kafka does not start before it is removed", "cannot be used: %v", err)
		return
	}
	v.sum.Latest = max(v.sum.Latest, cache.Latest())
	// The log's start moves before the epochs below it go.
	v.sum.Start = max(v.sum.Start, v.in.Checkpoints()[2].Offset, v.firstNow())
	for _, r := range v.runs {
		if r.last < v.sum.Start {
			continue
		}
		for _, o := range []epoch.Offset{max(r.first, v.sum.Start), r.last} {
			if have := cache.EpochAt(o); have != r.epoch {
				v.find(Error, r.file, r.position, remedyReplica, "offset %d is of leader epoch %d, and %s has epoch %d there: two histories may be mixed", o, r.epoch, epochFile, have)
				break
			}
		}
	}
	for _, e := range cache.Entries() {
		if e.Start > v.sum.End {
			v.find(v.unfinished(), name, -1, "the next start drops the entry", "has leader epoch %d begin at offset %d, and the log ends at %d", e.Epoch, e.Start, v.sum.End)
		}
	}
}

// dataDirectory checks what stands beside the partition's directory.
func (v *verifier) dataDirectory() {
	if b, err := v.in.whole(failedFile, checkpointLimit); err == nil {
		v.find(Warning, failedFile, -1, "the next start draws a new directory id and fetches from the other replicas", "%s", strings.TrimSpace(string(b)))
	}
	if _, err := fs.Stat(v.in.root, "quarantine"); v.own && err == nil {
		v.find(Warning, "quarantine", -1, "remove it when it is not wanted any more", "holds data that a start has set aside")
	}
	id, err := v.in.TopicID()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.find(v.foreign(), v.path(metadataFile), -1, "a start sets such a directory aside; replica log import gives it an id", "is missing, so nothing says which topic id the log belongs to")
	case err != nil:
		v.find(Error, v.path(metadataFile), -1, "a start sets such a directory aside; write it by hand if you know the topic id", "cannot be used: %v", err)
	}
	for _, p := range v.ident {
		if v.own && p.Key == "cluster.id" && err == nil && p.Value != id.String() {
			v.find(Error, v.path(metadataFile), -1, "a start sets the directory aside", "is of topic id %s, and the volume of topic id %s", id, p.Value)
		}
		if p.Key == "tidemark.topic" && p.Value != v.in.Topic {
			v.find(Error, metaFile, -1, "a start sets the directory aside", "is of topic %s", p.Value)
		}
	}
}
