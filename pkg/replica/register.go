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
	next, err := s.process.Begin(base)
	if errors.Is(err, epoch.ErrNoChange) {
		return base, nil // an earlier attempt was written after all
	}
	if err != nil {
		return base, err
	}
	return s.cfg.Records.Update(ctx, base, next)
}

// compare refuses to register with a record that is older than one this volume has
// acted upon (rule 7), and marks it.
func (s *starting) compare(ctx context.Context, read epoch.Snapshot) error {
	mark, backwards := s.process.Compare(read)
	if mark == nil {
		return backwards
	}
	if _, err := s.cfg.Records.Update(ctx, read, *mark); err != nil && !errors.Is(err, epoch.ErrNoChange) {
		return fmt.Errorf("mark the record for recovery: %w", err)
	}
	return backwards
}
