package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// settings are a partition whose spec.log is edited.
type settings struct {
	*partition
	t      *testing.T
	client *kgo.Client
}

// edit merges a patch into spec.log, and waits until every replica shows clients these settings.
func (s *settings) edit(patch string, want map[string]string) {
	s.t.Helper()
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = s.key.Namespace, s.key.Name
	if err := env.api.Patch(s.t.Context(), rp, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"log":`+patch+`}}`))); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range s.kubelet.containers() {
		var shown map[string]string
		var err error
		s.poll(fmt.Sprintf("%s to show %v (it showed %v, %v)", c.name, want, shown, err), func() bool {
			shown, err = describe(s.t.Context(), c, s.key.Name)
			for k, v := range want {
				if shown[k] != v {
					return false
				}
			}
			return err == nil
		})
	}
}

// describe asks a replica for the settings of its topic, and its own.
func describe(ctx context.Context, c *container, topic string) (map[string]string, error) {
	nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", c.ip+":9092")
	if err != nil {
		return nil, err
	}
	conn := kafka.NewClient(nc, "settings", 1<<20)
	defer conn.Close()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	for kind, name := range map[kmsg.ConfigResourceType]string{kmsg.ConfigResourceTypeTopic: topic, kmsg.ConfigResourceTypeBroker: ""} {
		q := kmsg.NewDescribeConfigsRequestResource()
		q.ResourceType, q.ResourceName = kind, name
		req.Resources = append(req.Resources, q)
	}
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		if r.ErrorCode != 0 {
			return nil, kafka.ErrorOf(r.ErrorCode)
		}
		for _, e := range r.Configs {
			shown[e.Name] = *e.Value
		}
	}
	return shown, nil
}

// produce sends one record.
func (s *settings) produce(r *kgo.Record) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	return s.client.ProduceSync(ctx, r).FirstErr()
}

func (s *settings) accepted(r *kgo.Record) *kgo.Record {
	s.t.Helper()
	if err := s.produce(r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *settings) refused(want error, r *kgo.Record) {
	s.t.Helper()
	if err := s.produce(r); !errors.Is(err, want) {
		s.t.Errorf("got %v, want %v", err, want)
	}
}

// read consumes one record.
func (s *settings) read(offset int64) *kgo.Record {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(service), s.viaService(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.key.Name: {0: kgo.NewOffset().At(offset)}}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	fetches := c.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		s.t.Fatal(err)
	}
	return fetches.Records()[0]
}

// segments waits until the log of every replica has as many segments as wanted.
func (s *settings) segments(what string, ok func(n int) bool) {
	s.t.Helper()
	s.poll(what, func() bool {
		for _, c := range s.kubelet.containers() {
			if names, err := logFiles(c.volume); err != nil || !ok(len(names)) {
				return false
			}
		}
		return true
	})
}

func at(ago time.Duration, value int) *kgo.Record {
	return &kgo.Record{Key: []byte("k"), Value: make([]byte, value), Timestamp: time.Now().Add(-ago)}
}

// Every key of spec.log is edited while the replicas run: each shows it to Kafka's clients, and does it. Neither operator nor
// replica starts anything anew.
func TestSpecLogIsChangedWhileItRuns(t *testing.T) {
	p := newPartition(t, threeReplicas())
	s := &settings{partition: p, t: t}
	var err error
	s.client, err = kgo.NewClient(kgo.SeedBrokers(service), p.viaService(), kgo.DefaultProduceTopic(p.key.Name), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.client.Close()
	begun := s.processes()
	s.edit(`{}`, map[string]string{"segment.bytes": "268435456", "segment.ms": "604800000", "cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "604800000",
		"max.message.bytes": "1048588", "message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": "9223372036854775807", "message.timestamp.after.max.ms": "3600000",
		"min.compaction.lag.ms": "0", "delete.retention.ms": "86400000", "min.cleanable.dirty.ratio": "0.5", "flush.messages": "9223372036854775807", "min.insync.replicas": "2",
		"producer.id.expiration.ms": "86400000"})

	s.accepted(at(0, 3000))
	s.edit(`{"maxMessageBytes":2000}`, map[string]string{"max.message.bytes": "2000"})
	s.refused(kerr.MessageTooLarge, at(0, 3000))
	s.edit(`{"maxMessageBytes":1048576,"segmentBytes":1048576}`, map[string]string{"max.message.bytes": "1048576", "segment.bytes": "1048576"})
	s.segments("small segments in every replica", func(n int) bool {
		s.accepted(at(0, 600_000))
		return n > 3
	})
	s.edit(`{"segmentSeconds":60}`, map[string]string{"segment.ms": "60000"})
	names, err := logFiles(s.kubelet.containers()[0].volume)
	if err != nil {
		t.Fatal(err)
	}
	s.accepted(at(-time.Minute, 1)) // more than a minute newer than the segment's first
	s.segments("a segment closed for its age", func(n int) bool { return n > len(names) })

	s.edit(`{"messageTimestampBeforeMaxSeconds":60,"messageTimestampAfterMaxSeconds":5}`, map[string]string{"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "5000"})
	s.refused(kerr.InvalidTimestamp, at(time.Hour, 1))
	s.refused(kerr.InvalidTimestamp, at(-time.Minute, 1))
	s.accepted(at(0, 1))
	s.edit(`{"messageTimestampType":"LogAppendTime","messageTimestampBeforeMaxSeconds":null,"messageTimestampAfterMaxSeconds":null}`,
		map[string]string{"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "9223372036854775807", "message.timestamp.after.max.ms": "3600000"})
	before := time.Now().Truncate(time.Millisecond)
	if r := s.read(s.accepted(at(24*time.Hour, 1)).Offset); r.Timestamp.Before(before) || r.Timestamp.After(time.Now()) || r.Attrs.TimestampType() != 1 {
		t.Errorf("a record of yesterday has the time %v of type %d, it was sent after %v", r.Timestamp, r.Attrs.TimestampType(), before)
	}

	s.edit(`{"flush":"EveryBatch"}`, map[string]string{"flush.messages": "1"})
	s.poll("the flag of EveryBatch on every volume", func() bool {
		for _, c := range s.kubelet.containers() {
			if !exists(filepath.Join(c.volume, ".every_batch")) {
				return false
			}
		}
		return true
	})
	s.edit(`{"retentionBytes":1048576,"retentionSeconds":7200,"producerIdExpirationSeconds":120}`,
		map[string]string{"retention.bytes": "1048576", "retention.ms": "7200000", "producer.id.expiration.ms": "120000"})
	s.segments("what is too much to be deleted by every replica", func(n int) bool { return n <= 3 })

	s.edit(`{"cleanupPolicy":"CompactAndDelete","minCompactionLagSeconds":5,"deleteRetentionSeconds":10,"minDirtyRatioPercent":20}`,
		map[string]string{"cleanup.policy": "compact,delete", "min.compaction.lag.ms": "5000", "delete.retention.ms": "10000", "min.cleanable.dirty.ratio": "0.2"})
	s.refused(kerr.InvalidRecord, &kgo.Record{Value: []byte("no key")})
	s.accepted(at(0, 1))

	if now := s.processes(); now != begun {
		t.Errorf("pods, and starts of their processes, were %s, and are %s", begun, now)
	}
}

// processes names the pods, and how often each was started.
func (p *partition) processes() (all string) {
	for _, c := range p.kubelet.containers() {
		c.mu.Lock()
		all += fmt.Sprintf("%s/%s started %d times; ", c.name, c.pod.UID, c.starts)
		c.mu.Unlock()
	}
	return all
}
