package log

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// checkpointLimit bounds a checkpoint file, in bytes.
const checkpointLimit = 16 << 20

// errBrokenCheckpoint says that a file is not what was once written there.
var errBrokenCheckpoint = errors.New("checkpoint file is broken")

// parseCheckpoint reads Kafka's form: a line with the version (0), one with the
// number of entries, and one for each entry, of that many words.
func parseCheckpoint(data []byte, words int) ([][]string, error) {
	text, ok := strings.CutSuffix(string(data), "\n")
	lines := strings.Split(text, "\n")
	if !ok || len(lines) < 2 {
		return nil, fmt.Errorf("%w: %d bytes end within a line or before the number of entries", errBrokenCheckpoint, len(data))
	}
	if lines[0] != "0" {
		return nil, fmt.Errorf("%w: version %.20q, expected 0", errBrokenCheckpoint, lines[0])
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("%w: %d entries, the file says %.20q", errBrokenCheckpoint, len(lines)-2, lines[1])
	}
	out := make([][]string, n)
	for i, line := range lines[2:] {
		out[i] = strings.Split(line, " ")
		if len(out[i]) != words {
			return nil, fmt.Errorf("%w: entry %d has %d words, expected %d", errBrokenCheckpoint, i, len(out[i]), words)
		}
	}
	return out, nil
}

func formatCheckpoint(entries []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "0\n%d\n", len(entries))
	for _, e := range entries {
		b.WriteString(e + "\n")
	}
	return b.Bytes()
}

// Names of the checkpoint files in the data directory.
const (
	highWatermarkFile = "replication-offset-checkpoint"
	recoveryPointFile = "recovery-point-offset-checkpoint"
	logStartFile      = "log-start-offset-checkpoint"
)

// offsetLine is one line of an offset checkpoint.
type offsetLine struct {
	topic     string
	partition int32
	offset    epoch.Offset
}

func parseOffsets(data []byte) ([]offsetLine, error) {
	entries, err := parseCheckpoint(data, 3)
	if err != nil {
		return nil, err
	}
	out := make([]offsetLine, len(entries))
	for i, e := range entries {
		p, perr := strconv.ParseInt(e[1], 10, 32)
		o, oerr := strconv.ParseInt(e[2], 10, 64)
		if e[0] == "" || perr != nil || oerr != nil || p < 0 || o < 0 {
			return nil, fmt.Errorf("%w: entry %d is %.80q", errBrokenCheckpoint, i, strings.Join(e, " "))
		}
		out[i] = offsetLine{e[0], int32(p), epoch.Offset(o)}
	}
	return out, nil
}

func formatOffsets(lines []offsetLine) []byte {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("%s %d %d", l.topic, l.partition, l.offset)
	}
	return formatCheckpoint(out)
}

// offsetFile is one offset checkpoint of the data directory. Lines of other
// partitions are kept as they are.
type offsetFile struct {
	fs    vfs.FS
	name  string
	topic string

	// value is the offset on disk, NoOffset if there is none.
	value atomic.Int64
	// mu orders writers among themselves; it is held over their I/O, which a reader
	// of value does not wait for.
	mu     sync.Mutex
	others []offsetLine
}

// readOffsetFile reads a checkpoint. A file that is missing or broken reads as
// NoOffset, which every user of these files can live with; broken reports it.
func readOffsetFile(fsys vfs.FS, dataDir, name, topic string) (f *offsetFile, broken error, err error) {
	f = &offsetFile{fs: fsys, name: path.Join(dataDir, name), topic: topic}
	f.value.Store(int64(epoch.NoOffset))
	data, err := vfs.ReadFile(fsys, f.name, checkpointLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	lines, err := parseOffsets(data)
	if err != nil {
		return f, err, nil
	}
	for _, l := range lines {
		if l.topic == topic && l.partition == 0 {
			f.value.Store(int64(l.offset))
		} else {
			f.others = append(f.others, l)
		}
	}
	return f, nil, nil
}

// get is the offset on disk, NoOffset if there is none.
func (f *offsetFile) get() epoch.Offset { return epoch.Offset(f.value.Load()) }

// set makes o durable, unless it is already.
func (f *offsetFile) set(o epoch.Offset) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.setLocked(o)
}

// lower makes the offset on disk at most o. When the disk is full the file is
// removed instead, which reads as "unknown".
func (f *offsetFile) lower(o epoch.Offset) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.get() <= o {
		return nil
	}
	err := f.setLocked(o)
	if err == nil || !vfs.IsNoSpace(err) {
		return err
	}
	if err := f.fs.Remove(f.name); err != nil {
		return fmt.Errorf("remove %s: %w", path.Base(f.name), err)
	}
	f.value.Store(int64(epoch.NoOffset))
	if err := f.fs.SyncDir(path.Dir(f.name)); err != nil {
		return fmt.Errorf("sync directory of %s: %w", path.Base(f.name), err)
	}
	return nil
}

func (f *offsetFile) setLocked(o epoch.Offset) error {
	if f.get() == o {
		return nil
	}
	lines := append([]offsetLine{{f.topic, 0, o}}, f.others...)
	if err := vfs.WriteFileAtomic(f.fs, f.name, formatOffsets(lines)); err != nil {
		return fmt.Errorf("write %s: %w", path.Base(f.name), err)
	}
	f.value.Store(int64(o))
	return nil
}

// setIf is set if ok, asked for the offset on disk, holds once no other writer is at
// work. A truncation counts itself before it lowers what is on disk, so a checkpoint
// that read its offset earlier must not raise it again.
func (f *offsetFile) setIf(o epoch.Offset, ok func(onDisk epoch.Offset) bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok(f.get()) {
		return nil
	}
	return f.setLocked(o)
}
