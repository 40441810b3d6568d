package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func client(t *testing.T, address string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	must(t, err)
	return c
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// produce writes records numbered from one to the other, with every codec in turn by idempotent
// producers of their own, and one that is not idempotent.
func produce(t *testing.T, address, topic string, from, to int) {
	t.Helper()
	compressions := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	var clients []*kgo.Client
	for _, c := range compressions {
		clients = append(clients, client(t, address, kgo.ProducerBatchCompression(c)))
	}
	clients = append(clients, client(t, address, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks())))
	ctx := patience(t)
	const group = 7
	for at := from; at < to; at += group {
		var records []*kgo.Record
		for n := at; n < min(at+group, to); n++ {
			records = append(records, numbered(topic, n))
		}
		must(t, clients[at/group%len(clients)].ProduceSync(ctx, records...).FirstErr())
	}
	for _, c := range clients {
		c.Close()
	}
}

// firstTime is that of record 0. It is of today: Kafka forgets producers whose records are older
// than a day.
var firstTime = time.Now().Truncate(time.Second)

func numbered(topic string, n int) *kgo.Record {
	// Every third record is older than the one before it.
	r := &kgo.Record{Topic: topic, Timestamp: firstTime.Add(time.Duration(n-n%3*5) * time.Millisecond), Value: []byte(strings.Repeat(fmt.Sprintf("value %d;", n), 1+n%40))}
	switch n % 5 {
	case 0:
		r.Key = fmt.Appendf(nil, "key %d", n)
	case 1:
		r.Key, r.Headers = []byte{}, []kgo.RecordHeader{{Key: "one", Value: []byte("1")}, {Key: "null"}}
	case 2:
		r.Value = nil
	case 3:
		r.Key = []byte("\x00\xff\x01") // no text
	}
	return r
}

// consume reads a topic from an offset, or its start if that is negative, up to an end, and
// gives each record a line.
func consume(t *testing.T, address, topic string, start, end int64) []string {
	t.Helper()
	from := kgo.NewOffset().AtStart()
	if start >= 0 {
		from = kgo.NewOffset().At(start)
	}
	c := client(t, address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: from}}))
	defer c.Close()
	ctx := patience(t)
	var out []string
	for next := int64(-1); next < end; {
		fetches := c.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if next = r.Offset + 1; next > end {
				return
			}
			out = append(out, fmt.Sprintf("%d epoch %d time %d type %d key %q (%t) value %q (%t) headers %q", r.Offset, r.LeaderEpoch, r.Timestamp.UnixMilli(),
				r.Attrs.TimestampType(), r.Key, r.Key == nil, r.Value, r.Value == nil, r.Headers))
		})
	}
	return out
}

// endOf is where a topic ends.
func endOf(t *testing.T, address, topic string) int64 {
	t.Helper()
	c := client(t, address)
	defer c.Close()
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = -1
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.ReplicaID, req.Topics = -1, append(req.Topics, rt)
	deadline, ticker := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer ticker.Stop()
	for {
		shards := c.RequestSharded(patience(t), req)
		must(t, shards[0].Err)
		p := shards[0].Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if p.ErrorCode == 0 {
			return p.Offset
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("list offsets of %s: error %d", topic, p.ErrorCode)
		}
	}
}

// createTopic makes a topic of one partition and returns its id.
func createTopic(t *testing.T, address, name string, configs map[string]string) epoch.UUID {
	t.Helper()
	c := client(t, address)
	defer c.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, 1, 1
	for k, v := range configs {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		rc.Name, rc.Value = k, kmsg.StringPtr(v)
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(patience(t), c)
	must(t, err)
	if e := resp.Topics[0]; e.ErrorCode != 0 {
		t.Fatalf("create topic %s: error %d %s", name, e.ErrorCode, *e.ErrorMessage)
	}
	return epoch.UUID(resp.Topics[0].TopicID)
}

// deleteRecords moves the start of a topic.
func deleteRecords(t *testing.T, address, name string, to int64) {
	t.Helper()
	c := client(t, address)
	defer c.Close()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = to
	rt.Topic, rt.Partitions = name, append(rt.Partitions, rp)
	req.TimeoutMillis, req.Topics = 30000, append(req.Topics, rt)
	shards := c.RequestSharded(patience(t), req)
	must(t, shards[0].Err)
	if p := shards[0].Resp.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != to {
		t.Fatalf("delete the records of %s below %d: error %d, begins at %d", name, to, p.ErrorCode, p.LowWatermark)
	}
}
