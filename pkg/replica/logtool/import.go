package logtool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// ErrRefused says that a log is not imported for what it is. What was there stays as it was.
var ErrRefused = errors.New("not imported")

// ImportOptions say what Import makes.
type ImportOptions struct {
	// Topic names the new log. It is partition 0 whatever it was.
	Topic string
	// TopicID is the new log's; zero for the source's own, or a new one if it has none.
	TopicID epoch.UUID
	// Replica is whose volume it becomes.
	Replica epoch.ReplicaID
	// Report is told what verifying the source finds. Nil: nobody.
	Report func(log.Finding)
}

// Imported is what Import made.
type Imported struct {
	TopicID    epoch.UUID
	Start, End epoch.Offset
	// Latest is the newest leader epoch of the log.
	Latest epoch.LeaderEpoch
	// TornBytes is the unfinished last write that was left out.
	TornBytes int64
}

// staging is where an import is made, in the data directory, which may be a mount point.
const staging = "import.tmp"

// segmentFile is what is copied: indexes are made anew.
var segmentFile = regexp.MustCompile(`^[0-9]{20}\.(log|snapshot)$`)

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// Import copies a sound log into a data directory that holds none. All that is in the log
// counts as committed, and its leader epochs stay. The copy is opened and verified before
// the data directory gets it; meta.properties comes last, and before it a start takes
// nothing of it for its own.
func Import(sourceDir, dataDir string, o ImportOptions) (Imported, error) {
	if !topicName.MatchString(o.Topic) || o.Topic == "." || o.Topic == ".." {
		return Imported{}, fmt.Errorf("topic %q: use 1 to 249 of a-z, A-Z, 0-9, dot, underscore and hyphen", o.Topic)
	}
	if err := checkTarget(dataDir); err != nil {
		return Imported{}, err
	}
	source, sourceDir, err := Find(sourceDir)
	if err != nil {
		return Imported{}, err
	}
	report := o.Report
	if report == nil {
		report = func(log.Finding) {}
	}
	sum, err := log.Verify(source, report)
	if err != nil {
		return Imported{}, fmt.Errorf("read %s: %w", sourceDir, err)
	}
	if err := refusal(sum); err != nil {
		return Imported{}, err
	}
	i := importer{source: source, sum: sum, fs: vfs.OS{}, options: o, dataDir: dataDir, stage: path.Join(dataDir, staging)}
	if err := i.pickTopicID(); err != nil {
		return Imported{}, err
	}
	result, err := i.run(sourceDir)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(i.stage))
	}
	return result, err
}

// refusal says why a log that may be sound is not for Tidemark, and what helps.
func refusal(s log.Summary) error {
	const copyIt = "read the topic with a client and write it to Tidemark"
	for _, r := range []struct {
		so   bool
		text string
	}{
		{s.OldFormat > 0, "messages of format 0 or 1 are there; " + copyIt},
		{s.UnfinishedSwap, "a compaction is unfinished; let Kafka open and stop the log once"},
		{s.Errors > 0, fmt.Sprintf("the log is damaged (%d errors); take another replica's", s.Errors)},
		{s.Segments == 0, "there is no segment"},
		{s.Gaps > 0, "the log has gaps, as compaction leaves them, and Tidemark's offsets have none; " + copyIt},
		{s.Aborted > 0, "transactions were aborted, and Tidemark would serve their records; " + copyIt + " with isolation.level=read_committed"},
		{s.OpenTransactions > 0, "a transaction is open; end it first"},
		{s.ProducerID > epoch.LastImportableProducerID, "it knows producer ids at the end of their range; " + copyIt},
	} {
		if r.so {
			return fmt.Errorf("%w: %s", ErrRefused, r.text)
		}
	}
	return nil
}

// checkTarget demands a directory that no log has, nor had.
func checkTarget(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == staging:
			return fmt.Errorf("%w: %s is left of an import that did not end; remove it, and what stands beside it and is of the same log", ErrRefused, filepath.Join(dir, name))
		case e.IsDir() && partitionDir.MatchString(name), slices.Contains(dataFiles, name), ofPartition(name):
			return fmt.Errorf("%w: %s is there: a data directory holds one log, and this one is in use", ErrRefused, filepath.Join(dir, name))
		}
	}
	return nil
}

var dataFiles = []string{"meta.properties", "record.json", "replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"}

type importer struct {
	source         *log.Inspector
	sum            log.Summary
	fs             vfs.OS
	options        ImportOptions
	topicID        epoch.UUID
	dataDir, stage string
}

func (i *importer) pickTopicID() error {
	i.topicID = i.options.TopicID
	if !i.topicID.IsZero() {
		return nil
	}
	id, err := i.source.TopicID()
	switch {
	case err == nil && !id.IsZero():
		i.topicID = id
	case err == nil, errors.Is(err, fs.ErrNotExist):
		_, _ = rand.Read(i.topicID[:]) // never fails (crypto/rand)
	default:
		return err
	}
	return nil
}

func (i *importer) partition() string { return i.options.Topic + "-0" }

func (i *importer) run(sourceDir string) (Imported, error) {
	dir := path.Join(i.stage, i.partition())
	if err := i.fs.MkdirAll(dir); err != nil {
		return Imported{}, err
	}
	if err := i.copy(sourceDir, dir); err != nil {
		return Imported{}, fmt.Errorf("copy %s: %w", sourceDir, err)
	}
	torn, err := i.finish()
	if err != nil {
		return Imported{}, fmt.Errorf("open the copy: %w", err)
	}
	if err := i.verifyCopy(); err != nil {
		return Imported{}, err
	}
	if err := i.publish(); err != nil {
		return Imported{}, fmt.Errorf("give the copy its place in %s: %w", i.dataDir, err)
	}
	return Imported{TopicID: i.topicID, Start: i.sum.Start, End: i.sum.End, Latest: i.sum.Latest, TornBytes: torn}, nil
}

// copy copies segments, snapshots and leader epochs, durably, each file opened for
// reading only.
func (i *importer) copy(from, to string) error {
	for _, name := range i.source.Names {
		if !segmentFile.MatchString(name) && name != "leader-epoch-checkpoint" {
			continue
		}
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// finish opens the copy as a start after a crash does, which reads every batch, makes the
// indexes and cuts an unfinished last write off; and stops it in good order. Everything
// in the log counts as committed.
func (i *importer) finish() (torn int64, err error) {
	start := fmt.Sprintf("0\n1\n%s 0 %d\n", i.options.Topic, i.sum.Start)
	if err := vfs.WriteFileAtomic(i.fs, path.Join(i.stage, "log-start-offset-checkpoint"), []byte(start)); err != nil {
		return 0, err
	}
	metadata := fmt.Sprintf("version: 0\ntopic_id: %s", i.topicID)
	if err := vfs.WriteFileAtomic(i.fs, path.Join(i.stage, i.partition(), "partition.metadata"), []byte(metadata)); err != nil {
		return 0, err
	}
	l, r, err := log.Open(i.fs, i.stage, log.Config{Topic: i.options.Topic, TopicID: i.topicID}, false, logr.Discard())
	if err != nil {
		return 0, err
	}
	if err := i.asVerified(l, r); err != nil {
		return 0, errors.Join(err, l.Close())
	}
	if err := l.Close(); err != nil {
		return 0, err
	}
	return r.CutBytes, l.Checkpoint(l.EndOffset())
}

// asVerified compares the copy, opened, with the source as it was verified.
func (i *importer) asVerified(l *log.Log, r log.Recovery) error {
	switch {
	case r.CutAt != epoch.NoOffset && !r.OnlyTornTail, r.EpochContradiction:
		return fmt.Errorf("it would be cut at offset %d, where verifying found nothing: please report this", r.CutAt)
	case l.StartOffset() != i.sum.Start, l.EndOffset() != i.sum.End:
		return fmt.Errorf("%w: the log was [%d, %d) when it was verified and is [%d, %d) in the copy: it is in use; stop its broker first",
			ErrRefused, i.sum.Start, i.sum.End, l.StartOffset(), l.EndOffset())
	}
	return nil
}

func (i *importer) verifyCopy() error {
	in, err := log.Inspect(os.DirFS(i.stage), i.partition())
	if err != nil {
		return err
	}
	var first error
	sum, err := log.Verify(in, func(f log.Finding) {
		if first == nil && f.Severity == log.Error {
			first = errors.New(f.String())
		}
	})
	switch {
	case err != nil:
		return err
	case first != nil:
		return fmt.Errorf("the copy is damaged: %w", first)
	case sum.Records != i.sum.Records || sum.Start != i.sum.Start || sum.End != i.sum.End:
		return fmt.Errorf("%w: the copy has %d records, and the source had %d when it was verified: it is in use; stop its broker first", ErrRefused, sum.Records, i.sum.Records)
	}
	return nil
}

// publish moves the copy to its place. Until meta.properties is there, a start sets the
// rest aside.
func (i *importer) publish() error {
	names, err := i.fs.List(i.stage)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := i.fs.Rename(path.Join(i.stage, name), path.Join(i.dataDir, name)); err != nil {
			return err
		}
	}
	if err := i.fs.SyncDir(i.dataDir); err != nil {
		return err
	}
	if err := volume.Identify(i.fs, i.dataDir, volume.Import{Topic: i.options.Topic, TopicID: i.topicID, Replica: i.options.Replica,
		LeaderEpoch: i.sum.Latest, ProducerID: i.sum.ProducerID}); err != nil {
		return err
	}
	if err := i.fs.Remove(i.stage); err != nil {
		return err
	}
	return errors.Join(i.fs.SyncDir(i.dataDir), i.fs.SyncDir(path.Dir(i.dataDir)))
}
