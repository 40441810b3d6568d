package volume

import (
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Prove judges the directory promise against the record that was just read, and
// draws a new directory id, durably, if it is not kept. The error means that neither
// was possible: the disk failed, or the record is frozen for recovery, when no
// directory id may be drawn (DESIGN.md rule 7).
//
// After it, sync the whole log and its directories, and call Arm.
func (v *Volume) Prove(r epoch.Record, facts LogFacts) (Verdict, error) {
	e, err := v.evidence(r, facts)
	if err != nil {
		return Verdict{}, fmt.Errorf("prove the directory promise: %w", err)
	}
	verdict := Judge(e)
	if verdict.Keep {
		v.cfg.Log.Info("directory id kept", "directoryID", e.DirectoryID.String(), "proof", verdict.Proof)
		return verdict, nil
	}
	if r.Recovery != nil {
		return verdict, fmt.Errorf("the directory promise is not kept (%s), and no new directory id may be drawn while the partition waits for recovery", verdict.Reason)
	}
	id, err := v.NewDirectoryID()
	if err != nil {
		return verdict, fmt.Errorf("draw a new directory id: %w", err)
	}
	v.cfg.Log.Info("directory id replaced: this replica starts as a new follower", "old", e.DirectoryID.String(), "new", id.String(), "reason", verdict.Reason)
	return verdict, nil
}

func (v *Volume) evidence(r epoch.Record, facts LogFacts) (Evidence, error) {
	everyBatch, err := v.EveryBatch()
	if err != nil {
		return Evidence{}, err
	}
	e := Evidence{Fresh: v.fresh, DirectoryID: v.id.directoryID, ErrorMark: v.errorMark || v.failed.Load()}
	e.BootID, e.PodUID = v.cfg.BootID, v.cfg.PodUID
	e.Registered, _ = r.Replica(v.cfg.ReplicaID)
	e.InSync = r.InSync(v.cfg.ReplicaID)
	e.KnownHighWatermark = r.HighestKnown()
	e.Mark, e.Witness, e.WitnessMissing = v.mark, v.found, v.witnessMissing
	e.EveryBatch = everyBatch
	e.Log = facts
	e.WitnessedBatch, err = witnessed(v.found, facts)
	return e, err
}

// witnessed looks for the witnessed batch in the log. Below the log's start it
// counts as there: it was committed before it was deleted.
func witnessed(w *Witness, facts LogFacts) (bool, error) {
	if w == nil || w.LogEndOffset > facts.LogEndOffset {
		return false, nil
	}
	if w.Batch() == (Batch{}) || w.LogEndOffset <= facts.LogStartOffset {
		return true, nil
	}
	if facts.BatchEndingAt == nil {
		return false, errors.New("nobody can look for the witnessed batch")
	}
	b, ok, err := facts.BatchEndingAt(w.LogEndOffset - 1)
	if err != nil {
		return false, fmt.Errorf("look for the witnessed batch that ends at offset %d: %w", w.LogEndOffset-1, err)
	}
	return ok && b == w.Batch(), nil
}

// Arm makes this start's own proofs: the clean mark with the session of the record
// that Prove judged and this process's start id, then the witness at the log's end.
// Call it after a sync of the whole log, and before registering. It may be repeated
// until BeginWriting. That there can be no witness is no error.
func (v *Volume) Arm(session epoch.Session, startID epoch.StartID, at Position) error {
	if err := v.WriteCleanMark(session, startID); err != nil {
		return err
	}
	if v.witness == nil {
		return nil
	}
	w := Witness{BootID: v.cfg.BootID, PodUID: v.cfg.PodUID, DirectoryID: v.DirectoryID(), StartID: startID, Position: at}
	if err := v.witness.replace(w); err != nil {
		// The old witness proves nothing any more once this start id is registered.
		v.cfg.Log.Error(err, "there is no witness: a killed process loses its place in the ISR")
	}
	return nil
}

// Raise tells the witness of an append: call it after write(2) returned, and before
// the new log end offset counts anywhere.
func (v *Volume) Raise(p Position) {
	if v.witness != nil {
		v.witness.put(p)
	}
}

// Lower tells the witness of a truncation: call it before one that a leader ordered,
// with the position that remains, and never for what recovery cuts.
func (v *Volume) Lower(p Position) { v.Raise(p) }
