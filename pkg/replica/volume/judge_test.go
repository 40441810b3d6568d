package volume

import (
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var (
	dirA, dirB = epoch.UUID{0xa}, epoch.UUID{0xb}
	lastBatch  = Position{LogEndOffset: 100, LeaderEpoch: 3, CRC: 7}
)

// bare is a start without any proof, on a log that ends at 100 and that nothing
// speaks against.
func bare() Evidence {
	return Evidence{
		DirectoryID: dirA, BootID: "boot", PodUID: "pod", InSync: true,
		Registered:         epoch.Replica{ID: 1, DirectoryID: dirA, Session: 8, StartID: "s8"},
		KnownHighWatermark: 100,
		Log:                LogFacts{LogEndOffset: 100, CheckpointedHighWatermark: 90},
	}
}

func marked(e *Evidence) { e.Mark = &CleanMark{Session: 8, StartID: "other"} }

func witnessedBy(e *Evidence) {
	e.Witness = &Witness{BootID: "boot", PodUID: "pod", DirectoryID: dirA, StartID: "s8", Position: lastBatch}
	e.WitnessedBatch = true
}

func everyBatch(e *Evidence) { e.EveryBatch = &CleanMark{Session: 8, StartID: "other"} }

func all(e *Evidence) { marked(e); witnessedBy(e); everyBatch(e) }

func TestJudgeProofs(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Evidence)
		proof string // "" for none
		about string
	}{
		{"nothing at all", func(*Evidence) {}, "", "no proof"},
		{"an id drawn by this start promises nothing yet", func(e *Evidence) { e.Fresh = true; e.ErrorMark = true }, "new", ""},

		{"a mark with the registered session", marked, "clean mark", ""},
		{"a mark with the registered start id", func(e *Evidence) { e.Mark = &CleanMark{Session: 1, StartID: "s8"} }, "clean mark", ""},
		{"a mark of an older process", func(e *Evidence) { e.Mark = &CleanMark{Session: 7, StartID: "s7"} }, "", "of session 7, registered is session 8"},
		{"a mark of no session, and none registered", func(e *Evidence) {
			e.Mark, e.Registered = &CleanMark{}, epoch.Replica{}
		}, "", "clean mark"},

		{"a witness of this boot, pod, directory and start", witnessedBy, "witness", ""},
		{"a witness of an earlier machine start", func(e *Evidence) { witnessedBy(e); e.BootID = "boot2" }, "", "machine has restarted"},
		{"a witness where the boot id is not known", func(e *Evidence) { witnessedBy(e); e.BootID, e.Witness.BootID = "", "" }, "", "machine has restarted"},
		{"a witness of another pod", func(e *Evidence) { witnessedBy(e); e.PodUID = "pod2" }, "", "another pod"},
		{"a witness of another directory id", func(e *Evidence) { witnessedBy(e); e.Witness.DirectoryID = dirB }, "", "another directory id"},
		{"a witness of another start than the registered", func(e *Evidence) { witnessedBy(e); e.Registered.StartID = "s9" }, "", "another process start"},
		{"a witness of a start that never registered, and none is", func(e *Evidence) {
			witnessedBy(e)
			e.Witness.StartID, e.Registered.StartID = "", ""
		}, "", "another process start"},
		{"a log longer than witnessed: written, and not yet counted", func(e *Evidence) { witnessedBy(e); e.Log.LogEndOffset = 120 }, "witness", ""},
		{"no witness is possible", func(e *Evidence) { e.WitnessMissing = "not on tmpfs" }, "", "not on tmpfs"},

		{"every batch was synced", everyBatch, "every batch", ""},
		{"every batch was synced, by a start that was to follow", func(e *Evidence) { e.EveryBatch = &CleanMark{Session: 1, StartID: "s8"} }, "every batch", ""},
		{"every batch was synced, by an earlier process", func(e *Evidence) { e.EveryBatch = &CleanMark{Session: 7, StartID: "s7"} }, "", "every batch: of session 7, registered is session 8"},
		{"every batch was synced, after a machine restart", func(e *Evidence) { all(e); e.Mark = nil; e.BootID = "boot2" }, "every batch", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := bare()
			c.edit(&e)
			v := Judge(e)
			if v.Keep != (c.proof != "") || v.Proof != c.proof || !strings.Contains(v.Reason, c.about) {
				t.Errorf("got %+v, want proof %q, a reason about %q", v, c.proof, c.about)
			}
		})
	}
}

func TestJudgeDoubtVoidsEveryProof(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Evidence)
		about string // "" if it is no doubt
	}{
		{"none", func(*Evidence) {}, ""},
		{"an error mark", func(e *Evidence) { e.ErrorMark = true }, "has failed"},
		{"an error mark in the witness", func(e *Evidence) { e.Witness.Failed = true }, "has failed"},
		{"an error mark in the witness of another pod", func(e *Evidence) { e.Witness.Failed, e.PodUID = true, "pod2" }, "has failed"},
		{"an error mark under an id that was given up", func(e *Evidence) { e.Witness.Failed, e.Witness.DirectoryID = true, dirB }, ""},
		{"recovery cut more than a torn tail", func(e *Evidence) { e.Log.CutMoreThanTornTail = true }, "unfinished last write"},
		{"an epoch that contradicts the cache", func(e *Evidence) { e.Log.EpochContradiction = true }, "leader-epoch cache"},
		{"a log below its own high watermark", func(e *Evidence) { e.Log.CheckpointedHighWatermark = 101 }, "checkpointed high watermark 101"},
		{"a log without a checkpoint", func(e *Evidence) { e.Log.CheckpointedHighWatermark = epoch.NoOffset }, ""},
		{"a member below the partition's high watermark", func(e *Evidence) { e.KnownHighWatermark = 101 }, "partition's high watermark 101"},
		{"another replica below it", func(e *Evidence) { e.KnownHighWatermark, e.InSync = 101, false }, ""},
		{"progress cleared by an unclean election", func(e *Evidence) { e.KnownHighWatermark = epoch.NoOffset }, ""},
		{"the witnessed batch is not there", func(e *Evidence) { e.WitnessedBatch = false }, "leader epoch 3 that ends before offset 100 is not in the log"},
		{"a log shorter than witnessed", func(e *Evidence) { e.Witness.LogEndOffset = 101 }, "101 was witnessed"},
		{"a stale witness says nothing", func(e *Evidence) { e.WitnessedBatch, e.Registered.StartID, e.Witness.LogEndOffset = false, "s9", 500 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := bare()
			all(&e)
			c.edit(&e)
			v := Judge(e)
			if v.Keep != (c.about == "") || !strings.Contains(v.Reason, c.about) {
				t.Errorf("got %+v, want a reason about %q", v, c.about)
			}
		})
	}
}
