package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// registerRetry is the pause before a registration is tried again.
const registerRetry = 200 * time.Millisecond

// register enters this process into the record, and returns the record with its
// session. It goes on trying until ctx ends; a refusal that a wait can lift, such as
// a missing assignment, is waited for.
func (s *starting) register(ctx context.Context) (epoch.Snapshot, error) {
	var told string
	for {
		snap, err := s.tryRegister(ctx)
		if err == nil {
			return snap, nil
		}
		if errors.Is(err, epoch.ErrForeign) || ctx.Err() != nil {
			return snap, err
		}
		s.front.enter("Registering", err.Error())
		if told != err.Error() && !errors.Is(err, epoch.ErrConflict) {
			told = err.Error()
			s.cfg.Log.Info("not registered yet; trying again", "reason", told)
		}
		select {
		case <-ctx.Done():
			return snap, ctx.Err()
		case <-time.After(registerRetry):
		}
	}
}

// tryRegister makes one attempt: record, own pod, change, swap. The pod is read after
// the record, so that a process whose pod was replaced before cannot win over the
// process of the new pod.
func (s *starting) tryRegister(ctx context.Context) (epoch.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	base, err := s.cfg.Records.Get(ctx)
	if err != nil {
		return base, err
	}
	if err := s.compare(ctx, base); err != nil {
		return base, err
	}
	if s.cfg.CheckPod != nil {
		if err := s.cfg.CheckPod(ctx); err != nil {
			return base, fmt.Errorf("check own pod: %w", err)
		}
	}
	if err := s.prove(base.Record); err != nil {
		return base, err
	}
	next, err := epoch.Register(base.Record, epoch.Registration{
		ID: s.cfg.ID, DirectoryID: s.volume.DirectoryID(), VolumeID: s.volume.VolumeID(), StartID: s.startID, Address: s.cfg.Address,
		PodUID: s.cfg.PodUID, RestartCount: s.cfg.RestartCount, LastEpoch: s.log.EpochCache().Latest(), LogEndOffset: s.log.EndOffset(),
		Change: newChangeID(), Now: time.Now()})
	if errors.Is(err, epoch.ErrNoChange) {
		return base, nil // an earlier attempt was written after all
	}
	if err != nil {
		return base, err
	}
	next.Heartbeat.Duration = s.cfg.Settings.LeaseDuration
	return s.cfg.Records.Update(ctx, base, next)
}

// compare refuses to register with a record that is older than one this volume has
// acted upon (rule 7), and marks it.
func (s *starting) compare(ctx context.Context, read epoch.Snapshot) error {
	known := s.known
	rec := read.Record
	if known == nil || rec.Sees(known.LastChange()) {
		return nil
	}
	marked, err := epoch.MarkRecovery(rec, epoch.Recovery{LeaderEpoch: known.LeaderEpoch, PartitionEpoch: known.PartitionEpoch, ReportedBy: s.cfg.ID})
	if err == nil {
		_, err = s.cfg.Records.Update(ctx, read, marked)
	}
	if err != nil && !errors.Is(err, epoch.ErrNoChange) {
		return fmt.Errorf("mark the record for recovery: %w", err)
	}
	return fmt.Errorf("the partition record went backwards: this volume has acted on partition epoch %d and leader epoch %d, the record is at %d and %d; it is marked for recovery",
		known.PartitionEpoch, known.LeaderEpoch, rec.PartitionEpoch, rec.LeaderEpoch)
}
