package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// ListOffsets (key 2).
//
// Versions 1 to 8 are served. v2 adds the isolation level, v4 the leader epoch in
// question and answer, v6 is flexible, v7 the offset of the largest timestamp (-3),
// v8 the earliest local offset (-4, here the log start). Other negative timestamps
// are UNSUPPORTED_VERSION.
//
//   - "Latest" is the high watermark for consumers and the log end for replicas,
//     who may ask on the replication listener only.
//   - A new leader that does not know the high watermark yet answers
//     OFFSET_NOT_AVAILABLE (KIP-207); before v5 that is LEADER_NOT_AVAILABLE, which
//     those clients retry.
//   - "There is none" is offset -1, timestamp -1 and no error.
var apiListOffsets = &api{key: keyListOffsets, name: "ListOffsets", min: 1, max: 8, replication: true, handle: (*exchange).listOffsets}

const (
	listOffsetsFirstNotAvailable = 5
	listOffsetsFirstMax          = 7
	listOffsetsFirstLocal        = 8
)

func (x *exchange) listOffsets(ctx context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.ListOffsetsRequest)
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.Version = x.version
	topic := x.Partition.View().Topic
	for _, rt := range req.Topics {
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			e := kmsg.NewListOffsetsResponseTopicPartition()
			e.Partition, e.Offset, e.Timestamp, e.LeaderEpoch = rp.Partition, -1, -1, -1
			switch {
			case rt.Topic != topic || rp.Partition != 0:
				e.ErrorCode = x.fail(CodeUnknownTopicOrPartition)
			case (x.Listener == Replication) != (req.ReplicaID >= 0) || req.ReplicaID < -1:
				e.ErrorCode = x.fail(CodeClusterAuthorizationFailed)
			case !timestampServed(rp.Timestamp, x.version):
				e.ErrorCode = x.fail(CodeUnsupportedVersion)
			default:
				x.listOffset(ctx, req, rp, &e)
			}
			t.Partitions = append(t.Partitions, e)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

// timestampServed reports whether that version knows what the timestamp asks for.
func timestampServed(ts int64, version int16) bool {
	switch ts {
	case TimestampLatest, TimestampEarliest:
		return true
	case TimestampMax:
		return version >= listOffsetsFirstMax
	case TimestampEarliestLocal:
		return version >= listOffsetsFirstLocal
	default:
		return ts >= 0
	}
}

func (x *exchange) listOffset(ctx context.Context, req *kmsg.ListOffsetsRequest, rp kmsg.ListOffsetsRequestTopicPartition, e *kmsg.ListOffsetsResponseTopicPartition) {
	res, err := x.Partition.ListOffsets(ctx, ListOffsetsRequest{
		Timestamp: rp.Timestamp, Isolation: req.IsolationLevel,
		CurrentLeaderEpoch: epoch.LeaderEpoch(rp.CurrentLeaderEpoch), Replica: x.Listener == Replication,
	})
	if err != nil {
		code := x.code(err)
		if code == CodeOffsetNotAvailable && x.version < listOffsetsFirstNotAvailable {
			code = CodeLeaderNotAvailable
		}
		e.ErrorCode = int16(code)
		return
	}
	e.Offset, e.Timestamp, e.LeaderEpoch = int64(res.Offset), res.Timestamp, int32(res.LeaderEpoch)
}
