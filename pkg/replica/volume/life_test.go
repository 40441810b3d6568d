package volume

import (
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// onDisk opens a volume on a disk that can lose its power.
func onDisk(t *testing.T, fsys vfs.FS) *Volume {
	t.Helper()
	if err := fsys.MkdirAll("/v"); err != nil {
		t.Fatal(err)
	}
	v, err := open(config("/v"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// registered is a record that knows this replica by that registration.
func registered(v *Volume, session epoch.Session, start epoch.StartID) epoch.Record {
	r := epoch.New(topicID, []epoch.ReplicaID{1, 2}, 1, "c")
	r.Replicas[1].DirectoryID, r.Replicas[1].Session, r.Replicas[1].StartID = v.DirectoryID(), session, start
	return r
}

func facts(end epoch.Offset) LogFacts {
	return LogFacts{LogEndOffset: end, CheckpointedHighWatermark: epoch.NoOffset}
}

func verdict(t *testing.T, v *Volume, r epoch.Record, f LogFacts) Verdict {
	t.Helper()
	got, err := v.Prove(r, f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A life in order: every start proves the one before by its mark, whether its
// registration landed or not, until the log is written to.
func TestTheMarkCoversAStartUntilTheFirstWrite(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	id := v.DirectoryID()
	if got := verdict(t, v, registered(v, 0, ""), facts(0)); got.Proof != "new" {
		t.Fatalf("first start: %+v", got)
	}
	if err := v.Arm(epoch.NoSession, "s1", Position{}); err != nil {
		t.Fatal(err)
	}
	powerCut := func() *Volume { return onDisk(t, mem.Crash(vfs.Crash{})) }

	landed := powerCut()
	if got := verdict(t, landed, registered(landed, 5, "s1"), facts(0)); got.Proof != "clean mark" || landed.DirectoryID() != id {
		t.Errorf("cut after the registration landed: %+v", got)
	}
	if err := v.WriteCleanMark(5, "s1"); err != nil {
		t.Fatal(err)
	}
	if err := v.Arm(5, "s2", Position{}); err != nil {
		t.Fatal(err)
	}
	lost := powerCut()
	if got := verdict(t, lost, registered(lost, 5, "s1"), facts(0)); got.Proof != "clean mark" || lost.DirectoryID() != id {
		t.Errorf("cut before the registration landed: %+v", got)
	}
	if err := v.BeginWriting(); err != nil {
		t.Fatal(err)
	}
	unproven := powerCut()
	if got := verdict(t, unproven, registered(unproven, 5, "s2"), facts(0)); got.Keep || unproven.DirectoryID() == id {
		t.Errorf("cut after writing began: %+v", got)
	}
	if again := onDisk(t, unproven.fs); again.DirectoryID() != unproven.DirectoryID() || again.VolumeID() != v.VolumeID() {
		t.Error("the new directory id was not durable, or the volume id changed")
	}
}

func TestBeginWritingIsDurableAndThenCostsNothing(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	if err := v.WriteCleanMark(3, "s"); err != nil {
		t.Fatal(err)
	}
	if onDisk(t, mem.Crash(vfs.Crash{})).CleanMark() == nil {
		t.Fatal("the mark was not durable")
	}
	mem.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpSyncDir {
			return syscall.EIO
		}
		return nil
	})
	if err := v.BeginWriting(); err == nil {
		t.Fatal("the removal was not synced, and that was no error")
	}
	mem.SetFault(nil)
	if err := v.BeginWriting(); err != nil {
		t.Fatal(err)
	}
	if m := onDisk(t, mem.Crash(vfs.Crash{})).CleanMark(); m != nil {
		t.Errorf("a power cut brought the mark back: %+v", m)
	}
	mem.SetFault(func(op vfs.Op) error { t.Errorf("%s of %s", op.Kind, op.Name); return nil })
	if err := v.BeginWriting(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryBatchFlagIsDurableBothWays(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	after := func() bool {
		flag, err := onDisk(t, mem.Crash(vfs.Crash{})).EveryBatch()
		if err != nil {
			t.Fatal(err)
		}
		return flag != nil
	}
	if after() {
		t.Error("set on a new volume")
	}
	if err := v.SetEveryBatch(4, "s1"); err != nil || !after() {
		t.Errorf("not set durably: %v", err)
	}
	again := onDisk(t, mem.Crash(vfs.Crash{}))
	if got := verdict(t, again, registered(again, 5, "s1"), facts(10)); got.Proof != "every batch" {
		t.Errorf("got %+v", got)
	}
	restored := onDisk(t, mem.Crash(vfs.Crash{}))
	if got := verdict(t, restored, registered(restored, 9, "s2"), facts(10)); got.Keep || !strings.Contains(got.Reason, "of session 4, registered is session 9") {
		t.Errorf("a volume from before the present registration: %+v", got)
	}
	if err := v.ClearEveryBatch(); err != nil || after() {
		t.Errorf("not cleared durably: %v", err)
	}
}

func TestNewDirectoryIDIsDurableBeforeTheErrorMarkGoes(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	old := v.DirectoryID()
	if err := v.SetEveryBatch(5, "s1"); err != nil {
		t.Fatal(err)
	}
	v.MarkError()
	v = onDisk(t, mem)
	mem.SetFault(func(vfs.Op) error {
		// Cut the power before every operation: the old id is never provable.
		cut := onDisk(t, mem.Crash(vfs.Crash{}))
		e, err := cut.evidence(registered(cut, 5, "s1"), facts(10))
		if err != nil {
			t.Fatal(err)
		}
		if cut.DirectoryID() == old && Judge(e).Keep {
			t.Error("the old directory id could be proven after all")
		}
		return nil
	})
	if got := verdict(t, v, registered(v, 5, "s1"), facts(10)); got.Keep || !strings.Contains(got.Reason, "has failed") {
		t.Errorf("got %+v", got)
	}
	mem.SetFault(nil)
	again := onDisk(t, mem.Crash(vfs.Crash{}))
	if again.DirectoryID() == old || again.errorMark {
		t.Errorf("directory id %s, error mark %v", again.DirectoryID(), again.errorMark)
	}
}

func TestMarkErrorVoidsEveryProofOfThisAndTheNextProcess(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.WitnessDir = tmpfs(t)
	v := opened(t, cfg)
	if err := v.Arm(epoch.NoSession, "s1", Position{}); err != nil {
		t.Fatal(err)
	}
	if err := v.SetEveryBatch(5, "s1"); err != nil {
		t.Fatal(err)
	}
	v.MarkError()
	v.MarkError()
	if v.WriteCleanMark(5, "s1") == nil || v.SetEveryBatch(5, "s1") == nil {
		t.Error("a proof could be made after the error")
	}
	// Whatever becomes of the disk's own mark, the witness remembers.
	for _, name := range []string{failedFile, ""} {
		if name != "" {
			if err := v.remove(name); err != nil {
				t.Fatal(err)
			}
		}
		v = reopened(t, v)
		if v.CleanMark() != nil {
			t.Error("the clean mark is still there")
		}
		e, err := v.evidence(registered(v, 5, "s1"), facts(0))
		if err != nil {
			t.Fatal(err)
		}
		if got := Judge(e); got.Keep || !strings.Contains(got.Reason, "has failed") {
			t.Errorf("got %+v", got)
		}
	}
}

// A disk that is stuck does not keep the witness from being marked.
func TestMarkErrorDoesNotWaitForAStuckDisk(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	mem.SetFault(func(vfs.Op) error { <-release; return syscall.EIO })
	v.MarkError()
	if !v.failed.Load() {
		t.Error("the error was not noted")
	}
}

func TestTheWitnessProvesAKilledProcess(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.WitnessDir = tmpfs(t)
	v := opened(t, cfg)
	if err := v.Arm(epoch.NoSession, "s1", Position{}); err != nil {
		t.Fatal(err)
	}
	if err := v.BeginWriting(); err != nil {
		t.Fatal(err)
	}
	v.Raise(Position{LogEndOffset: 120, LeaderEpoch: 3, CRC: 9})
	v.Lower(lastBatch)
	v = reopened(t, v)
	id := v.DirectoryID()
	inLog := facts(100)
	inLog.BatchEndingAt = func(last epoch.Offset) (Batch, bool, error) { return Batch{3, 7}, last == 99, nil }
	if got := verdict(t, v, registered(v, 5, "s1"), inLog); got.Proof != "witness" || v.DirectoryID() != id {
		t.Errorf("got %+v", got)
	}
	deleted := facts(130)
	deleted.LogStartOffset = 100
	if got := verdict(t, v, registered(v, 5, "s1"), deleted); got.Proof != "witness" {
		t.Errorf("the witnessed batch was deleted by retention: %+v", got)
	}
	other := facts(100)
	other.BatchEndingAt = func(epoch.Offset) (Batch, bool, error) { return Batch{4, 7}, true, nil }
	if got := verdict(t, v, registered(v, 5, "s1"), other); got.Keep || v.DirectoryID() == id {
		t.Errorf("another batch in its place: %+v", got)
	}
	if got := found(t, cfg.WitnessDir); got.Position != lastBatch {
		t.Errorf("a new directory id replaced the witness before Arm: %+v", got)
	}
	if err := v.Arm(5, "s2", lastBatch); err != nil {
		t.Fatal(err)
	}
	if got := found(t, cfg.WitnessDir); got.DirectoryID != v.DirectoryID() || got.StartID != "s2" {
		t.Errorf("after Arm: %+v", got)
	}
}

func TestNoDirectoryIDIsDrawnDuringRecovery(t *testing.T) {
	mem := vfs.NewMem()
	onDisk(t, mem)
	v := onDisk(t, mem)
	id := v.DirectoryID()
	r := registered(v, 5, "s1")
	r.Recovery = &epoch.Recovery{}
	if _, err := v.Prove(r, facts(0)); err == nil || v.DirectoryID() != id {
		t.Errorf("got %v, directory id %s → %s", err, id, v.DirectoryID())
	}
}

func TestPersistedRecordOutlivesAPowerCutAtAnyOperation(t *testing.T) {
	mem := vfs.NewMem()
	v := onDisk(t, mem)
	first := epoch.New(topicID, []epoch.ReplicaID{2}, 1, "one")
	if err := v.PersistRecord(first); err != nil {
		t.Fatal(err)
	}
	second := first.Clone()
	second.PartitionEpoch, second.Changes = 2, nil
	steps := 0
	mem.SetFault(func(op vfs.Op) error {
		if path.Base(op.Name) == metaFile {
			return nil
		}
		steps++
		r, err := onDisk(t, mem.Crash(vfs.Crash{})).LoadRecord()
		if err != nil || r == nil {
			t.Errorf("cut before %s of %s: %+v, %v", op.Kind, op.Name, r, err)
		}
		return nil
	})
	if err := v.PersistRecord(second); err != nil {
		t.Fatal(err)
	}
	mem.SetFault(nil)
	if r, err := onDisk(t, mem.Crash(vfs.Crash{})).LoadRecord(); err != nil || r.PartitionEpoch != 2 {
		t.Errorf("after PersistRecord returned: %+v, %v", r, err)
	}
	if steps < 4 {
		t.Errorf("only %d operations were seen", steps)
	}
}
