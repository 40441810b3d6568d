package log

import (
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Errors of this package, to be matched with errors.Is. The numbers are the Kafka
// error codes that fit.
var (
	// ErrNoSpace says that the disk is full. Nothing was changed, and the call may
	// be repeated when there is room. KAFKA_STORAGE_ERROR (56).
	ErrNoSpace = errors.New("no space left for the log")
	// ErrFailed says that a write or a sync failed and the log takes no more
	// changes until it is opened anew. KAFKA_STORAGE_ERROR (56).
	ErrFailed = errors.New("the log has failed and must be opened anew")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the log is closed")
	// ErrOffsetOutOfRange is OFFSET_OUT_OF_RANGE (1).
	ErrOffsetOutOfRange = errors.New("offset is outside of the log")
	// ErrOutOfOrder says that a fetched batch does not begin at the log's end.
	ErrOutOfOrder = errors.New("fetched batch does not continue the log")
	// ErrCorrupt is CORRUPT_MESSAGE (2): bytes that are no batch, or a wrong
	// checksum.
	ErrCorrupt = batch.ErrCorruptMessage
	// ErrDamaged says that what the log holds is not what was written, and then comes with
	// ErrCorrupt, CORRUPT_MESSAGE (2), or that the disk cannot read it, KAFKA_STORAGE_ERROR
	// (56). The bytes are on other replicas.
	ErrDamaged = errors.New("the log is damaged on disk")
	// ErrBatchTooLarge is RECORD_LIST_TOO_LARGE (18): a batch that no segment holds.
	ErrBatchTooLarge = errors.New("batch is larger than a segment")
	// ErrStaleEpoch says that an append names an older epoch than the log has.
	ErrStaleEpoch = errors.New("leader epoch is older than the log's newest")
	// ErrTopicID says that the directory belongs to another topic id, or does not
	// say to which: its data must be set aside, never used.
	ErrTopicID = errors.New("the directory holds another topic's data")
	// ErrOutOfOrderSequence is OUT_OF_ORDER_SEQUENCE_NUMBER (45).
	ErrOutOfOrderSequence = errors.New("producer's sequence number is out of order")
	// ErrInvalidProducerEpoch is INVALID_PRODUCER_EPOCH (47).
	ErrInvalidProducerEpoch = errors.New("producer's epoch is older than a known one")
)

// writable returns why the log takes no changes, or nil.
func (l *Log) writable() error {
	if f := l.failure.Load(); f != nil {
		return *f
	}
	if l.closed.Load() {
		return ErrClosed
	}
	return nil
}

// fail ends the log for good because of err, which a write or a sync returned.
func (l *Log) fail(err error) error {
	f := fmt.Errorf("%w: %w", ErrFailed, err)
	l.failure.CompareAndSwap(nil, &f)
	return *l.failure.Load()
}

// fault sorts an error of an operation that left nothing half done: a full disk may
// pass, everything else ends the log.
func (l *Log) fault(err error) error {
	if err == nil {
		return nil
	}
	if vfs.IsNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return l.fail(err)
}
