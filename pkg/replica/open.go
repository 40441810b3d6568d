package replica

import (
	"fmt"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// open locks the volume and recovers the log.
func (s *starting) open() error {
	cfg := s.cfg
	v, err := volume.Open(volume.Config{Dir: cfg.DataDir, WitnessDir: cfg.WitnessDir, Topic: cfg.Topic, TopicID: cfg.TopicID, ReplicaID: cfg.ID,
		BootID: cfg.BootID, PodUID: cfg.PodUID, Log: cfg.Log.WithName("volume")})
	if err != nil {
		return err
	}
	s.volume = v
	if s.known, err = v.LoadRecord(); err != nil {
		return err
	}
	s.front.enter("Recovering", "reading the log")
	s.log, s.recovery, err = log.Open(vfs.OS{}, cfg.DataDir, logConfig(cfg), v.CleanMark() != nil, cfg.Log.WithName("log"))
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if r := s.recovery; r.CutAt != epoch.NoOffset {
		cfg.Log.Info("log recovered", "cutAt", r.CutAt, "cutBytes", r.CutBytes, "segmentsRemoved", r.SegmentsRemoved, "onlyTornTail", r.OnlyTornTail)
	}
	return nil
}

func logConfig(cfg Config) log.Config {
	return log.Config{Topic: cfg.Topic, TopicID: cfg.TopicID, SegmentBytes: cfg.Settings.SegmentBytes, RetentionBytes: cfg.Settings.RetentionBytes,
		Retention: cfg.Settings.Retention, ProducerExpiry: producerExpiry}
}

// prove judges the promise of the directory id, once, with the record that the first
// registration is based on; package volume draws a new id if it does not hold. Whatever
// the verdict, the log is then synced and this process's own proofs are made, so that
// a crash before the first write does not lose the promise.
func (s *starting) prove(rec epoch.Record) error {
	mine, _ := rec.Replica(s.cfg.ID)
	if !s.proven {
		if _, err := s.volume.Prove(rec, s.facts()); err != nil {
			return err
		}
		if _, err := s.log.Flush(); err != nil {
			s.volume.MarkError()
			return fmt.Errorf("sync the log at the start: %w", err)
		}
		if err := s.flagEveryBatch(); err != nil {
			return err
		}
		s.proven = true
	}
	return s.volume.Arm(mine.Session, s.startID, s.position())
}

// flagEveryBatch brings the durable flag in line with the settings, now that the whole
// log is synced.
func (s *starting) flagEveryBatch() error {
	if s.cfg.Settings.FlushEveryBatch {
		return s.volume.SetEveryBatch()
	}
	return s.volume.ClearEveryBatch()
}

func (s *starting) position() volume.Position {
	p := volume.Position{LogEndOffset: s.log.EndOffset()}
	if id, ok := s.log.LastBatch(); ok {
		p.LeaderEpoch, p.CRC = id.Epoch, id.CRC
	}
	return p
}

// facts is what opening the log showed.
func (s *starting) facts() volume.LogFacts {
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

// close lets go of log and volume, without a mark.
func (s *starting) close() {
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
