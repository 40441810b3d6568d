package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

func deleteRecordsRequest(version int16, topic string, partition int32, offset int64) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = version, 1500
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}}}
	return req
}

func TestDeleteRecords(t *testing.T) {
	for _, tc := range []struct {
		name      string
		topic     string
		partition int32
		offset    int64
		fail      error
		wantLow   int64
		want      Code
	}{
		{"before an offset", testTopic, 0, 2, nil, 2, CodeNone},
		{"-1: all that is committed", testTopic, 0, -1, nil, 3, CodeNone},
		{"nothing to do", testTopic, 0, 0, nil, 0, CodeNone},
		{"above the high watermark", testTopic, 0, 4, nil, -1, CodeOffsetOutOfRange},
		{"an offset that cannot be", testTopic, 0, -2, nil, -1, CodeOffsetOutOfRange},
		{"a follower", testTopic, 0, 2, core.ErrNotLeader, -1, CodeNotLeaderOrFollower},
		{"the others did not follow in time", testTopic, 0, 2, core.ErrTimedOut, -1, CodeRequestTimedOut},
		{"another topic", "other", 0, 2, nil, -1, CodeUnknownTopicOrPartition},
		{"another partition", testTopic, 1, 2, nil, -1, CodeUnknownTopicOrPartition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for version := apiDeleteRecords.min; version <= apiDeleteRecords.max; version++ {
				p := newMemPartition()
				r := start(t, p)
				produceAll(t, newFranz(t, r), numbered(3))
				p.change(func() { p.failWith = tc.fail })
				resp := ask[*kmsg.DeleteRecordsResponse](r, deleteRecordsRequest(version, tc.topic, tc.partition, tc.offset))
				e := resp.Topics[0].Partitions[0]
				if Code(e.ErrorCode) != tc.want || e.LowWatermark != tc.wantLow || resp.Topics[0].Topic != tc.topic || e.Partition != tc.partition {
					t.Errorf("version %d: got %s, low watermark %d of %s-%d; want %s, %d", version, Code(e.ErrorCode), e.LowWatermark, resp.Topics[0].Topic, e.Partition, tc.want, tc.wantLow)
				}
				if tc.want != CodeUnknownTopicOrPartition && (len(p.deleted) != 1 || p.deleted[0] != DeleteRecordsRequest{epoch.Offset(tc.offset), 1500 * time.Millisecond}) {
					t.Errorf("version %d: the partition was asked %+v", version, p.deleted)
				}
			}
		})
	}
}

func TestReplicasDoNotDeleteRecords(t *testing.T) {
	r := start(t, newMemPartition(), replication)
	if _, err := r.client().Do(t.Context(), deleteRecordsRequest(2, testTopic, 0, 1)); err == nil {
		t.Error("DeleteRecords is served on the replication listener")
	}
}
