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
)

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
	first, second, named := strings.Cut(text, "/")
	e, err1 := strconv.ParseInt(first, 10, 32)
	id, err2 := int64(-1), error(nil)
	if named {
		id, err2 = strconv.ParseInt(second, 10, 32)
	}
	if err1 != nil || err2 != nil || e < 0 || named && id < 0 {
		return q, false, fmt.Errorf("annotation %s is %q; it must be the number in status.leaderEpoch, optionally with a replica id, as in \"7/2\"", AnnotationElectUnclean, text)
	}
	return UncleanElectionRequest{LeaderEpoch: int32(e), Replica: int32(id)}, true, nil
}
