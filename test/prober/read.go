package prober

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
)

func consumer(brokers []string, topic string) (*kgo.Client, error) {
	return kgo.NewClient(append(impatient(brokers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
	)...)
}

// ReadAll reads the topic from its start to its high watermark, and at least
// to atLeast, which must be positive: a new leader may for a moment not know how
// far commits went, and an empty topic has no end that a consumer is told of.
func ReadAll(ctx context.Context, brokers []string, topic string, atLeast int64) ([]history.Record, error) {
	client, err := consumer(brokers, topic)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer client.Close()
	var all []history.Record
	next := int64(0)
	for {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return all, fmt.Errorf("read %s: at offset %d of at least %d: %w", topic, next, atLeast, err)
		}
		reached := false
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				all = append(all, history.Record{Offset: r.Offset, Value: string(r.Value)})
				next = r.Offset + 1
			}
			// Only the newest answer's watermark counts; one that came with an error has none.
			reached = p.Err == nil && next >= p.HighWatermark && next >= atLeast
		})
		if reached {
			return all, nil
		}
	}
}

// Follow reads the topic from its start, as far as it is committed, until ctx
// ends; then it returns what it saw. Records are kept in the order in which
// they came, whatever their offsets.
func Follow(ctx context.Context, brokers []string, topic string) (func() []history.Record, error) {
	client, err := consumer(brokers, topic)
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", topic, err)
	}
	var seen []history.Record
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				seen = append(seen, history.Record{Offset: r.Offset, Value: string(r.Value)})
			})
		}
	}()
	return func() []history.Record { <-done; return seen }, nil
}
