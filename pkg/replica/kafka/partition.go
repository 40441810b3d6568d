package kafka

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Partition is what a Server serves: one replica of one topic-partition. All
// methods are called from many connections at once. Errors are the sentinels
// that CodeOf knows, wrapped or not; any other error reaches the client as
// UNKNOWN_SERVER_ERROR and the log once.
type Partition interface {
	// View tells what this replica knows about the partition now. It is called for
	// every Metadata request and for every refusal, so it must be cheap and must
	// not block.
	View() View

	// Rules says what of a producer's batches is accepted now. It is called for every
	// batch, so it must be cheap and must not block.
	Rules() ProduceRules

	// Configs tells the settings under Kafka's names: those that Kafka keeps with a
	// topic, and those that it keeps with a broker.
	Configs() (topic, broker []ConfigEntry)

	// Produce enqueues one batch. It must not wait for the disk or for replicas:
	// the connection's reader calls it, in the order in which the requests arrived,
	// and batches of one caller must be appended in the order of the calls (a
	// pipelining idempotent producer depends on it). done is called exactly once,
	// from any goroutine, from within Produce too.
	//
	// The batch lies in the request's buffer. It belongs to the partition, which
	// may write base offset and leader epoch into it, until done is called; from
	// then on the buffer is used for other requests.
	Produce(r ProduceRequest, done func(ProduceResult))

	// Fetch reads for a consumer, up to the high watermark. It waits up to MaxWait
	// for MinBytes and returns early when ctx ends (the client left, the server
	// stops) or when the answer turns into an error, as on a loss of leadership.
	Fetch(ctx context.Context, r FetchRequest) FetchResult

	// ReplicaFetch reads for a follower, up to the log end, and takes the request
	// as the acknowledgement of everything below Offset. It waits as Fetch does.
	// One connection has one ReplicaFetch outstanding.
	ReplicaFetch(ctx context.Context, r ReplicaFetchRequest) ReplicaFetchResult

	// ReplicaDisconnected tells that the connection over which that process of that
	// replica has fetched is closed. It is called once per connection, after its
	// last ReplicaFetch has returned; a replica that reconnected quickly may have
	// fetched over its new connection before.
	ReplicaDisconnected(id epoch.ReplicaID, session epoch.Session, connectionID uint64)

	// ListOffsets finds an offset by time. The result {NoOffset, -1, NoEpoch} and no
	// error means that there is none.
	ListOffsets(ctx context.Context, r ListOffsetsRequest) (ListOffsetsResult, error)

	// EpochEndOffset answers OffsetForLeaderEpoch: the newest epoch that is not
	// above e in this replica's log, and where it ends; (NoEpoch, NoOffset) when the
	// log knows none (KAFKA-6857). current is the leader epoch that the asker
	// believes in, NoEpoch to skip the check.
	EpochEndOffset(ctx context.Context, current, e epoch.LeaderEpoch) (epoch.LeaderEpoch, epoch.Offset, error)

	// DeleteRecords moves the log's start up to an offset (KIP-107). It waits up to
	// Timeout until every replica at work has followed, and returns the lowest log
	// start of them. An offset above the high watermark is core.ErrOffsetOutOfRange.
	DeleteRecords(ctx context.Context, r DeleteRecordsRequest) (low epoch.Offset, err error)

	// AllocateProducerID gives an id that no producer of this topic has ever had.
	AllocateProducerID(ctx context.Context) (id int64, producerEpoch int16, err error)
}

// View is the partition as one replica knows it. The slices are never written
// again once they have been given out.
type View struct {
	// Topic and TopicID name the one topic; its only partition is 0.
	Topic   string
	TopicID epoch.UUID
	// Self is the replica that answers.
	Self epoch.ReplicaID
	// Leads reports that this replica leads, has taken over and serves.
	Leads bool
	// Leader is NoReplica while there is none.
	Leader epoch.ReplicaID
	// LeaderEpoch is the newest known, also while there is no leader: it must never
	// go back for one topic id, since clients would ignore every later leader.
	LeaderEpoch epoch.LeaderEpoch
	// Replicas is the assignment.
	Replicas []Node
	// LiveISR holds the in-sync replicas that are alive; Offline the assigned
	// replicas that are not.
	LiveISR []epoch.ReplicaID
	Offline []epoch.ReplicaID
}

// Node is one assigned replica. One with an empty host has not registered yet and
// is not shown to clients as a broker.
type Node struct {
	ID epoch.ReplicaID
	// Address has the ports of both listeners; the server shows the port of the
	// listener that the request came in on.
	Address epoch.Address
}

// ProduceRules are what the topic asks of the batches that producers send.
type ProduceRules struct {
	// MaxMessageBytes is the largest record batch, in bytes, header included.
	MaxMessageBytes int
	// RequireKeys says that every record needs a key, since of every key the last is kept.
	RequireKeys bool
	// AppendTime makes the time of the append that of the records. Otherwise theirs are
	// the client's, and may lie that much, zero for any, behind and ahead of this
	// machine's clock.
	AppendTime          bool
	MaxBehind, MaxAhead time.Duration
}

// Acks values of a ProduceRequest.
const (
	AcksAll    int16 = -1
	AcksNone   int16 = 0
	AcksLeader int16 = 1
)

// ProduceRequest is one batch of a producer.
type ProduceRequest struct {
	// Batch has passed batch.Validate.
	Batch batch.Batch
	// AppendTime is that of the rules by which it passed.
	AppendTime bool
	// Acks is AcksAll, AcksNone or AcksLeader.
	Acks int16
	// Timeout bounds the wait for replicas under AcksAll: the answer is then
	// core.ErrTimedOut and the batch stays appended.
	Timeout time.Duration
}

// ProduceResult is the fate of one batch.
type ProduceResult struct {
	// BaseOffset of the batch; of the first copy when it was a duplicate.
	BaseOffset     epoch.Offset
	LogStartOffset epoch.Offset
	// LogAppendTime is in milliseconds since 1970, or -1 when the topic keeps the
	// producer's timestamps.
	LogAppendTime int64
	// Err is nil or why the batch is not known to be committed.
	Err error
}

// FetchRequest is a consumer's read.
type FetchRequest struct {
	Offset epoch.Offset
	// MaxBytes bounds the records. With AtLeastOne the first batch is returned
	// even if it is larger (KIP-74).
	MaxBytes   int
	AtLeastOne bool
	// MinBytes and MaxWait say what to wait for; MaxWait 0 means not to wait.
	MinBytes int
	MaxWait  time.Duration
	// CurrentLeaderEpoch is the epoch that the consumer believes in, NoEpoch to
	// skip the check (KIP-320).
	CurrentLeaderEpoch epoch.LeaderEpoch
	// LastFetchedEpoch is the epoch of the last record that the consumer has, NoEpoch
	// to skip the check (KIP-595). Consumers rarely set it.
	LastFetchedEpoch epoch.LeaderEpoch
}

// FetchResult answers Fetch. With Err set the other fields are ignored, except
// Release.
type FetchResult struct {
	// Records holds whole batches, as stored. They must stay unchanged until
	// Release is called.
	Records        []byte
	HighWatermark  epoch.Offset
	LogStartOffset epoch.Offset
	// Diverging is set, and Records empty, when LastFetchedEpoch and Offset are not
	// a prefix of this log.
	Diverging *DivergingEpoch
	Err       error
	// Release, if set, is called once when Records are no longer needed.
	Release func()
}

// DivergingEpoch tells a reader where its history leaves this log: the newest
// epoch here that is not above its own, and where that ends (KIP-595).
type DivergingEpoch struct {
	Epoch     epoch.LeaderEpoch
	EndOffset epoch.Offset
}

// ReplicaFetchRequest is a follower's read and acknowledgement.
type ReplicaFetchRequest struct {
	ReplicaID epoch.ReplicaID
	// Session is Kafka's replica epoch: it names the fetching process (KIP-903).
	Session epoch.Session
	// StartID comes from the request's client id.
	StartID epoch.StartID
	// DirectoryID names the volume of the follower.
	DirectoryID        epoch.UUID
	CurrentLeaderEpoch epoch.LeaderEpoch
	// Offset is the follower's log end: it holds everything below it in the history
	// that ends with LastFetchedEpoch.
	Offset           epoch.Offset
	LastFetchedEpoch epoch.LeaderEpoch
	LogStartOffset   epoch.Offset
	// HighWatermark is the follower's own, NoOffset when it was not told.
	HighWatermark epoch.Offset
	MaxBytes      int
	MinBytes      int
	MaxWait       time.Duration
	// ConnectionID is unique among the connections of this process.
	ConnectionID uint64
	// Trouble is what the follower says of itself.
	Trouble epoch.Trouble
}

// ReplicaFetchResult answers ReplicaFetch; LeaderEpoch is the epoch that the
// leader answered in.
type ReplicaFetchResult struct {
	FetchResult
	LeaderEpoch epoch.LeaderEpoch
}

// DeleteRecordsRequest asks for the deletion of all records before Offset; NoOffset
// stands for the high watermark.
type DeleteRecordsRequest struct {
	Offset  epoch.Offset
	Timeout time.Duration
}

// Timestamps of ListOffsetsRequest that ask for a place and not for a time.
const (
	TimestampLatest        int64 = -1
	TimestampEarliest      int64 = -2
	TimestampMax           int64 = -3
	TimestampEarliestLocal int64 = -4
)

// ListOffsetsRequest asks for an offset by time.
type ListOffsetsRequest struct {
	// Timestamp is in milliseconds since 1970: the first record at or after it is
	// wanted; or one of the Timestamp constants.
	Timestamp int64
	// Isolation is 0 for read_uncommitted, 1 for read_committed. Without
	// transactions both end at the high watermark.
	Isolation          int8
	CurrentLeaderEpoch epoch.LeaderEpoch
	// Replica reports that a replica asks: its "latest" is the log end.
	Replica bool
}

// ListOffsetsResult is the offset found, the timestamp of its record (-1 for the
// ends of the log) and the leader epoch of it.
type ListOffsetsResult struct {
	Offset      epoch.Offset
	Timestamp   int64
	LeaderEpoch epoch.LeaderEpoch
}
