package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Inspector looks at a partition's directory, Tidemark's or Kafka's, alive or dead. It
// reads through an fs.FS, which cannot write, takes no lock and repairs nothing, and
// what it holds in memory does not grow with the log. [Verify] judges what it sees.
//
// The directory may change under it: what is read later may be newer.
type Inspector struct {
	// Name is the partition's directory within the data directory.
	Name string
	// Topic and Partition are what the name says; Partition is -1 where it says none.
	Topic     string
	Partition int32
	// Names are the files of the directory when it was opened, sorted.
	Names []string

	root fs.FS
}

// partitionName is a partition's directory, as it is used, set aside by Tidemark, or
// about to be deleted by Kafka.
var partitionName = regexp.MustCompile(`^(.+)-([0-9]+)(?:\..+)?$`)

// Inspect lists the partition's directory name in the data directory root.
func Inspect(root fs.FS, name string) (*Inspector, error) {
	in := &Inspector{Name: name, Topic: name, Partition: -1, root: root}
	if m := partitionName.FindStringSubmatch(name); m != nil {
		if n, err := strconv.ParseInt(m[2], 10, 32); err == nil {
			in.Topic, in.Partition = m[1], int32(n)
		}
	}
	entries, err := fs.ReadDir(root, name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		in.Names = append(in.Names, e.Name())
	}
	slices.Sort(in.Names)
	return in, nil
}

// Segments are the base offsets of the segments, ascending.
func (in *Inspector) Segments() []epoch.Offset { return in.offsetsOf(suffixLog) }

// Snapshots are the offsets of the producer snapshots, ascending.
func (in *Inspector) Snapshots() []epoch.Offset { return in.offsetsOf(suffixSnapshot) }

func (in *Inspector) offsetsOf(suffix string) []epoch.Offset {
	var out []epoch.Offset
	for _, name := range in.Names {
		if o, ok := parseFileName(name, suffix); ok {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out
}

// Has reports a file of the directory.
func (in *Inspector) Has(name string) bool {
	_, found := slices.BinarySearch(in.Names, name)
	return found
}

// file is a regular file open for reading.
type file struct {
	fs.File
	io.ReaderAt
	size int64
}

// open opens a file of the partition's directory. Its size is taken now: what is
// appended later is not looked at.
func (in *Inspector) open(name string) (file, error) {
	return openFile(in.root, path.Join(in.Name, name))
}

func openFile(root fs.FS, name string) (file, error) {
	// Looked at first: to open a pipe would wait for who writes into it.
	st, err := fs.Stat(root, name)
	if err != nil {
		return file{}, err
	}
	if !st.Mode().IsRegular() {
		return file{}, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	f, err := root.Open(name)
	if err != nil {
		return file{}, err
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		_ = f.Close()
		return file{}, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
	}
	if st, err = f.Stat(); err != nil {
		_ = f.Close()
		return file{}, err
	}
	return file{f, r, st.Size()}, nil
}

// whole reads a file of the data directory that has at most limit bytes.
func (in *Inspector) whole(name string, limit int64) ([]byte, error) {
	f, err := openFile(in.root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.size > limit {
		return nil, fmt.Errorf("read %s: %d bytes, expected at most %d", name, f.size, limit)
	}
	b := make([]byte, f.size)
	n, err := f.ReadAt(b, 0)
	if n < len(b) {
		return nil, fmt.Errorf("read %s: %d of %d bytes: %w", name, n, len(b), err)
	}
	return b, nil
}

// Epochs reads leader-epoch-checkpoint. A missing file is fs.ErrNotExist; an empty one,
// with which Kafka begins, an empty cache.
func (in *Inspector) Epochs() (epoch.Cache, error) {
	b, err := in.whole(path.Join(in.Name, epochFile), checkpointLimit)
	if err != nil || len(b) == 0 {
		return epoch.Cache{}, err
	}
	return parseEpochs(b)
}

// TopicID reads partition.metadata. A missing file is fs.ErrNotExist.
func (in *Inspector) TopicID() (epoch.UUID, error) {
	b, err := in.whole(path.Join(in.Name, metadataFile), checkpointLimit)
	if err != nil {
		return epoch.UUID{}, err
	}
	return parseMetadata(b)
}

// Checkpoint is a checkpoint of the data directory as far as it is about a partition.
type Checkpoint struct {
	File string
	// Offset is this partition's, NoOffset if there is no line for it.
	Offset epoch.Offset
	// Err says why the file could not be read or understood; fs.ErrNotExist if there is
	// none.
	Err error
}

// Checkpoints reads the checkpoints of the data directory: high watermark, recovery
// point and log start, in this order.
func (in *Inspector) Checkpoints() [3]Checkpoint {
	var out [3]Checkpoint
	for i, name := range []string{highWatermarkFile, recoveryPointFile, logStartFile} {
		out[i] = Checkpoint{File: name, Offset: epoch.NoOffset}
		b, err := in.whole(name, checkpointLimit)
		if err != nil {
			out[i].Err = err
			continue
		}
		if len(b) == 0 {
			continue // as Kafka begins it
		}
		lines, err := parseOffsets(b)
		out[i].Err = err
		for _, l := range lines {
			if l.topic == in.Topic && l.partition == in.Partition {
				out[i].Offset = l.offset
			}
		}
	}
	return out
}

// Property is a line of meta.properties.
type Property struct{ Key, Value string }

// Files of the data directory that are not the log's.
const (
	metaFile   = "meta.properties"
	cleanFile  = ".kafka_cleanshutdown"
	failedFile = ".failed"
)

// Identity reads meta.properties, which says whose the data directory is. A missing
// file is fs.ErrNotExist.
func (in *Inspector) Identity() ([]Property, error) {
	b, err := in.whole(metaFile, checkpointLimit)
	if err != nil {
		return nil, err
	}
	var out []Property
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return out, fmt.Errorf("%s: line %.40q is not key=value", metaFile, line)
		}
		out = append(out, Property{key, value})
	}
	return out, nil
}

// StoppedCleanly reports the mark that an orderly stop leaves in the data directory. A
// log in use has none.
func (in *Inspector) StoppedCleanly() bool {
	_, err := fs.Stat(in.root, cleanFile)
	return err == nil
}
