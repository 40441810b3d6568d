package core

import "errors"

// What the replication protocol refuses. Package kafka maps each to Kafka's error
// code.
var (
	// ErrNotLeader is NOT_LEADER_OR_FOLLOWER: this replica does not lead (any more).
	ErrNotLeader = errors.New("this replica does not lead the partition")
	// ErrFencedLeaderEpoch is FENCED_LEADER_EPOCH: the request names an older epoch.
	ErrFencedLeaderEpoch = errors.New("the request's leader epoch is older than this replica's")
	// ErrUnknownLeaderEpoch is UNKNOWN_LEADER_EPOCH: the request names a newer epoch
	// or session than this replica knows; retry.
	ErrUnknownLeaderEpoch = errors.New("the request's leader epoch or session is newer than this replica's")
	// ErrNotEnoughReplicas is NOT_ENOUGH_REPLICAS: nothing was appended.
	ErrNotEnoughReplicas = errors.New("fewer live in-sync replicas than min ISR")
	// ErrNotEnoughReplicasAfterAppend is NOT_ENOUGH_REPLICAS_AFTER_APPEND: appended,
	// may yet become committed.
	ErrNotEnoughReplicasAfterAppend = errors.New("the ISR fell below min ISR after the append")
	// ErrOffsetOutOfRange is OFFSET_OUT_OF_RANGE: outside of [log start, log end].
	ErrOffsetOutOfRange = errors.New("the offset is outside of the log")
	// ErrOffsetNotAvailable is OFFSET_NOT_AVAILABLE: the high watermark has not
	// reached this epoch's start yet (KIP-207).
	ErrOffsetNotAvailable = errors.New("the new leader's high watermark has not caught up yet")
	// ErrTimedOut is REQUEST_TIMED_OUT: the record is appended, not yet committed.
	ErrTimedOut = errors.New("timed out waiting for the replicas")
	// ErrStorage is KAFKA_STORAGE_ERROR: the volume failed or is full.
	ErrStorage = errors.New("the replica's volume does not take or give data")
	// ErrStaleSession is answered to a replica fetch of a session that the record
	// has replaced (KIP-903).
	ErrStaleSession = errors.New("the fetching process has been replaced by a newer one")
	// ErrUnauthorized is answered to a replica fetch that cannot prove its sender.
	ErrUnauthorized = errors.New("the fetch does not come from an assigned replica")
)
