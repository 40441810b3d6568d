package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const epochFile = "leader-epoch-checkpoint"

func parseEpochs(data []byte) (epoch.Cache, error) {
	entries, err := parseCheckpoint(data, 2)
	if err != nil {
		return epoch.Cache{}, err
	}
	out := make([]epoch.Entry, len(entries))
	for i, e := range entries {
		n, nerr := strconv.ParseInt(e[0], 10, 32)
		o, oerr := strconv.ParseInt(e[1], 10, 64)
		if nerr != nil || oerr != nil {
			return epoch.Cache{}, fmt.Errorf("%w: entry %d is %.80q", errBrokenCheckpoint, i, strings.Join(e, " "))
		}
		out[i] = epoch.Entry{Epoch: epoch.LeaderEpoch(n), Start: epoch.Offset(o)}
	}
	c, err := epoch.NewCache(out)
	if err != nil {
		return epoch.Cache{}, fmt.Errorf("%w: %w", errBrokenCheckpoint, err)
	}
	return c, nil
}

func formatEpochs(c epoch.Cache) []byte {
	var out []string
	for _, e := range c.Entries() {
		out = append(out, fmt.Sprintf("%d %d", e.Epoch, e.Start))
	}
	return formatCheckpoint(out)
}

// readEpochs reads the cache. found is false if there is no file; broken is set if
// there is one that cannot be used.
func readEpochs(fsys vfs.FS, dir string) (c epoch.Cache, found bool, broken, err error) {
	data, err := vfs.ReadFile(fsys, path.Join(dir, epochFile), checkpointLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil, nil
	}
	if err != nil {
		return c, false, nil, fmt.Errorf("read %s: %w", epochFile, err)
	}
	c, broken = parseEpochs(data)
	return c, true, broken, nil
}

// storeEpochs makes c durable and then the log's cache. The order is the promise
// that the file is never behind the log.
func (l *Log) storeEpochs(c epoch.Cache) error {
	if c.Equal(l.epochs) && !l.epochsStale {
		return nil
	}
	if err := l.writeEpochs(c); err != nil {
		return err
	}
	l.setEpochs(c)
	return nil
}

func (l *Log) writeEpochs(c epoch.Cache) error {
	if guard.Off(guard.EpochDurable) {
		return nil
	}
	if err := vfs.WriteFileAtomic(l.fs, path.Join(l.dir, epochFile), formatEpochs(c)); err != nil {
		// Whether the old or the new content is there is not known.
		l.epochsStale = true
		return l.fault(fmt.Errorf("write %s: %w", epochFile, err))
	}
	l.epochsStale = false
	return nil
}

func (l *Log) setEpochs(c epoch.Cache) {
	l.mu.Lock()
	l.epochs = c
	l.mu.Unlock()
}

// AssignEpoch notes that epoch e begins at the log's end, durably before it
// returns: a leader must not append, nor answer where its epoch begins, before
// (KAFKA-7415). An epoch that is the newest already is left alone. Errors:
// ErrStaleEpoch for one below the newest, ErrNoSpace, ErrFailed.
func (l *Log) AssignEpoch(e epoch.LeaderEpoch) error {
	if err := l.writable(); err != nil {
		return err
	}
	c := l.EpochCache()
	if newest := c.Latest(); e < newest {
		return fmt.Errorf("assign leader epoch %d: %w, %d", e, ErrStaleEpoch, newest)
	}
	c.Assign(e, l.EndOffset())
	return l.storeEpochs(c)
}
