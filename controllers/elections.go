package controllers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// maxSwaps bounds how often one reconcile repeats a compare-and-swap that lost to
// another writer, such as a heartbeat. After that the next reconcile looks anew.
const maxSwaps = 4

// errOvertaken says that what was judged is so no more: nothing is to be done.
var errOvertaken = errors.New("the partition record has moved on since it was judged")

// store is the record store of a partition.
func (r *Reconciler) store(rp *v1alpha1.ReplicatedPartition) (*lease.Store, error) {
	topic, err := topicID(rp)
	if err != nil {
		return nil, err
	}
	return lease.New(lease.Config{Client: r.Leases, Namespace: rp.Namespace, Name: rp.LeaseName(), TopicID: topic})
}

// swap changes the record by compare-and-swap on an uncached read, on which change
// has to judge anew. It is repeated after a conflict only: of every other error the
// outcome is unknown, and is found by the next reconcile.
func (r *Reconciler) swap(ctx context.Context, rp *v1alpha1.ReplicatedPartition, change func(epoch.Record) (epoch.Record, error)) (epoch.Record, error) {
	s, err := r.store(rp)
	if err != nil {
		return epoch.Record{}, err
	}
	for range maxSwaps {
		base, err := s.Get(ctx)
		if err != nil {
			return epoch.Record{}, err
		}
		r.noteHeartbeat(base)
		next, err := change(base.Record)
		if err != nil {
			return base.Record, err
		}
		written, err := s.Update(ctx, base, next)
		if err == nil {
			r.noteHeartbeat(written)
			return written.Record, nil
		}
		if !errors.Is(err, epoch.ErrConflict) {
			return epoch.Record{}, err
		}
	}
	return epoch.Record{}, fmt.Errorf("%w: %d attempts", epoch.ErrConflict, maxSwaps)
}

func (r *Reconciler) noteHeartbeat(s epoch.Snapshot) {
	if l, ok := s.Object.(*coordinationv1.Lease); ok {
		r.heartbeats.observe(l)
	}
}

// elect holds one election. The leadership that was judged must still be there, and
// what was seen of the leader must still be so, on uncached reads.
func (r *Reconciler) elect(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Elect) (epoch.Record, error) {
	return r.swap(ctx, rp, func(rec epoch.Record) (epoch.Record, error) {
		if err := r.stillDue(ctx, rp, rec, a); err != nil {
			return rec, err
		}
		change, err := newChangeID()
		if err != nil {
			return rec, err
		}
		now := time.Now()
		if a.Reason == epoch.ReasonLastKnownLeader {
			return epoch.ElectLastKnown(rec, a.Live, change, now)
		}
		if a.Reason == epoch.ReasonUnclean {
			return epoch.ElectUnclean(rec, epoch.UncleanRequest{LeaderEpoch: a.Judged.Epoch, Replica: a.Replica, Live: a.Live, Change: change, Now: now})
		}
		return epoch.Elect(rec, epoch.Election{
			Reason: a.Reason, Live: a.Live, LeaderEnded: a.Reason == epoch.ReasonProcessDied && rec.Leader != epoch.NoReplica,
			Change: change, Now: now,
		})
	})
}

// stillDue returns errOvertaken unless the election is due on the record as read.
func (r *Reconciler) stillDue(ctx context.Context, rp *v1alpha1.ReplicatedPartition, rec epoch.Record, a Elect) error {
	now := leadershipOf(rec)
	if now.Leader != a.Judged.Leader || now.Session != a.Judged.Session || now.Epoch != a.Judged.Epoch {
		return errOvertaken
	}
	switch a.Reason {
	case epoch.ReasonLeaseExpired:
		if !now.Renewed.Equal(a.Judged.Renewed) {
			return errOvertaken
		}
	case epoch.ReasonUnclean, epoch.ReasonLastKnownLeader:
		if !now.Renewed.Equal(a.Judged.Renewed) || now.At != a.Judged.At {
			return errOvertaken
		}
	case epoch.ReasonLeaderStuck:
		if !leaderAsks(rec) {
			return errOvertaken
		}
	case epoch.ReasonProcessDied, epoch.ReasonPodTerminating:
		if now.Leader == epoch.NoReplica {
			return nil
		}
		return r.leaderStillEnding(ctx, rp, rec)
	}
	return nil
}

// leaderStillEnding reads the leader's pod from the API: a cached pod may be long
// gone or replaced.
func (r *Reconciler) leaderStillEnding(ctx context.Context, rp *v1alpha1.ReplicatedPartition, rec epoch.Record) error {
	leader, ok := rec.Replica(rec.Leader)
	if !ok {
		return nil
	}
	pod := &corev1.Pod{}
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: rp.Namespace, Name: rp.ReplicaName(int32(rec.Leader))}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the leader's pod: %w", err)
	case pod.DeletionTimestamp != nil:
		return nil
	}
	if _, ended := processEnded(leader, pod); !ended {
		return errOvertaken
	}
	return nil
}

// askReports begins a round of reports, if the record as read still is the one that the
// user named. It is remembered before it is written: the outcome may stay unknown.
func (r *Reconciler) askReports(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a AskReports) error {
	round, err := newChangeID()
	if err != nil {
		return err
	}
	_, err = r.swap(ctx, rp, func(rec epoch.Record) (epoch.Record, error) {
		if rec.PartitionEpoch != a.PartitionEpoch {
			return rec, errOvertaken
		}
		r.rounds.begin(rp.UID, round)
		return epoch.AskReports(rec, round)
	})
	return err
}

// recover ends a recovery, if the record as read still is the one that the user named.
// Its round ends with the attempt, unless the record refused and so is as it was.
func (r *Reconciler) recover(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Recover) (epoch.Record, error) {
	round := r.rounds.current(rp.UID)
	rec, err := r.swap(ctx, rp, func(rec epoch.Record) (epoch.Record, error) {
		change, err := newChangeID()
		if err != nil {
			return rec, err
		}
		return epoch.Recover(rec, epoch.RecoveryRequest{PartitionEpoch: a.PartitionEpoch, Round: round, Change: change})
	})
	var refusal *epoch.Refusal
	if !errors.As(err, &refusal) {
		r.rounds.forget(rp.UID)
	}
	return rec, err
}

// switchover asks the leader to hand over, if it still is the one that was judged.
func (r *Reconciler) switchover(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Switchover) (epoch.Record, error) {
	return r.swapLeadership(ctx, rp, a.Judged, func(rec epoch.Record, change epoch.ChangeID) (epoch.Record, error) {
		return epoch.RequestSwitchover(rec, epoch.SwitchoverRequest{To: a.To, Reason: a.Reason, Change: change})
	})
}

// withdraw takes back what the leader was asked for.
func (r *Reconciler) withdraw(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Withdraw) error {
	_, err := r.swapLeadership(ctx, rp, a.Judged, func(rec epoch.Record, change epoch.ChangeID) (epoch.Record, error) {
		if rec.Switchover.Isolated() {
			return rec, epoch.ErrNoChange // that is the leader's own
		}
		return epoch.WithdrawSwitchover(rec, rec.Leader, rec.LeaderSession, change)
	})
	return err
}

// swapLeadership changes the record while the leadership that was judged is there.
func (r *Reconciler) swapLeadership(ctx context.Context, rp *v1alpha1.ReplicatedPartition, judged Leadership, do func(epoch.Record, epoch.ChangeID) (epoch.Record, error)) (epoch.Record, error) {
	return r.swap(ctx, rp, func(rec epoch.Record) (epoch.Record, error) {
		if now := leadershipOf(rec); now.Leader != judged.Leader || now.Session != judged.Session || now.Epoch != judged.Epoch {
			return rec, errOvertaken
		}
		change, err := newChangeID()
		if err != nil {
			return rec, err
		}
		return do(rec, change)
	})
}

// assign makes the one step of a reassignment that was judged.
func (r *Reconciler) assign(ctx context.Context, rp *v1alpha1.ReplicatedPartition, a Assign) (epoch.Record, error) {
	return r.swap(ctx, rp, func(rec epoch.Record) (epoch.Record, error) {
		if rec.PartitionEpoch != a.At {
			return rec, errOvertaken
		}
		change, err := newChangeID()
		if err != nil {
			return rec, err
		}
		return epoch.Assign(rec, epoch.Assignment{Target: a.Target, WantedMinISR: a.MinISR, Live: a.Live, Change: change, Now: time.Now()})
	})
}

// newChangeID draws the random name of a change.
func newChangeID() (epoch.ChangeID, error) {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("draw a change id: %w", err)
	}
	return epoch.ChangeID(hex.EncodeToString(b[:])), nil
}
