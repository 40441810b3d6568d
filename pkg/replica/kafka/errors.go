package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// Code is an error code of Kafka's protocol.
type Code int16

// The codes that this server answers with. The numbers are Kafka's.
const (
	CodeUnknownServerError           Code = -1
	CodeNone                         Code = 0
	CodeOffsetOutOfRange             Code = 1
	CodeCorruptMessage               Code = 2
	CodeUnknownTopicOrPartition      Code = 3
	CodeLeaderNotAvailable           Code = 5
	CodeNotLeaderOrFollower          Code = 6
	CodeRequestTimedOut              Code = 7
	CodeMessageTooLarge              Code = 10
	CodeCoordinatorLoadInProgress    Code = 14
	CodeCoordinatorNotAvailable      Code = 15
	CodeRecordListTooLarge           Code = 18
	CodeNotEnoughReplicas            Code = 19
	CodeNotEnoughReplicasAfterAppend Code = 20
	CodeInvalidRequiredAcks          Code = 21
	CodeClusterAuthorizationFailed   Code = 31
	CodeInvalidTimestamp             Code = 32
	CodeUnsupportedVersion           Code = 35
	CodeTopicAlreadyExists           Code = 36
	CodeInvalidRequest               Code = 42
	CodePolicyViolation              Code = 44
	CodeOutOfOrderSequence           Code = 45
	CodeInvalidProducerEpoch         Code = 47
	CodeKafkaStorageError            Code = 56
	CodeFetchSessionIDNotFound       Code = 70
	CodeListenerNotFound             Code = 72
	CodeFencedLeaderEpoch            Code = 74
	CodeUnknownLeaderEpoch           Code = 75
	CodeUnsupportedCompression       Code = 76
	CodeStaleBrokerEpoch             Code = 77
	CodeOffsetNotAvailable           Code = 78
	CodeInvalidRecord                Code = 87
	CodeUnknownTopicID               Code = 100
)

// wireErrors is the one table between errors and codes. The first row of a code
// is the error that ErrorOf gives back.
var wireErrors = []struct {
	code Code
	name string
	err  error
}{
	{CodeUnknownServerError, "UNKNOWN_SERVER_ERROR", nil},
	{CodeOffsetOutOfRange, "OFFSET_OUT_OF_RANGE", core.ErrOffsetOutOfRange},
	{CodeOffsetOutOfRange, "OFFSET_OUT_OF_RANGE", log.ErrOffsetOutOfRange},
	{CodeCorruptMessage, "CORRUPT_MESSAGE", batch.ErrCorruptMessage},
	{CodeUnknownTopicOrPartition, "UNKNOWN_TOPIC_OR_PARTITION", nil},
	{CodeLeaderNotAvailable, "LEADER_NOT_AVAILABLE", nil},
	{CodeNotLeaderOrFollower, "NOT_LEADER_OR_FOLLOWER", core.ErrNotLeader},
	{CodeRequestTimedOut, "REQUEST_TIMED_OUT", core.ErrTimedOut},
	{CodeRequestTimedOut, "REQUEST_TIMED_OUT", context.DeadlineExceeded},
	{CodeRequestTimedOut, "REQUEST_TIMED_OUT", context.Canceled}, // the server stops; clients retry
	{CodeMessageTooLarge, "MESSAGE_TOO_LARGE", batch.ErrMessageTooLarge},
	{CodeCoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS", nil},
	{CodeCoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", nil},
	{CodeRecordListTooLarge, "RECORD_LIST_TOO_LARGE", log.ErrBatchTooLarge},
	{CodeNotEnoughReplicas, "NOT_ENOUGH_REPLICAS", core.ErrNotEnoughReplicas},
	{CodeNotEnoughReplicasAfterAppend, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", core.ErrNotEnoughReplicasAfterAppend},
	{CodeInvalidRequiredAcks, "INVALID_REQUIRED_ACKS", nil},
	{CodeClusterAuthorizationFailed, "CLUSTER_AUTHORIZATION_FAILED", core.ErrUnauthorized},
	{CodeInvalidTimestamp, "INVALID_TIMESTAMP", batch.ErrInvalidTimestamp},
	{CodeUnsupportedVersion, "UNSUPPORTED_VERSION", nil},
	{CodeTopicAlreadyExists, "TOPIC_ALREADY_EXISTS", nil},
	{CodeInvalidRequest, "INVALID_REQUEST", nil},
	{CodePolicyViolation, "POLICY_VIOLATION", nil},
	{CodeOutOfOrderSequence, "OUT_OF_ORDER_SEQUENCE_NUMBER", log.ErrOutOfOrderSequence},
	{CodeInvalidProducerEpoch, "INVALID_PRODUCER_EPOCH", log.ErrInvalidProducerEpoch},
	{CodeKafkaStorageError, "KAFKA_STORAGE_ERROR", core.ErrStorage},
	{CodeKafkaStorageError, "KAFKA_STORAGE_ERROR", log.ErrNoSpace},
	{CodeKafkaStorageError, "KAFKA_STORAGE_ERROR", log.ErrFailed},
	{CodeKafkaStorageError, "KAFKA_STORAGE_ERROR", log.ErrDamaged},
	{CodeKafkaStorageError, "KAFKA_STORAGE_ERROR", log.ErrClosed},
	{CodeFetchSessionIDNotFound, "FETCH_SESSION_ID_NOT_FOUND", nil},
	{CodeListenerNotFound, "LISTENER_NOT_FOUND", nil},
	{CodeFencedLeaderEpoch, "FENCED_LEADER_EPOCH", core.ErrFencedLeaderEpoch},
	{CodeUnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH", core.ErrUnknownLeaderEpoch},
	{CodeUnsupportedCompression, "UNSUPPORTED_COMPRESSION_TYPE", batch.ErrUnsupportedCompression},
	{CodeStaleBrokerEpoch, "STALE_BROKER_EPOCH", core.ErrStaleSession},
	{CodeOffsetNotAvailable, "OFFSET_NOT_AVAILABLE", core.ErrOffsetNotAvailable},
	{CodeInvalidRecord, "INVALID_RECORD", batch.ErrInvalidRecord},
	{CodeUnknownTopicID, "UNKNOWN_TOPIC_ID", nil},
}

// String gives Kafka's name of the code.
func (c Code) String() string {
	if c == CodeNone {
		return "NONE"
	}
	for _, w := range wireErrors {
		if w.code == c {
			return w.name
		}
	}
	return fmt.Sprintf("CODE_%d", int16(c))
}

// CodeOf maps an error of a Partition, wrapped or not, to the code that tells a
// client what to do. A nil error is CodeNone, an unknown one
// CodeUnknownServerError.
func CodeOf(err error) Code {
	if err == nil {
		return CodeNone
	}
	for _, w := range wireErrors {
		if w.err != nil && errors.Is(err, w.err) {
			return w.code
		}
	}
	return CodeUnknownServerError
}

// ErrorOf is the way back, for whoever calls another replica: the sentinel behind
// a code, nil for 0, and for a code without a sentinel an error that names it.
func ErrorOf(code int16) error {
	c := Code(code)
	if c == CodeNone {
		return nil
	}
	for _, w := range wireErrors {
		if w.code == c && w.err != nil {
			return w.err
		}
	}
	return fmt.Errorf("the other side answered %s (%d)", c, code)
}
