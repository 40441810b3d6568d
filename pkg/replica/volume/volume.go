package volume

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Files of a volume, beside meta.properties and the log's own.
const (
	recordFile     = "record.json"
	cleanFile      = ".kafka_cleanshutdown"
	everyBatchFile = ".every_batch"
	failedFile     = ".failed"
	// maxFile bounds what is read of any of them, in bytes.
	maxFile = 1 << 20
)

// Config says which volume a replica expects, and who the replica is.
type Config struct {
	// Dir is the root of the volume. It is made if it does not exist.
	Dir string
	// WitnessDir is a directory on tmpfs that lives as long as the pod; empty for no
	// witness.
	WitnessDir string
	// Topic and TopicID are the partition's, ReplicaID this replica's.
	Topic     string
	TopicID   epoch.UUID
	ReplicaID epoch.ReplicaID
	// BootID changes with every start of the machine, PodUID with every pod. Without
	// a boot id no witness is a proof.
	BootID string
	PodUID string
	// Log gets what was set aside; the zero value discards it.
	Log logr.Logger

	// What follows is the machine's where it is nil; simulations bring their own.

	// FS holds the volume.
	FS vfs.FS
	// Lock takes the volume for this process alone, without waiting, and gives it back
	// by what it returns. Nil is an flock in Dir, and no lock at all with an FS.
	Lock func(dir, podUID string) (release func(), err error)
	// Memory is where the witness lives, in place of WitnessDir.
	Memory WitnessMemory
	// NewUUID draws directory ids and volume ids.
	NewUUID func() epoch.UUID
	// Patiently runs work and waits for it, but no longer than patience; nil is a
	// goroutine of its own. A simulation may run work at once.
	Patiently func(work func(), patience time.Duration)
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = vfs.OS{}
		if c.Lock == nil {
			c.Lock = acquire
		}
	}
	if c.Lock == nil {
		c.Lock = func(string, string) (func(), error) { return func() {}, nil }
	}
	if c.NewUUID == nil {
		c.NewUUID = newUUID
	}
	if c.Patiently == nil {
		c.Patiently = patiently
	}
	return c
}

// Volume is an open, locked data directory. See the package comment for the order of
// calls, and for who may call what.
type Volume struct {
	cfg     Config
	fs      vfs.FS
	release func() // gives the lock back; nil: it is given back

	id    identity
	fresh bool // the directory id was drawn by this process

	// What the process before this one left, as Open found it.
	mark           *CleanMark
	found          *Witness
	witnessMissing string
	errorMark      bool

	witness *witnessFile // nil: there can be none
	writing atomic.Bool  // the clean mark is known to be gone
	failed  atomic.Bool  // MarkError was called
}

// Open locks the volume and checks whose it is. A volume of another replica or topic
// is refused, with an error that says what to do. Data of another topic id, or without
// an identity, are set aside under quarantine/, and the volume gets a new directory id.
// An empty directory becomes this replica's.
func Open(cfg Config) (*Volume, error) {
	if cfg.Dir == "" || cfg.Topic == "" || cfg.TopicID.IsZero() || cfg.ReplicaID < 0 {
		return nil, fmt.Errorf("open volume %q: directory, topic (%q), topic id (%s) and replica id (%d) are all needed",
			cfg.Dir, cfg.Topic, cfg.TopicID, cfg.ReplicaID)
	}
	cfg = cfg.withDefaults()
	if err := cfg.FS.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open volume %s: %w", cfg.Dir, err)
	}
	release, err := cfg.Lock(cfg.Dir, cfg.PodUID)
	if err != nil {
		return nil, fmt.Errorf("open volume %s: %w", cfg.Dir, err)
	}
	v, err := open(cfg, cfg.FS)
	if err != nil {
		release()
		return nil, fmt.Errorf("open volume %s: %w", cfg.Dir, err)
	}
	v.release = release
	return v, nil
}

// open does all of Open but the lock, on any file system.
func open(cfg Config, fsys vfs.FS) (*Volume, error) {
	cfg.FS = fsys
	v := &Volume{cfg: cfg.withDefaults(), fs: fsys}
	v.makeRoom()
	if err := v.claim(); err != nil {
		return nil, err
	}
	var err error
	if v.mark, err = v.readMark(cleanFile); err != nil {
		return nil, fmt.Errorf("read the clean mark: %w", err)
	}
	if v.errorMark, err = v.exists(failedFile); err != nil {
		return nil, fmt.Errorf("look for the error mark: %w", err)
	}
	if cfg.Memory != nil {
		v.witness, v.found, v.witnessMissing = openWitnessIn(cfg.Memory)
	} else {
		v.witness, v.found, v.witnessMissing = openWitness(cfg.WitnessDir)
	}
	if v.witness == nil {
		cfg.Log.Info("there is no witness: a killed process loses its place in the ISR", "reason", v.witnessMissing)
	}
	return v, nil
}

// Close gives lock and witness back; both end with the process in any case. It may be
// called again.
func (v *Volume) Close() error {
	var err error
	if v.witness != nil {
		err = v.witness.close()
	}
	if v.release != nil {
		v.release()
		v.release = nil
	}
	return err
}

// FS is the file system that the volume is on.
func (v *Volume) FS() vfs.FS { return v.fs }

// DirectoryID is the id that the directory promise is made under.
func (v *Volume) DirectoryID() epoch.UUID { return v.id.directoryID }

// Suspect reports that a write or sync failed under the present directory id, so that
// the page cache may hold what the disk does not, and no sync will write. Write the log
// anew before Prove, which may draw a new id and then forgets this.
func (v *Volume) Suspect() bool {
	return v.errorMark || v.failed.Load() || v.found != nil && v.found.Failed && v.found.DirectoryID == v.id.directoryID
}

// Vouched reports that the process before left its witness, on this machine start and in
// this pod, and that no write or sync had failed by its word.
func (v *Volume) Vouched() bool {
	w := v.found
	return w != nil && !w.Failed && w.DirectoryID == v.id.directoryID && w.BootID == v.cfg.BootID && w.BootID != "" && w.PodUID == v.cfg.PodUID
}

// VolumeID names the volume for its whole life, whatever directory ids it has.
func (v *Volume) VolumeID() epoch.UUID { return v.id.volumeID }

// NewDirectoryID gives up the promise: it draws a new id, durable on return, and then
// takes away what spoke for or against the old one. The old witness stays until Arm,
// and says nothing about the new id.
func (v *Volume) NewDirectoryID() (epoch.UUID, error) {
	next := v.id
	next.directoryID = v.cfg.NewUUID()
	if err := v.writeIdentity(next); err != nil {
		return epoch.UUID{}, err
	}
	v.fresh, v.mark = true, nil
	v.writing.Store(false)
	// The error mark may go only now: it was what kept the old id from being proven.
	if err := v.remove(cleanFile, everyBatchFile, failedFile); err != nil {
		return epoch.UUID{}, fmt.Errorf("clear the volume for a new directory id: %w", err)
	}
	v.errorMark = false
	return next.directoryID, nil
}

func (v *Volume) writeIdentity(next identity) error {
	if err := vfs.WriteFileAtomic(v.fs, v.path(metaFile), next.format()); err != nil {
		return fmt.Errorf("write the volume's identity: %w", err)
	}
	v.id = next
	return nil
}

// errorMarkPatience is how long MarkError waits for a disk that may be stuck.
const errorMarkPatience = time.Second

// MarkError ends the promise after a failed sync or EIO (DESIGN.md rule 10). The
// witness is marked at once, which needs no disk; then, if the disk lets it within a
// second, the volume itself, from which clean mark and EveryBatch flag go. It may be
// called at any time after Open, by any goroutine.
func (v *Volume) MarkError() {
	if v.failed.Swap(true) {
		return
	}
	if v.witness != nil {
		v.witness.markError()
	}
	v.cfg.Patiently(func() {
		// Each for itself: on a disk that fails, one may work where another does not.
		_ = vfs.WriteFileAtomic(v.fs, v.path(failedFile), []byte("a write or sync of this volume has failed\n"))
		_ = v.remove(cleanFile)
		_ = v.remove(everyBatchFile)
	}, errorMarkPatience)
}

// MarkDamage ends the promise since the log has lost what a crash does not explain; it is
// durable on return. It must run before the log is cut, which takes the damage out of
// sight: a process that is killed before it has registered leaves it to the next one.
func (v *Volume) MarkDamage() error {
	if v.errorMark || guard.Off(guard.CutVoidsPromise) {
		return nil
	}
	if err := vfs.WriteFileAtomic(v.fs, v.path(failedFile), []byte("the log of this volume was damaged\n")); err != nil {
		return fmt.Errorf("mark the volume as damaged: %w", err)
	}
	v.errorMark = true
	return nil
}

func patiently(work func(), patience time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
