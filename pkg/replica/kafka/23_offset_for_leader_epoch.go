package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// OffsetForLeaderEpoch (key 23).
//
// Versions 2 to 4 are served; librdkafka speaks exactly 2. v3 adds the replica id,
// v4 is flexible. Consumers ask after a change of leader whether what they have read
// was truncated (KIP-320). An epoch that the log does not know is answered with
// epoch -1, offset -1 and no error (KAFKA-6857).
var apiOffsetForLeaderEpoch = &api{
	key: keyOffsetForLeaderEpoch, name: "OffsetForLeaderEpoch", min: 2, max: 4, replication: true,
	handle: (*exchange).offsetForLeaderEpoch,
}

func (x *exchange) offsetForLeaderEpoch(ctx context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.OffsetForLeaderEpochRequest)
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	resp.Version = x.version
	topic := x.Partition.View().Topic
	for _, rt := range req.Topics {
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			e := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			e.Partition, e.LeaderEpoch, e.EndOffset = rp.Partition, -1, -1
			switch {
			case rt.Topic != topic || rp.Partition != 0:
				e.ErrorCode = x.fail(CodeUnknownTopicOrPartition)
			case x.Listener != Replication && req.ReplicaID >= 0:
				e.ErrorCode = x.fail(CodeClusterAuthorizationFailed)
			default:
				found, end, err := x.Partition.EpochEndOffset(ctx, epoch.LeaderEpoch(rp.CurrentLeaderEpoch), epoch.LeaderEpoch(rp.LeaderEpoch))
				if err != nil {
					e.ErrorCode = int16(x.code(err))
				} else {
					e.LeaderEpoch, e.EndOffset = int32(found), int64(end)
				}
			}
			t.Partitions = append(t.Partitions, e)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
