// Throughput measures how many records a second a partition takes and gives, with
// franz-go as it is configured by default: idempotent, acks=all, batches as they come.
//
//	throughput -brokers HOST:PORT,… -topic NAME [-records N] [-size BYTES]
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	brokers := flag.String("brokers", "localhost:9092", "comma-separated `addresses`")
	topic := flag.String("topic", "", "topic to write to and read")
	records := flag.Int("records", 1_000_000, "how many records")
	size := flag.Int("size", 100, "`bytes` of a record's value")
	flag.Parse()
	if err := run(context.Background(), strings.Split(*brokers, ","), *topic, *records, *size); err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, brokers []string, topic string, records, size int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	first, err := produce(ctx, brokers, topic, records, size)
	if err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	if err := consume(ctx, brokers, topic, first, records, size); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return nil
}

// produce returns the offset of the first record.
func produce(ctx context.Context, brokers []string, topic string, records, size int) (int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(rand.IntN(256))
	}
	one, err := client.ProduceSync(ctx, &kgo.Record{Value: value}).First()
	if err != nil {
		return 0, err
	}
	var failed atomic.Pointer[error]
	begun := time.Now()
	for range records {
		client.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	report("produced", records, size, time.Since(begun))
	return one.Offset + 1, nil
}

func consume(ctx context.Context, brokers []string, topic string, from int64, records, size int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}))
	if err != nil {
		return err
	}
	defer client.Close()
	begun := time.Now()
	for n := 0; n < records; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		n += fetches.NumRecords()
	}
	report("consumed", records, size, time.Since(begun))
	return nil
}

func report(what string, records, size int, took time.Duration) {
	fmt.Printf("%s %d records of %d bytes in %.2f s: %.0f records/s, %.1f MB/s\n",
		what, records, size, took.Seconds(), float64(records)/took.Seconds(), float64(records*size)/took.Seconds()/1e6)
}
