//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// flow writes records of a few keys, one after the other, for as long as the test edits the spec.
type flow struct {
	client *kgo.Client
	stop   context.CancelFunc
	done   chan error

	mu   sync.Mutex
	last map[string]string // of each key, acknowledged
	n    int
}

const flowKeys = 10

func startFlow(t testing.TB, p partition) *flow {
	t.Helper()
	f := &flow{done: make(chan error, 1), last: map[string]string{}, client: p.kafka(t)}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	t.Cleanup(cancel)
	go func() {
		defer close(f.done)
		for ctx.Err() == nil {
			if err := f.write(t.Context()); err != nil {
				f.done <- err
				return
			}
		}
	}()
	return f
}

// kafka makes a client of the partition.
func (p partition) kafka(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(p.brokers(t)...), kgo.DefaultProduceTopic(p.name), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression())}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (f *flow) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	key, value := fmt.Sprint("key ", f.n%flowKeys), fmt.Sprintf("value %d %s", f.n, strings.Repeat("v", 20_000))
	if err := f.client.ProduceSync(ctx, kgo.KeyStringRecord(key, value)).FirstErr(); err != nil {
		return fmt.Errorf("record %d: %w", f.n, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[key] = value
	f.n++
	return nil
}

// finish ends the flow, in which nothing may have failed, and returns the last record of each key.
func (f *flow) finish(t testing.TB) map[string]string {
	t.Helper()
	f.stop()
	if err := <-f.done; err != nil {
		t.Fatalf("while the spec was edited, %v", err)
	}
	return f.last
}

// editLog merges a patch into spec.log.
func (p partition) editLog(t testing.TB, patch string) {
	t.Helper()
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"log":`+patch+`}}`)
}

// logState is what `replica log dump` tells of a replica's directory.
type logState struct {
	first, end, records int64 // offsets, and the records that the batches hold
}

// logOf dumps the log of a replica in use.
func (p partition) logOf(ctx context.Context, pod string) (s logState, err error) {
	out := output("kubectl", "-n", namespace, "exec", pod, "--", "/replica", "log", "dump", "--json", "/var/lib/tidemark")
	s.first = -1
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var l struct {
			Kind                          string
			BaseOffset, LastOffset, Count int64
		}
		if err := dec.Decode(&l); err != nil {
			return s, fmt.Errorf("log of %s: %w: %.200s", pod, err, out)
		}
		switch {
		case l.Kind == "segment" && s.first < 0:
			s.first = l.BaseOffset
		case l.Kind == "batch":
			s.end, s.records = l.LastOffset+1, s.records+l.Count
		}
	}
	if s.first < 0 {
		return s, fmt.Errorf("log of %s: %.200s", pod, out)
	}
	return s, ctx.Err()
}

// awaitStart waits until status tells a log start behind an offset, and no replica has the segment any more that began at
// the start before.
func (p partition) awaitStart(t testing.TB, what string, behind, before int64) int64 {
	t.Helper()
	var start int64
	s := p.await(t, "log start moved by "+what, func(s v1alpha1.ReplicatedPartitionStatus) bool {
		if s.LogStartOffset != nil {
			start = *s.LogStartOffset
		}
		return start > behind
	})
	for _, r := range s.Replicas {
		eventually(t, 2*time.Minute, fmt.Sprintf("%s to have deleted segments, by %s", r.Name, what), func(ctx context.Context) error {
			l, err := p.logOf(ctx, r.Name)
			if err == nil && l.first <= before {
				return fmt.Errorf("its first segment begins at %d", l.first)
			}
			return err
		})
	}
	return start
}

// deleteAll deletes all records up to the high watermark.
func (p partition) deleteAll(t testing.TB, c *kgo.Client) int64 {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt, rp := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = -1
	rt.Topic, rt.Partitions = p.name, append(rt.Partitions, rp)
	req.Topics, req.TimeoutMillis = append(req.Topics, rt), 30_000
	resp, err := req.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got := resp.Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(got.ErrorCode))
	}
	return got.LowWatermark
}

// pods names the partition's pods, and how often their containers were restarted.
func (p partition) pods(t testing.TB) (all string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := api.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPartition: p.name}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		all += fmt.Sprintf("%s %s restarted %d times; ", pod.Name, pod.UID, pod.Status.ContainerStatuses[0].RestartCount)
	}
	return all
}

// Retention by bytes and by time, DeleteRecords, whose time a record has, and compaction: all by edits of the object while
// records flow, with no pod restarted and no write failed.
func TestHousekeepingFollowsTheSpec(t *testing.T) {
	p := newPartition(t, "housekeeping", func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Log.SegmentBytes = 1_100_000 })
	pods := p.pods(t)
	f := startFlow(t, p)
	c := p.kafka(t, kgo.DisableIdempotentWrite())

	p.editLog(t, `{"retentionBytes":2097152}`)
	start := p.awaitStart(t, "retention by bytes", 0, 0)
	t.Logf("retention by bytes: the log begins at %d", start)

	p.editLog(t, `{"retentionBytes":-1,"retentionSeconds":5}`)
	start = p.awaitStart(t, "retention by time", start, start)
	t.Logf("retention by time: the log begins at %d", start)
	p.editLog(t, `{"retentionSeconds":-1}`)

	low := p.deleteAll(t, c)
	start = p.awaitStart(t, "DeleteRecords", max(start, low-1), start)
	t.Logf("DeleteRecords: told %d, the log begins at %d", low, start)

	p.editLog(t, `{"messageTimestampBeforeMaxSeconds":60}`)
	old := func() *kgo.Record {
		return &kgo.Record{Key: []byte("old"), Value: []byte("v"), Timestamp: time.Now().Add(-time.Hour)}
	}
	eventually(t, time.Minute, "records of an hour ago to be refused", func(ctx context.Context) error {
		if err := c.ProduceSync(ctx, old()).FirstErr(); !errors.Is(err, kerr.InvalidTimestamp) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	p.editLog(t, `{"messageTimestampBeforeMaxSeconds":null,"messageTimestampType":"LogAppendTime"}`)
	eventually(t, time.Minute, "the leader's time to count", func(ctx context.Context) error {
		r := old()
		if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
		if at := p.read(t, r.Offset).Timestamp; time.Since(at).Abs() > 30*time.Minute {
			return fmt.Errorf("the record got the time %v", at)
		}
		return nil
	})

	p.editLog(t, `{"cleanupPolicy":"Compact","minDirtyRatioPercent":0,"flush":"EveryBatch"}`)
	for _, r := range p.status(t).Replicas {
		eventually(t, 3*time.Minute, r.Name+" to compact its log", func(ctx context.Context) error {
			l, err := p.logOf(ctx, r.Name)
			if err == nil && l.records > (l.end-start)/2 {
				return fmt.Errorf("of %d records it holds %d", l.end-start, l.records)
			}
			return err
		})
	}
	want := f.finish(t)
	if err := c.ProduceSync(t.Context(), kgo.KeyStringRecord("end", "end")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got, records := p.lastOfEachKey(t)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("the last record of %q is %.20q, want %.20q", key, got[key], value)
		}
	}
	t.Logf("compaction: a consumer read %d records; %d were written in all", records, f.n)
	if now := p.pods(t); now != pods {
		t.Errorf("the pods were %s, and are %s", pods, now)
	}
}

// read consumes one record.
func (p partition) read(t testing.TB, offset int64) *kgo.Record {
	t.Helper()
	c := p.kafka(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.name: {0: kgo.NewOffset().At(offset)}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fetches := c.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	return fetches.Records()[0]
}

// lastOfEachKey reads the log from its start up to the key "end".
func (p partition) lastOfEachKey(t testing.TB) (last map[string]string, records int) {
	t.Helper()
	c := p.kafka(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.name: {0: kgo.NewOffset().AtStart()}}))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	last = map[string]string{}
	for last["end"] == "" {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			last[string(r.Key)] = string(r.Value)
			records++
		})
	}
	return last, records
}
