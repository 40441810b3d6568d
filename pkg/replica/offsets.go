package replica

import (
	"context"
	"errors"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// ListOffsets implements kafka.Partition (protocol.md 1.16).
func (r *Replica) ListOffsets(_ context.Context, q kafka.ListOffsetsRequest) (kafka.ListOffsetsResult, error) {
	v := r.view()
	if err := v.Leads(q.CurrentLeaderEpoch); err != nil {
		return kafka.ListOffsetsResult{}, err
	}
	at := func(o epoch.Offset) kafka.ListOffsetsResult {
		return kafka.ListOffsetsResult{Offset: o, Timestamp: -1, LeaderEpoch: v.EpochCache.EpochAt(o)}
	}
	switch q.Timestamp {
	case kafka.TimestampEarliest, kafka.TimestampEarliestLocal:
		return at(v.LogStartOffset), nil
	case kafka.TimestampLatest:
		if q.Replica {
			return at(v.LogEndOffset), nil
		}
		if v.Behind() {
			return kafka.ListOffsetsResult{}, core.ErrOffsetNotAvailable
		}
		return at(v.HighWatermark), nil
	case kafka.TimestampMax:
		if v.Behind() {
			// The newest below a high watermark that lags may not be the newest committed.
			return kafka.ListOffsetsResult{}, core.ErrOffsetNotAvailable
		}
		return r.found(v)(r.node.Log().MaxTimestamp(v.HighWatermark))
	}
	return r.found(v)(r.node.Log().OffsetForTimestamp(q.Timestamp, v.HighWatermark))
}

// found makes an answer of a search. Finding nothing below a high watermark that has
// not caught up yet proves nothing (KIP-207).
func (r *Replica) found(v *view) func(epoch.Offset, int64, bool, error) (kafka.ListOffsetsResult, error) {
	return func(o epoch.Offset, timestamp int64, ok bool, err error) (kafka.ListOffsetsResult, error) {
		switch {
		case err != nil:
			return kafka.ListOffsetsResult{}, err
		case !ok && v.Behind():
			return kafka.ListOffsetsResult{}, core.ErrOffsetNotAvailable
		case !ok:
			return kafka.ListOffsetsResult{Offset: epoch.NoOffset, Timestamp: -1, LeaderEpoch: epoch.NoEpoch}, nil
		}
		return kafka.ListOffsetsResult{Offset: o, Timestamp: timestamp, LeaderEpoch: v.EpochCache.EpochAt(o)}, nil
	}
}

// EpochEndOffset implements kafka.Partition. Cache and log end are of one moment, and
// a new leader's own epoch is in the cache before it answers.
func (r *Replica) EpochEndOffset(_ context.Context, current, e epoch.LeaderEpoch) (epoch.LeaderEpoch, epoch.Offset, error) {
	v := r.view()
	if err := v.Leads(current); err != nil {
		return epoch.NoEpoch, epoch.NoOffset, err
	}
	found, end := v.EpochCache.EndOffset(e, v.LogEndOffset)
	return found, end, nil
}

// DeleteRecords implements kafka.Partition (protocol.md 1.15).
func (r *Replica) DeleteRecords(ctx context.Context, q kafka.DeleteRecordsRequest) (epoch.Offset, error) {
	type outcome struct {
		low epoch.Offset
		err error
	}
	answer := make(chan outcome, 1)
	d := node.Deletion{Before: q.Offset, Timeout: q.Timeout, Done: func(low epoch.Offset, err error) { answer <- outcome{low, err} }}
	if !r.mailbox.post(func(n *node.Node) { n.Delete(d) }) {
		return epoch.NoOffset, core.ErrNotLeader
	}
	select {
	case o := <-answer:
		return o.low, o.err
	case <-ctx.Done():
		return epoch.NoOffset, core.ErrTimedOut
	case <-r.mailbox.ended:
		return epoch.NoOffset, core.ErrNotLeader
	}
}

var errNoProducerIDs = errors.New("this process has given out all of its producer ids; restart the replica")

// AllocateProducerID implements kafka.Partition. Followers give ids out, too: clients
// ask any broker, and some never ask another (librdkafka). A session belongs to one
// process and is never used twice, so session and counter together are never given out
// twice, with nothing to store.
func (r *Replica) AllocateProducerID(context.Context) (int64, int16, error) {
	n := r.producers.Add(1)
	if n >= epoch.ProducerIDsPerSession {
		return -1, -1, errNoProducerIDs
	}
	return int64(r.identity.Session)*epoch.ProducerIDsPerSession + n, 0, nil
}
