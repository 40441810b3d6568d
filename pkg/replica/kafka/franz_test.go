package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

func newFranz(t testing.TB, r *running, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{kgo.SeedBrokers(r.addr), kgo.DefaultProduceTopic(testTopic)}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produceAll produces without waiting in between and fails on any error.
func produceAll(t testing.TB, cl *kgo.Client, values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make(chan error, len(values))
	for _, v := range values {
		cl.Produce(ctx, kgo.StringRecord(v), func(_ *kgo.Record, err error) { errs <- err })
	}
	for range values {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func consume(t testing.TB, r *running, n int, opts ...kgo.Opt) (out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := newFranz(t, r, append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{testTopic: {0: kgo.NewOffset().AtStart()}}))...)
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(out), n, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if rec.Offset != int64(len(out)) {
				t.Errorf("record %d has offset %d", len(out), rec.Offset)
			}
			out = append(out, string(rec.Value))
		})
	}
	return out
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("value-%06d", i)
	}
	return out
}

func TestFranzRoundTripAtEveryClientAge(t *testing.T) {
	versions := map[string]*kversion.Versions{
		"0.11": kversion.V0_11_0(), "1.0": kversion.V1_0_0(), "2.1": kversion.V2_1_0(), "2.4": kversion.V2_4_0(),
		"2.8": kversion.V2_8_0(), "3.7": kversion.V3_7_0(), "4.0": kversion.V4_0_0(), "newest": kversion.Tip(),
	}
	for name, v := range versions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMemPartition()
			r := start(t, p)
			want := numbered(500)
			produceAll(t, newFranz(t, r, kgo.MaxVersions(v), kgo.AllowIdempotentProduceCancellation()), want)
			if got := consume(t, r, len(want), kgo.MaxVersions(v)); !slices.Equal(got, want) {
				t.Errorf("consumed %d records that differ from the %d produced", len(got), len(want))
			}
		})
	}
}

func TestFranzRoundTripWithEveryCompression(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, newMemPartition())
			want := numbered(300)
			produceAll(t, newFranz(t, r, kgo.ProducerBatchCompression(codec)), want)
			if got := consume(t, r, len(want)); !slices.Equal(got, want) {
				t.Errorf("consumed %d records that differ from the %d produced", len(got), len(want))
			}
		})
	}
}

func TestFranzAcksOneAndNone(t *testing.T) {
	for name, acks := range map[string]kgo.Acks{"leader": kgo.LeaderAck(), "none": kgo.NoAck()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, newMemPartition())
			want := numbered(300)
			produceAll(t, newFranz(t, r, kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite()), want)
			if got := consume(t, r, len(want)); !slices.Equal(got, want) {
				t.Errorf("consumed %d records that differ from the %d produced", len(got), len(want))
			}
		})
	}
}

// A pipelining idempotent producer has five requests under way; they must reach the
// log in order, and nothing may be doubled, although acknowledgements come late and
// from another goroutine.
func TestFranzPipelinedIdempotentProducerKeepsOrder(t *testing.T) {
	p := newMemPartition()
	p.acks = make(chan func(), 1000)
	defer close(p.acks)
	go func() {
		for ack := range p.acks {
			ack()
		}
	}()
	r := start(t, p)
	want := numbered(20_000)
	cl := newFranz(t, r, kgo.ProducerBatchMaxBytes(2000), kgo.MaxBufferedRecords(len(want)))
	produceAll(t, cl, want)
	cl.Close()
	got, err := p.values()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the log holds %d records, want the %d produced in order; error %v", len(got), len(want), err)
	}
}

// A client that uses transactions must hear that there are none, and not wait for them.
func TestTransactionsFailAtOnce(t *testing.T) {
	r := start(t, newMemPartition())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := newFranz(t, r, kgo.TransactionalID("tx"))
	err := cl.BeginTransaction()
	if err == nil {
		err = cl.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
	}
	if err == nil || ctx.Err() != nil {
		t.Errorf("a record of a transaction: %v (%v), want a refusal at once", err, ctx.Err())
	}
}
