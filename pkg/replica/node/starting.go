package node

import (
	"fmt"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// Starting is a process that has its volume, and no place in the record yet.
type Starting struct {
	cfg      Config
	volume   *volume.Volume
	log      *log.Log
	recovery log.Recovery
	known    *epoch.Record // the newest record that the volume has acted upon
	proven   bool          // the directory id's promise has been judged
	// rewritten says that what a failed sync may have dropped was written again.
	rewritten bool
}

// Open locks the volume, recovers the log and reads what the volume last knew. On an
// error nothing stays open.
func Open(cfg Config) (*Starting, error) {
	s := &Starting{cfg: cfg}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Starting) open() error {
	cfg := s.cfg
	v, err := volume.Open(cfg.Volume)
	if err != nil {
		return err
	}
	s.volume = v
	if s.known, err = v.LoadRecord(); err != nil {
		return err
	}
	logConfig := cfg.log()
	logConfig.Damaged, logConfig.Checking, logConfig.CheckAll = v.MarkDamage, cfg.Checking, v.Suspect()
	s.log, s.recovery, err = log.Open(v.FS(), cfg.Volume.Dir, logConfig, v.CleanMark() != nil, cfg.Log.WithName("log"))
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if r := s.recovery; r.CutAt != epoch.NoOffset {
		cfg.Log.Info("log recovered", "cutAt", r.CutAt, "cutBytes", r.CutBytes, "segmentsRemoved", r.SegmentsRemoved, "onlyTornTail", r.OnlyTornTail)
	}
	return nil
}

// Begin makes the registration: it judges the promise of the directory id, makes this
// process's own proofs, and returns the record that the owner has to swap read for.
// Call it after Compare, and after the process's own pod was seen, later than read,
// to be the one in the cluster: a process whose pod was replaced before must not win
// over the process of the new pod. It may be called again with a newer read,
// whatever became of the swap. ErrNoChange says that an earlier swap was written after
// all: Serve with read.
func (s *Starting) Begin(read epoch.Snapshot) (next epoch.Record, err error) {
	if err := s.leaveHistory(read.Record); err != nil {
		return next, err
	}
	if err := s.prove(read.Record); err != nil {
		return next, err
	}
	v := s.cfg.Volume
	next, err = epoch.Register(read.Record, epoch.Registration{
		ID: v.ReplicaID, DirectoryID: s.volume.DirectoryID(), VolumeID: s.volume.VolumeID(), StartID: s.cfg.StartID, Address: s.cfg.Address,
		PodUID: v.PodUID, RestartCount: s.cfg.RestartCount, LastEpoch: s.log.EpochCache().Latest(), LogEndOffset: s.log.EndOffset(),
		Change: s.cfg.NewChangeID(), Now: s.cfg.Wall()})
	if err != nil {
		return next, err
	}
	next.Heartbeat.Duration = s.cfg.Settings.LeaseDuration
	return next, nil
}

// prove judges the promise of the directory id, once, with the record that the first
// registration is based on; package volume draws a new id if it does not hold. Whatever
// the verdict, the log is then synced and this process's own proofs are made, so that
// a crash before the first write does not lose the promise.
func (s *Starting) prove(rec epoch.Record) error {
	mine, _ := rec.Replica(s.cfg.Volume.ReplicaID)
	if !s.proven {
		if err := s.distrust(); err != nil {
			return err
		}
		if _, err := s.volume.Prove(rec, s.facts()); err != nil {
			return err
		}
		if _, err := s.log.Flush(); err != nil {
			s.volume.MarkError()
			return fmt.Errorf("sync the log at the start: %w", err)
		}
		if err := s.forgetCommitted(); err != nil {
			return err
		}
		s.proven = true
	}
	if err := s.flagEveryBatch(mine.Session); err != nil {
		return err
	}
	return s.volume.Arm(mine.Session, s.cfg.StartID, atEnd(s.log))
}

// forgetCommitted lowers a checkpointed high watermark that lies behind the log's end: it
// has done its work once the promise is given up, and left there it would count as
// committed what is fetched in the place of what was lost.
func (s *Starting) forgetCommitted() error {
	if s.recovery.HighWatermark <= s.log.EndOffset() || guard.Off(guard.LowerHighWatermark) {
		return nil
	}
	if err := s.log.Checkpoint(s.log.CheckpointedHighWatermark()); err != nil {
		return fmt.Errorf("lower the high watermark to the end of a log that has lost records: %w", err)
	}
	return nil
}

// distrust writes the log's end anew where a sync may have failed before: the page
// cache may hold what the disk does not, while a sync would say that it does
// ("fsyncgate"). It must be done before a new directory id makes the failure forgotten.
// Where the process before left neither mark nor word nothing says that none has failed:
// an error mark may not have reached the disk, and the witness goes with the pod. With
// EveryBatch its witness is not enough: it may have been killed just before it marked it.
func (s *Starting) distrust() error {
	doubtful := s.volume.Suspect() || !s.recovery.Clean && (s.cfg.Settings.FlushEveryBatch || !s.volume.Vouched())
	if s.rewritten || !doubtful || s.log.FlushedOffset() >= s.log.EndOffset() || guard.Off(guard.RewriteAfterError) {
		return nil
	}
	s.cfg.Log.Info("a sync of this log may have failed: writing its end anew", "failed", s.volume.Suspect(), "from", s.log.FlushedOffset(), "logEndOffset", s.log.EndOffset())
	err := s.log.Rewrite()
	if err == nil {
		_, err = s.log.Flush()
	}
	if err != nil {
		s.volume.MarkError()
		return fmt.Errorf("write the log anew after a failed sync: %w", err)
	}
	s.rewritten = true
	return nil
}

// flagEveryBatch brings the durable flag in line with the settings, now that the whole
// log is synced.
func (s *Starting) flagEveryBatch(session epoch.Session) error {
	if s.cfg.Settings.FlushEveryBatch {
		return s.volume.SetEveryBatch(session, s.cfg.StartID)
	}
	return s.volume.ClearEveryBatch()
}

// atEnd is where the log ends, for the witness.
func atEnd(l *log.Log) volume.Position {
	p := volume.Position{LogEndOffset: l.EndOffset()}
	if id, ok := l.LastBatch(); ok {
		p.LeaderEpoch, p.CRC = id.Epoch, id.CRC
	}
	return p
}

// facts is what opening the log showed.
func (s *Starting) facts() volume.LogFacts {
	r := s.recovery
	return volume.LogFacts{
		LogStartOffset: s.log.StartOffset(), LogEndOffset: s.log.EndOffset(), CheckpointedHighWatermark: r.HighWatermark,
		CutMoreThanTornTail: r.CutAt != epoch.NoOffset && !r.OnlyTornTail, EpochContradiction: r.EpochContradiction,
		BatchEndingAt: func(last epoch.Offset) (volume.Batch, bool, error) {
			id, ok, err := s.log.BatchEndingAt(last)
			return volume.Batch{LeaderEpoch: id.Epoch, CRC: id.CRC}, ok, err
		},
	}
}

// Identity is who this process is by the record that its registration wrote.
func (s *Starting) Identity(registered epoch.Snapshot) core.Identity {
	mine, _ := registered.Record.Replica(s.cfg.Volume.ReplicaID)
	return core.Identity{ID: s.cfg.Volume.ReplicaID, Session: mine.Session, StartID: s.cfg.StartID, DirectoryID: mine.DirectoryID}
}

// Recovery is what opening the log found.
func (s *Starting) Recovery() log.Recovery { return s.recovery }

// Log is the open log. Only to look at.
func (s *Starting) Log() *log.Log { return s.log }

// Volume is the open volume. Only to look at.
func (s *Starting) Volume() *volume.Volume { return s.volume }

// Close lets go of log and volume, without a mark. It may be called again.
func (s *Starting) Close() {
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			s.cfg.Log.Error(err, "close the log")
		}
		s.log = nil
	}
	if s.volume != nil {
		if err := s.volume.Close(); err != nil {
			s.cfg.Log.Error(err, "close the volume")
		}
		s.volume = nil
	}
}
