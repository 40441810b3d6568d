package kafka

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// One request at a time over a real socket, with a client that allocates nothing:
// what is counted is the server and the log in memory, which copies the batch.
func BenchmarkProduceOneBatch(b *testing.B) {
	p := newMemPartition()
	r := start(b, p)
	nc := r.dial()
	nc.SetDeadline(time.Time{})
	frame := frameOf(produceRequest(9, AcksAll, batchOf(strings.Repeat("x", 1000))), 1)
	answer := make([]byte, 4096)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAtLeast(nc, answer, 4); err != nil {
			b.Fatal(err)
		}
		p.mu.Lock()
		p.batches = p.batches[:0]
		p.mu.Unlock()
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
