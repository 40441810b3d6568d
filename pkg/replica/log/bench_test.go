package log

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func sized(bytes int) batch.Batch {
	return batch.NewBuilder().Record(1, nil, make([]byte, bytes-80)).Build()
}

func benchLog(b *testing.B) (*Log, string) {
	b.Helper()
	dir := b.TempDir()
	cfg := config()
	cfg.SegmentBytes = 256 << 20
	cfg.RetentionBytes = 1 << 30
	l, _, err := Open(vfs.OS{}, dir, cfg, false, quiet())
	must(b, err)
	return l, dir
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		for _, group := range []int{1, 8} {
			b.Run(fmt.Sprintf("%dKiB/x%d", size>>10, group), func(b *testing.B) {
				l, _ := benchLog(b)
				batches := make([]batch.Batch, group)
				for i := range batches {
					batches[i] = sized(size)
				}
				b.SetBytes(int64(group * len(batches[0])))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_, err := l.Append(0, batches)
					must(b, err)
					if i%4096 == 0 {
						must(b, l.SetStartOffset(max(0, l.EndOffset()-10000)))
					}
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		for _, window := range []int{64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%dKiB/by%dKiB", size>>10, window>>10), func(b *testing.B) {
				l, _ := benchLog(b)
				for l.Size() < 128<<20 {
					_, err := l.Append(0, []batch.Batch{sized(size)})
					must(b, err)
				}
				b.ReportAllocs()
				var from epoch.Offset
				for b.Loop() {
					got, err := l.Read(from, l.EndOffset(), window, true)
					must(b, err)
					b.SetBytes(int64(len(got)))
					if from += epoch.Offset(len(got) / size); from >= l.EndOffset()-epoch.Offset(window/size) {
						from = 0
					}
				}
			})
		}
	}
}

// BenchmarkRecovery opens an unclean log of 256 MiB.
func BenchmarkRecovery(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			l, dir := benchLog(b)
			for l.Size() < 255<<20 {
				_, err := l.Append(0, []batch.Batch{sized(size)})
				must(b, err)
			}
			b.SetBytes(l.Size())
			b.ReportAllocs()
			for b.Loop() {
				again, _, err := Open(vfs.OS{}, dir, l.cfg, false, quiet())
				must(b, err)
				if again.EndOffset() != l.EndOffset() {
					b.Fatalf("ends at %d", again.EndOffset())
				}
				again.discard(again.segments)
			}
		})
	}
}

// BenchmarkCompaction goes through 120,000 records of 256 bytes, half of them noise, of which
// nine tenths are superseded. The rate is that of the records as producers know them.
func BenchmarkCompaction(b *testing.B) {
	const records, keys = 120_000, 10_000
	for _, codec := range []batch.Codec{batch.CodecNone, batch.CodecLZ4, batch.CodecZstd} {
		b.Run(codec.String(), func(b *testing.B) {
			noise := rand.New(rand.NewPCG(1, 1))
			value := make([]byte, 256)
			b.SetBytes(records * int64(len(value)))
			for b.Loop() {
				b.StopTimer()
				l, _, err := Open(vfs.OS{}, b.TempDir(), Config{Topic: "orders", TopicID: topicID, SegmentBytes: 4 << 20}, false, quiet())
				must(b, err)
				for i := 0; i < records; {
					w := batch.NewBuilder().Codec(codec)
					for range 64 {
						for j := range len(value) / 2 {
							value[j] = byte(noise.Uint32())
						}
						w.Record(1000, fmt.Append(nil, "key-", i%keys), slices.Clone(value))
						i++
					}
					_, err := l.Append(1, []batch.Batch{w.Build()})
					must(b, err)
				}
				_, err = l.Flush()
				must(b, err)
				b.StartTimer()
				if !compact(b, l, rules(l)) {
					b.Fatal("nothing was compacted")
				}
				b.StopTimer()
				must(b, l.Close())
				b.StartTimer()
			}
		})
	}
}
