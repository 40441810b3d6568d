package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// One request at a time, over a real socket: the cost of a produce in the server,
// the raw client's included.
func BenchmarkProduceOneBatch(b *testing.B) {
	p := newMemPartition()
	r := start(b, p)
	cl := r.client()
	frame := produceRequest(9, AcksAll, batchOf(strings.Repeat("x", 1000)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cl.Do(b.Context(), frame); err != nil {
			b.Fatal(err)
		}
		p.change(func() { p.batches = p.batches[:0] })
	}
}

// What franz-go gets through the server: 100-byte records, idempotent, acks=all.
func BenchmarkFranzProduce(b *testing.B) {
	p := newMemPartition()
	r := start(b, p)
	cl := newFranz(b, r, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000))
	value := []byte(strings.Repeat("x", 100))
	failed := make(chan error, 1)
	b.SetBytes(100)
	b.ReportAllocs()
	for b.Loop() {
		cl.Produce(b.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
