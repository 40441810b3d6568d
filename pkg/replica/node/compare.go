package node

import (
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Compare judges the record just read against what this volume knows (rule 7): the
// newest record that it has acted upon, and the newest epoch in its log. An error says
// that the record went backwards, or that it waits for recovery, and ends this attempt
// to register; mark, if not nil, is then what the owner has to swap read for: the
// report of what this volume knows, for which recovery waits.
func (s *Starting) Compare(read epoch.Snapshot) (mark *epoch.Record, err error) {
	rec, id := read.Record, s.cfg.Volume.ReplicaID
	backwards := s.known != nil && !rec.Sees(s.known.LastChange()) || rec.LeaderEpoch < s.log.EpochCache().Latest()
	if !backwards && rec.Recovery == nil {
		return nil, nil
	}
	known, err := s.remembered(rec)
	if err != nil {
		return nil, err
	}
	v := epoch.RecoveryOf(id, known, s.recovery.HighWatermark)
	v.LeaderEpoch = max(v.LeaderEpoch, s.log.EpochCache().Latest())
	marked, err := epoch.MarkRecovery(rec, v)
	switch {
	case err == nil:
		mark = &marked
	case !errors.Is(err, epoch.ErrNoChange):
		return nil, fmt.Errorf("mark the record for recovery: %w", err)
	}
	if !backwards {
		return mark, fmt.Errorf("the partition record waits for recovery at partition epoch %d; nobody registers until it was recovered", rec.PartitionEpoch)
	}
	return mark, fmt.Errorf("the partition record went backwards: this volume has acted on partition epoch %d and knows leader epoch %d, the record is at %d and %d; it is marked for recovery",
		v.PartitionEpoch, v.LeaderEpoch, rec.PartitionEpoch, rec.LeaderEpoch)
}

// remembered is what this volume says where a record is made of what replicas remember: a
// log that was imported to it was written under none, and speaks for itself.
func (s *Starting) remembered(rec epoch.Record) (*epoch.Record, error) {
	if s.known != nil || rec.Recovery == nil || !rec.Recovery.Remade {
		return s.known, nil
	}
	return s.volume.ImportedRecord(s.log.EndOffset())
}

// leaveHistory cuts from the log what belongs to a history that a recovery has set
// aside (epoch.Record.SetAside), before this process registers, and so before it
// forgets what it knew. The promise goes first, and with it every mark of it, whatever
// it could be proven by: what was acknowledged in the history that won need not be here.
// All of it may be repeated.
func (s *Starting) leaveHistory(rec epoch.Record) error {
	switch {
	case rec.Recovery != nil:
		return nil
	case s.known == nil:
		return s.leaveImport(rec)
	}
	if rec.RecoveredSince(*s.known) && !guard.Off(guard.RecoveryForgetsCommitted) {
		// What a leader on the record that was put back has told to be committed is not.
		if err := s.log.Checkpoint(s.log.StartOffset()); err != nil {
			return fmt.Errorf("forget the high watermark of before the recovery: %w", err)
		}
	}
	shared, aside := rec.SetAside(s.cfg.Volume.ReplicaID, *s.known)
	if !aside {
		return nil
	}
	if err := s.distrust(); err != nil {
		return err
	}
	id, err := s.volume.NewDirectoryID()
	if err != nil {
		return fmt.Errorf("draw a new directory id: %w", err)
	}
	s.cfg.Log.Info("a recovery of the partition record has set aside the history that this volume followed: this replica starts as a new follower",
		"directoryID", id.String(), "lastSharedLeaderEpoch", shared, "knownPartitionEpoch", s.known.PartitionEpoch)
	to, ok := s.log.EpochCache().StartAfter(shared)
	if !ok {
		return nil
	}
	s.cfg.Log.Info("log cut to where the histories part", "to", to, "logEndOffset", s.log.EndOffset())
	if err := s.log.TruncateTo(to); err != nil {
		return fmt.Errorf("cut the log to offset %d, where the history of the recovered record parts: %w", to, err)
	}
	return nil
}

// leaveImport empties a log that was imported and is not the one that the record speaks of.
// The directory id goes last: with it goes the word that the log was imported.
func (s *Starting) leaveImport(rec epoch.Record) error {
	stranger, err := s.volume.Stranger(rec)
	if err != nil || !stranger {
		return err
	}
	if err := s.volume.BeginWriting(); err != nil {
		return err
	}
	end := s.log.EndOffset()
	if err := s.log.TruncateFullyAndStartAt(0); err != nil {
		return fmt.Errorf("empty an imported log that is not the one of the partition record: %w", err)
	}
	id, err := s.volume.NewDirectoryID()
	if err != nil {
		return fmt.Errorf("draw a new directory id: %w", err)
	}
	s.cfg.Log.Info("the imported log is not the one of the partition record: this replica starts as a new follower, and copies that one", "directoryID", id.String(), "importedLogEndOffset", end)
	return nil
}
