package epoch

import (
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// ErrNoChange says that the record already is as the change would make it.
var ErrNoChange = errors.New("the partition record already is as asked")

// Refusal says that a rule forbids a change. Nothing was changed.
type Refusal struct {
	// Reason is one word for conditions, events and metrics.
	Reason RefusalReason
	// Message is for a person: it names the replicas and numbers concerned.
	Message string
}

func (e *Refusal) Error() string { return e.Message }

// RefusalReason is a closed list.
type RefusalReason string

// The reasons of refusals.
const (
	RefusedRecovery      RefusalReason = "RecoveryPending"
	RefusedNoCandidate   RefusalReason = "NoElectableReplica"
	RefusedNotAssigned   RefusalReason = "NotAssigned"
	RefusedNotLeader     RefusalReason = "NotLeader"
	RefusedIneligible    RefusalReason = "IneligibleReplica"
	RefusedBelowMinISR   RefusalReason = "BelowMinISR"
	RefusedNotCaughtUp   RefusalReason = "NotCaughtUp"
	RefusedDirectoryUsed RefusalReason = "DirectoryInUse"
	RefusedInvalid       RefusalReason = "InvalidChange"
	RefusedSuperseded    RefusalReason = "Superseded"
)

func refuse(reason RefusalReason, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RefusedBecause reports whether err is a refusal for that reason.
func RefusedBecause(err error, reason RefusalReason) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// frozen refuses every change while the record waits for recovery (rule 7).
func (r Record) frozen() error {
	if r.Recovery == nil || guard.Off(guard.FrozenInRecovery) {
		return nil
	}
	return refuse(RefusedRecovery, "epochs went backwards: replica %d knew partition epoch %d and leader epoch %d, the record is at %d and %d; nothing changes until recovery is asked for",
		r.Recovery.ReportedBy, r.Recovery.PartitionEpoch, r.Recovery.LeaderEpoch, r.PartitionEpoch, r.LeaderEpoch)
}
