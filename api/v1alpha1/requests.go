package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// Requests that a user makes by an annotation on a ReplicatedPartition. Each names the
// state that the user has seen, so that one which is left there never applies again.
const (
	// AnnotationRecover asks to go on after the partition record went backwards or its
	// Lease was lost (condition reason RecoveryRequired or RecordMissing). The value is
	// status.partitionEpoch.
	AnnotationRecover = "tidemark.io/recover"
	// AnnotationElectUnclean asks for a leader from outside of the ISR while no member
	// of it can lead; committed records may be lost. The value is status.leaderEpoch,
	// optionally followed by "/" and the id of the replica to elect, as in "7/2";
	// without it the replica with the longest log is elected.
	AnnotationElectUnclean = "tidemark.io/elect-unclean"
	// AnnotationPromote asks the leader to hand over to another in-sync replica. The value
	// is status.leaderEpoch, "/" and the id of the replica that is to lead, as in "7/2".
	AnnotationPromote = "tidemark.io/promote"
	// AnnotationAdopt says what becomes of volumes that an earlier ReplicatedPartition of
	// this name has left (condition reason Quarantined). The value is the topic id of the
	// log to go on with, or AdoptNone.
	AnnotationAdopt = "tidemark.io/adopt"
	// AnnotationPaused keeps the operator from changing any object of the partition while
	// it is "true"; leaders are still elected.
	AnnotationPaused = "tidemark.io/paused"
)

// AdoptNone as the value of AnnotationAdopt begins an empty log. What is on the volumes is
// set aside there, under quarantine/.
const AdoptNone = "none"

// PromoteRequest is what AnnotationPromote says.
type PromoteRequest struct {
	// LeaderEpoch is the epoch that the switchover is to end.
	LeaderEpoch int32
	// Replica is who is to lead.
	Replica int32
}

// UncleanElectionRequest is what AnnotationElectUnclean says.
type UncleanElectionRequest struct {
	// LeaderEpoch is the epoch that the election is to end.
	LeaderEpoch int32
	// Replica is the replica to elect, -1 for the one with the longest log.
	Replica int32
}

// RecoverRequest is the partition epoch that AnnotationRecover names; ok is false
// without one. The error tells how to write the annotation.
func (p *ReplicatedPartition) RecoverRequest() (partitionEpoch int64, ok bool, err error) {
	text, ok := p.Annotations[AnnotationRecover]
	if !ok {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, false, fmt.Errorf("annotation %s is %q; it must be the number in status.partitionEpoch", AnnotationRecover, text)
	}
	return n, true, nil
}

// UncleanElectionRequest is what AnnotationElectUnclean says; ok is false without one.
// The error tells how to write the annotation.
func (p *ReplicatedPartition) UncleanElectionRequest() (q UncleanElectionRequest, ok bool, err error) {
	text, ok := p.Annotations[AnnotationElectUnclean]
	if !ok {
		return q, false, nil
	}
	e, id, err := epochAndReplica(text)
	if err != nil {
		return q, false, fmt.Errorf("annotation %s is %q; it must be the number in status.leaderEpoch, optionally with a replica id, as in \"7/2\"", AnnotationElectUnclean, text)
	}
	return UncleanElectionRequest{LeaderEpoch: e, Replica: id}, true, nil
}

// PromoteRequest is what AnnotationPromote says; ok is false without one. The error tells
// how to write the annotation.
func (p *ReplicatedPartition) PromoteRequest() (q PromoteRequest, ok bool, err error) {
	text, ok := p.Annotations[AnnotationPromote]
	if !ok {
		return q, false, nil
	}
	e, id, err := epochAndReplica(text)
	if err != nil || id < 0 {
		return q, false, fmt.Errorf("annotation %s is %q; it must be the number in status.leaderEpoch and the id of the replica that is to lead, as in \"7/2\"", AnnotationPromote, text)
	}
	return PromoteRequest{LeaderEpoch: e, Replica: id}, true, nil
}

// epochAndReplica reads "7/2", or "7" with replica -1.
func epochAndReplica(text string) (leaderEpoch, replica int32, err error) {
	first, second, named := strings.Cut(text, "/")
	e, err := strconv.ParseUint(first, 10, 31)
	if err != nil || !named {
		return int32(e), -1, err
	}
	id, err := strconv.ParseUint(second, 10, 31)
	return int32(e), int32(id), err
}

// Paused is what AnnotationPaused says. The error tells how to write the annotation; the
// partition is paused then, too: whoever wrote it wanted something of the kind.
func (p *ReplicatedPartition) Paused() (bool, error) {
	switch text, ok := p.Annotations[AnnotationPaused]; {
	case !ok, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return true, fmt.Errorf("annotation %s is %q; it must be \"true\", or be removed to go on", AnnotationPaused, text)
	}
}
