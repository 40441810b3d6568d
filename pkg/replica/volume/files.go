package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

// PersistRecord keeps r as the newest record acted upon; it is durable on return.
// It must run before r is acted upon (DESIGN.md rule 7). Progress and heartbeat,
// which are not state, are left out.
func (v *Volume) PersistRecord(r epoch.Record) error {
	b, err := recordjson.Marshal(r, nil)
	if err != nil {
		return fmt.Errorf("keep the partition record on the volume: %w", err)
	}
	if err := vfs.WriteFileAtomic(v.fs, v.path(recordFile), b); err != nil {
		return fmt.Errorf("keep the partition record on the volume: %w", err)
	}
	return nil
}

// LoadRecord returns the newest record that this volume acted upon, nil if there is
// none. A file that cannot be read as one is an error: to go on without it would be
// to forget which epochs were seen.
func (v *Volume) LoadRecord() (*epoch.Record, error) {
	b, err := v.read(recordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the partition record kept on the volume: %w", err)
	}
	r, err := recordjson.Unmarshal(b)
	if errors.Is(err, recordjson.ErrMalformed) {
		return nil, fmt.Errorf("%s on the volume: %w; the disk is suspect: replace the volume, and this replica is filled from the others", recordFile, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s on the volume: %w", recordFile, err)
	}
	return &r, nil
}

// cleanMark is Kafka's file (KIP-966) with one field more.
type cleanMark struct {
	Version     int           `json:"version"`
	BrokerEpoch epoch.Session `json:"brokerEpoch"`
	StartID     epoch.StartID `json:"startID"`
}

// WriteCleanMark says that everything was flushed; it is durable on return. Call it
// after the last flush of an orderly stop. The promise cannot be proven by it if
// MarkError was called, and it is then refused.
func (v *Volume) WriteCleanMark(session epoch.Session, startID epoch.StartID) error {
	if v.failed.Load() {
		return errors.New("write the clean mark: a write or sync has failed, so this stop is not a clean one")
	}
	if err := v.writeMark(cleanFile, session, startID); err != nil {
		return fmt.Errorf("write the clean mark: %w", err)
	}
	v.writing.Store(false)
	return nil
}

func (v *Volume) writeMark(name string, session epoch.Session, startID epoch.StartID) error {
	if session < 0 || startID == "" {
		return fmt.Errorf("session %d, start id %q: both must be told", session, startID)
	}
	b, err := json.Marshal(cleanMark{BrokerEpoch: session, StartID: startID})
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(v.fs, v.path(name), b)
}

// readMark returns nil for a mark that is missing or broken: no mark is the safe
// reading.
func (v *Volume) readMark(name string) (*CleanMark, error) {
	b, err := v.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseCleanMark(b), nil
}

func parseCleanMark(b []byte) *CleanMark {
	m := cleanMark{Version: -1}
	if json.Unmarshal(b, &m) != nil || m.Version != 0 || m.BrokerEpoch < 0 {
		return nil
	}
	return &CleanMark{Session: m.BrokerEpoch, StartID: m.StartID}
}

// CleanMark is the mark that Open found, nil if there was none. Whoever wrote it, the
// log was flushed then and has not changed since: it may be opened as a clean one. That
// the mark proves anything is for Prove to say.
func (v *Volume) CleanMark() *CleanMark { return v.mark }

// BeginWriting takes the clean mark away, durably. It must run before the first
// append, truncation, log start move or change of the epoch cache; after the first
// call it costs nothing.
func (v *Volume) BeginWriting() error {
	if v.writing.Load() || guard.Off(guard.CleanMarkGoesFirst) {
		return nil
	}
	if err := v.remove(cleanFile); err != nil {
		return fmt.Errorf("take the clean mark away: %w", err)
	}
	v.writing.Store(true)
	return nil
}

// SetEveryBatch notes, durably, that this start syncs everything before it is
// acknowledged. Call it after a sync of the whole log and its directories, with session
// and start id as Arm gets them: the flag of an earlier start, on a volume that was put
// back to an older state, proves nothing.
func (v *Volume) SetEveryBatch(session epoch.Session, startID epoch.StartID) error {
	if v.failed.Load() {
		return errors.New("set the EveryBatch flag: a write or sync has failed, so nothing is known to be durable")
	}
	if err := v.writeMark(everyBatchFile, session, startID); err != nil {
		return fmt.Errorf("set the EveryBatch flag: %w", err)
	}
	return nil
}

// ClearEveryBatch takes the flag away, durably. It must run before the first
// acknowledgement that did not wait for a sync.
func (v *Volume) ClearEveryBatch() error {
	if guard.Off(guard.EveryBatchFlagFirst) {
		return nil
	}
	if err := v.remove(everyBatchFile); err != nil {
		return fmt.Errorf("clear the EveryBatch flag: %w", err)
	}
	return nil
}

// EveryBatch is the flag with the start that set it, nil if it is not set.
func (v *Volume) EveryBatch() (*CleanMark, error) {
	m, err := v.readMark(everyBatchFile)
	if err != nil {
		return nil, fmt.Errorf("look for the EveryBatch flag: %w", err)
	}
	return m, nil
}

// remove takes files away durably. The directory is synced even if they are not
// there: an earlier removal may have failed between the two.
func (v *Volume) remove(names ...string) error {
	for _, name := range names {
		if err := v.fs.Remove(v.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return v.fs.SyncDir(v.cfg.Dir)
}

func (v *Volume) path(name string) string { return path.Join(v.cfg.Dir, name) }

func (v *Volume) read(name string) ([]byte, error) {
	return vfs.ReadFile(v.fs, v.path(name), maxFile)
}

func (v *Volume) exists(name string) (bool, error) {
	_, err := v.fs.Stat(v.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
