package volume

import (
	"fmt"
	"strings"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// LogFacts is what the log says after its recovery.
type LogFacts struct {
	LogStartOffset epoch.Offset
	LogEndOffset   epoch.Offset
	// CheckpointedHighWatermark is as the checkpoint file has it, not cut down to the
	// log's end; NoOffset if there is none.
	CheckpointedHighWatermark epoch.Offset
	// CutMoreThanTornTail: recovery cut something other than an unfinished last write.
	CutMoreThanTornTail bool
	// EpochContradiction: a batch's epoch does not fit the epoch cache as it was found.
	EpochContradiction bool
	// BatchEndingAt finds the batch whose last record has that offset.
	BatchEndingAt func(last epoch.Offset) (Batch, bool, error)
}

// Batch tells one batch from any other that could stand in its place.
type Batch struct {
	LeaderEpoch epoch.LeaderEpoch
	CRC         uint32
}

// CleanMark is what an orderly stop leaves, and in the same form the flag of
// EveryBatch: it names the start that speaks, and the session that it began from or has.
type CleanMark struct {
	Session epoch.Session
	StartID epoch.StartID
}

// of reports that the mark was made by the registered process, or by a start that was
// to follow it and whose registration did not land.
func (m *CleanMark) of(p epoch.Replica) bool {
	return m.Session != epoch.NoSession && m.Session == p.Session || m.StartID != "" && m.StartID == p.StartID
}

// Evidence is all that a start can put forward for its directory id.
type Evidence struct {
	// Fresh: the id was drawn by this very start, so nothing was promised under it.
	Fresh bool
	// DirectoryID is the volume's, BootID and PodUID this process's own.
	DirectoryID epoch.UUID
	BootID      string
	PodUID      string
	// Registered is this replica in the record, the zero value if it is not there.
	Registered epoch.Replica
	// InSync: the record lists this replica in the ISR.
	InSync bool
	// KnownHighWatermark is the highest that the record tells of; NoOffset if it tells none.
	KnownHighWatermark epoch.Offset
	// Mark is the clean mark, nil if there is none.
	Mark *CleanMark
	// Witness is the last process's witness, nil if there is none.
	Witness *Witness
	// WitnessMissing says why there is none.
	WitnessMissing string
	// WitnessedBatch: the batch that the witness names is in the log, or below its
	// start.
	WitnessedBatch bool
	// EveryBatch is the flag that everything acknowledged was synced first, with the
	// start that set it; nil if it is not set.
	EveryBatch *CleanMark
	// ErrorMark: a write or sync failed, in this process or in one before it.
	ErrorMark bool
	Log       LogFacts
}

// Verdict says whether the directory id may be kept.
type Verdict struct {
	Keep bool
	// Proof names what proves it: "new", "clean mark", "witness" or "every batch".
	Proof string
	// Reason says why it may not be kept.
	Reason string
}

// Judge decides whether the directory id's promise is kept. Whatever the proof,
// doubt about the log voids it.
func Judge(e Evidence) Verdict {
	if e.Fresh {
		return Verdict{Keep: true, Proof: "new"}
	}
	for _, doubt := range doubts {
		if reason := doubt(e); reason != "" {
			return Verdict{Reason: reason}
		}
	}
	var missing []string
	for _, p := range proofs {
		reason := p.fails(e)
		if reason == "" {
			return Verdict{Keep: true, Proof: p.name}
		}
		missing = append(missing, p.name+": "+reason)
	}
	return Verdict{Reason: "no proof (" + strings.Join(missing, "; ") + ")"}
}

// doubts void every proof. Each returns why, or "".
var doubts = []func(Evidence) string{
	doubtCut, doubtEpochs, doubtErrorMark, doubtOwnHighWatermark, doubtKnownHighWatermark, doubtWitnessedBatch,
}

// doubtErrorMark: after a failed sync the page cache no longer says what the disk
// holds, so no proof can be had from either.
func doubtErrorMark(e Evidence) string {
	if guard.Off(guard.ErrorVoidsPromise) {
		return ""
	}
	w := e.Witness
	if e.ErrorMark || w != nil && w.Failed && w.DirectoryID == e.DirectoryID {
		return "a write or sync of the volume has failed, or damage of its log was found before"
	}
	return ""
}

func doubtCut(e Evidence) string {
	if e.Log.CutMoreThanTornTail && !guard.Off(guard.CutVoidsPromise) {
		return "recovery cut more than an unfinished last write"
	}
	return ""
}

func doubtEpochs(e Evidence) string {
	if e.Log.EpochContradiction {
		return "a batch contradicts the leader-epoch cache"
	}
	return ""
}

func doubtOwnHighWatermark(e Evidence) string {
	if hw := e.Log.CheckpointedHighWatermark; e.Log.LogEndOffset < hw && !guard.Off(guard.OwnHighWatermarkHeld) {
		return fmt.Sprintf("the log ends at %d, below its own checkpointed high watermark %d", e.Log.LogEndOffset, hw)
	}
	return ""
}

// doubtKnownHighWatermark holds for members of the ISR only: another replica may be behind.
func doubtKnownHighWatermark(e Evidence) string {
	if hw := e.KnownHighWatermark; e.InSync && e.Log.LogEndOffset < hw {
		return fmt.Sprintf("the log ends at %d, below the partition's high watermark %d, and this replica was in sync", e.Log.LogEndOffset, hw)
	}
	return ""
}

// doubtWitnessedBatch: the witness of this machine start and pod says what the page
// cache held. If that is gone, no other proof can stand.
func doubtWitnessedBatch(e Evidence) string {
	if witnessFails(e) != "" || guard.Off(guard.WitnessedBatchThere) {
		return ""
	}
	w := e.Witness
	if e.Log.LogEndOffset < w.LogEndOffset {
		return fmt.Sprintf("the log ends at %d, and %d was witnessed", e.Log.LogEndOffset, w.LogEndOffset)
	}
	if !e.WitnessedBatch {
		return fmt.Sprintf("the witnessed batch of leader epoch %d that ends before offset %d is not in the log", w.LeaderEpoch, w.LogEndOffset)
	}
	return ""
}

// proofs are tried in this order. fails returns why a proof does not hold, or "".
var proofs = []struct {
	name  string
	fails func(Evidence) string
}{
	{"clean mark", markFails},
	{"witness", witnessFails},
	{"every batch", everyBatchFails},
}

// markFails: session or start id are those of the record's registration of this
// replica. One of them is enough, since a start rewrites the mark with the session
// that it read and its own start id, before it is known whether its registration
// lands (KIP-966).
func markFails(e Evidence) string {
	switch m := e.Mark; {
	case m == nil:
		return "none"
	case m.of(e.Registered), guard.Off(guard.CleanMarkOfSession):
		return ""
	default:
		return fmt.Sprintf("of session %d, registered is session %d", m.Session, e.Registered.Session)
	}
}

func witnessFails(e Evidence) string {
	w := e.Witness
	switch {
	case w == nil && e.WitnessMissing != "":
		return e.WitnessMissing
	case w == nil:
		return "none"
	case (w.BootID != e.BootID || e.BootID == "") && !guard.Off(guard.WitnessOfMachine):
		return "the machine has restarted"
	case w.PodUID != e.PodUID && !guard.Off(guard.WitnessOfMachine):
		return "of another pod"
	case w.DirectoryID != e.DirectoryID:
		return "of another directory id"
	case (w.StartID != e.Registered.StartID || w.StartID == "") && !guard.Off(guard.WitnessOfStart):
		return "of another process start than the registered one"
	default:
		return ""
	}
}

func everyBatchFails(e Evidence) string {
	switch m := e.EveryBatch; {
	case m == nil:
		return "not in effect"
	case m.of(e.Registered) || guard.Off(guard.EveryBatchOfStart):
		return ""
	default:
		return fmt.Sprintf("of session %d, registered is session %d", m.Session, e.Registered.Session)
	}
}
