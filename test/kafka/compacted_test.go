package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// A directory that Tidemark has compacted is read by Kafka's tool as Tidemark reads it, with
// tombstones and the times up to which they stay; and a broker opens it, serves what Tidemark
// serves, and goes on: it appends, and compacts it further by the same horizons.
func TestKafkaGoesOnWithWhatTidemarkHasCompacted(t *testing.T) {
	needKafka(t)
	dir, last := compactedLog(t)
	if warnings := sound(t, dir); len(warnings) > 0 {
		t.Errorf("%s: %s", dir, strings.Join(warnings, "\n"))
	}
	horizons, empty := 0, 0
	for _, l := range dumped(t, dir) {
		if l.Kind == "batch" && l.DeleteHorizon != nil {
			horizons++
		}
		if l.Kind == "batch" && l.Count == 0 {
			empty++
		}
	}
	if horizons == 0 || empty == 0 {
		t.Fatalf("%d batches have a delete horizon, %d have no records: nothing is shown", horizons, empty)
	}
	// To Kafka's tool what compaction leaves is a hole.
	agreeBut(t, "Non-consecutive offsets in ", dir)
	before, end := served(t, dir)

	k := newCluster(t)
	k.start()
	id := createTopic(t, k.address, compacted, map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "internal.segment.bytes": "16384"})
	k.stop()
	k.replace(compacted, id, dir)
	k.start()
	if got := lines(t, k.address, compacted, end); !maps.Equal(got, last) {
		t.Errorf("Kafka serves as the last of each key\n%v\nTidemark wrote\n%v", got, last)
	}
	if got := consume(t, k.address, compacted, -1, end); len(got) > len(before) || !subset(got, before) {
		t.Errorf("Kafka serves records that Tidemark does not: %s", firstDifference(got, before))
	}
	if said := k.complaints(compacted + "-0"); len(said) > 0 {
		t.Errorf("Kafka finds something wrong with Tidemark's directory:\n%s", strings.Join(said, "\n"))
	}
	c := client(t, k.address)
	defer c.Close()
	for n := range 300 {
		key, value := fmt.Sprint("key ", n%6), strings.Repeat(fmt.Sprint("kafka ", n), 20)
		must(t, c.ProduceSync(patience(t), &kgo.Record{Topic: compacted, Key: []byte(key), Value: []byte(value)}).FirstErr())
		last[key] = value
	}
	awaitCompaction(t, k)
	if got := lines(t, k.address, compacted, end+300); !maps.Equal(got, last) {
		t.Errorf("after Kafka's compaction it serves as the last of each key\n%v\nwant\n%v", got, last)
	}
	k.stop()
	after := k.snapshot(compacted)
	sound(t, after)
	agreeBut(t, "Non-consecutive offsets in ", after)
}

// subset reports whether got is want without some of its lines.
func subset(got, want []string) bool {
	for _, l := range got {
		i := slices.Index(want, l)
		if i < 0 {
			return false
		}
		want = want[i+1:]
	}
	return true
}

// lines is what a consumer knows of each key at the end; what is deleted is not there.
func lines(t *testing.T, address, topic string, end int64) map[string]string {
	t.Helper()
	c := client(t, address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer c.Close()
	ctx := patience(t)
	out := map[string]string{}
	for next := int64(0); next < end; {
		fetches := c.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			out[string(r.Key)] = string(r.Value)
			if r.Value == nil {
				delete(out, string(r.Key))
			}
		})
	}
	return out
}

// compactedLog is a log of Tidemark's, stopped in good order, that was compacted twice: the
// second run has removed the tombstones that the first has met, and given others a horizon.
// Its last record has a key of its own. last is what the keys are at the end.
func compactedLog(t *testing.T) (dir string, last map[string]string) {
	t.Helper()
	dir, last = t.TempDir(), map[string]string{}
	l := openLog(t, dir, false)
	must(t, l.AssignEpoch(0))
	now := time.Now()
	write := func(n int, keys ...string) {
		t.Helper()
		b := batch.NewBuilder().Codec(codecs[n%len(codecs)])
		if n%3 == 0 {
			b.Producer(int64(7000+n%2), 0, int32(n/6*4))
		}
		for i, key := range keys {
			r := batch.Record{Timestamp: now.Add(-3*time.Hour).UnixMilli() + int64(10*n+i), Key: []byte(key), Value: fmt.Appendf(nil, "value %d of %s %s", n, key, strings.Repeat("v", 100))}
			if key == "deleted" && n%40 == 0 || strings.HasPrefix(key, "gone") {
				r.Value = nil
			}
			if last[key] = string(r.Value); r.Value == nil {
				delete(last, key)
			}
			b.Add(r)
		}
		built := b.Build()
		if n%4 == 1 {
			built.StampAppendTime(built.MaxTimestamp())
		}
		_, err := l.Append(0, []batch.Batch{built})
		must(t, err)
	}
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			write(n, fmt.Sprint("key ", n%5), "deleted", fmt.Sprint("key ", n%7), fmt.Sprint("once ", n%50))
		}
	}
	fill(0, 200)
	write(200, "gone early", "key 0", "key 0", "key 0")
	fill(201, 300)
	compactLog(t, l, now.Add(-2*time.Hour))
	fill(300, 400)
	write(400, "gone late", "key 0", "key 0", "key 0")
	fill(401, 500)
	compactLog(t, l, now)
	must(t, l.Close())
	must(t, l.Checkpoint(l.EndOffset()))
	return dir, last
}

// compactLog compacts until there is nothing to do, as of a time; tombstones stay an hour.
func compactLog(t *testing.T, l *log.Log, now time.Time) {
	t.Helper()
	_, err := l.Flush()
	must(t, err)
	run, _ := l.PlanCompaction(log.CompactionRules{HighWatermark: l.EndOffset(), TombstonesBelow: l.EndOffset(), Now: now, DeleteRetention: time.Hour})
	if run == nil {
		t.Fatal("there is nothing to compact")
	}
	defer run.Close()
	for more := true; more; {
		must(t, run.Step(func(int64) error { return nil }))
		more, err = l.SwapCompacted(run)
		must(t, err)
	}
}
