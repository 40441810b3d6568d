package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// DeleteRecords (key 21).
//
// Versions 0 to 2 are served; v1 changes nothing, v2 is flexible. All records before an
// offset are deleted: the log's start moves there on every replica (KIP-107).
//
//   - Offset -1 is the high watermark; above it is OFFSET_OUT_OF_RANGE. At or below the
//     log's start there is nothing to do, which is no error.
//   - The answer comes when every replica at work has moved its log start, with the
//     lowest of them, or as REQUEST_TIMED_OUT: what is deleted stays deleted.
//   - The topic's records are not protected by anything else: there are no ACLs, so
//     whoever may produce may delete.
var apiDeleteRecords = &api{key: keyDeleteRecords, name: "DeleteRecords", min: 0, max: 2, handle: (*exchange).deleteRecords}

func (x *exchange) deleteRecords(ctx context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.DeleteRecordsRequest)
	resp := kmsg.NewPtrDeleteRecordsResponse()
	resp.Version = x.version
	topic := x.Partition.View().Topic
	for _, rt := range req.Topics {
		t := kmsg.NewDeleteRecordsResponseTopic()
		t.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			e := kmsg.NewDeleteRecordsResponseTopicPartition()
			e.Partition, e.LowWatermark = rp.Partition, -1
			if rt.Topic != topic || rp.Partition != 0 {
				e.ErrorCode = x.fail(CodeUnknownTopicOrPartition)
			} else {
				low, err := x.Partition.DeleteRecords(ctx, DeleteRecordsRequest{
					Offset: epoch.Offset(rp.Offset), Timeout: time.Duration(max(0, req.TimeoutMillis)) * time.Millisecond,
				})
				if err != nil {
					e.ErrorCode = int16(x.code(err))
				} else {
					e.LowWatermark = int64(low)
				}
			}
			t.Partitions = append(t.Partitions, e)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
