package processes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/test/nemesis"
)

// Files on a volume.
const (
	cleanMark     = ".kafka_cleanshutdown"
	everyBatch    = ".every_batch"
	recoveryPoint = "recovery-point-offset-checkpoint"
)

func replicaID(pod string) epoch.ReplicaID {
	n, err := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
	if err != nil {
		return epoch.NoReplica
	}
	return epoch.ReplicaID(n)
}

// loseProof enters into the account that a replica loses what it holds, or the proof of it; errPassed if that is
// more than the partition can stand.
func (r *storm) loseProof(c *container) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	now, err := r.records.Get(ctx)
	if err != nil {
		return fmt.Errorf("the record cannot be read: %w", errPassed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := replicaID(c.name)
	if !r.losses.Allows(now.Record, r.minISR, id) {
		return fmt.Errorf("one more loss is more than min ISR allows: %w", errPassed)
	}
	r.losses.Note(now.Record, id)
	return nil
}

// lose destroys what a fault destroys, between two processes of a container. With every batch synced nothing but a
// volume can be lost.
func (r *storm) lose(kind nemesis.Kind, c *container) {
	synced := exists(filepath.Join(c.volume, everyBatch))
	if kind == nemesis.VolumeLost || !synced {
		if err := r.loseProof(c); err != nil {
			r.note("       %s on %s is but a kill: %v", kind, c.name, err)
			return
		}
	}
	var err error
	switch kind {
	case nemesis.VolumeLost:
		err = errors.Join(empty(c.volume), empty(c.witnessDir()))
	case nemesis.WitnessLost:
		err = errors.Join(empty(c.witnessDir()), removeIfThere(filepath.Join(c.volume, cleanMark)))
	case nemesis.PowerCut:
		err = empty(c.witnessDir())
		if !synced && !exists(filepath.Join(c.volume, cleanMark)) {
			var lost int64
			lost, err = cutUnsynced(c.volume)
			r.note("       %s lost %d bytes that were not synced", c.name, lost)
		}
	}
	if err != nil {
		r.t.Errorf("%s on %s: %v", kind, c.name, err)
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// cutUnsynced cuts the newest segment somewhere behind what the replica knows to be on the disk, in the middle of a
// batch as likely as not, and returns how many bytes it took.
func cutUnsynced(volume string) (int64, error) {
	segments, err := logFiles(volume)
	if err != nil || len(segments) == 0 {
		return 0, err
	}
	last := segments[len(segments)-1]
	data, err := os.ReadFile(last)
	if err != nil {
		return 0, err
	}
	synced, err := syncedOffset(filepath.Join(filepath.Dir(last), recoveryPoint))
	if err != nil {
		return 0, err
	}
	from := positionOf(data, synced)
	if from == len(data) {
		return 0, nil
	}
	to := from + rand.IntN(len(data)-from)
	return int64(len(data) - to), os.Truncate(last, int64(to))
}

// syncedOffset reads the checkpoint of the recovery point: its last word. Without one nothing counts as synced.
func syncedOffset(name string) (int64, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	words := strings.Fields(string(b))
	if err != nil || len(words) == 0 {
		return 0, err
	}
	return strconv.ParseInt(words[len(words)-1], 10, 64)
}

// positionOf is where the first batch begins whose base offset is at or above the given one.
func positionOf(segment []byte, offset int64) int {
	const header = 12 // base offset and length, which does not count these
	at := 0
	for at+header <= len(segment) && int64(binary.BigEndian.Uint64(segment[at:])) < offset {
		at += header + int(binary.BigEndian.Uint32(segment[at+8:]))
	}
	return min(at, len(segment))
}

// logFiles are the segments of a volume, in the order of their offsets.
func logFiles(volume string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(volume, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "quarantine":
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".log"):
			found = append(found, name)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}
