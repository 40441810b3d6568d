package prober

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
)

func consumer(brokers []string, topic string, options []kgo.Opt) (*kgo.Client, error) {
	opts := append(impatient(brokers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
	)
	return kgo.NewClient(append(opts, options...)...)
}

// ReadAll reads the topic from its start to its high watermark, and at least
// to atLeast, which must be positive: a new leader may for a moment not know how
// far commits went, and an empty topic has no end that a consumer is told of.
func ReadAll(ctx context.Context, brokers []string, topic string, atLeast int64, options ...kgo.Opt) ([]history.Record, error) {
	client, err := consumer(brokers, topic, options)
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
	r, err := StartReader(brokers, topic)
	if err != nil {
		return nil, err
	}
	return func() []history.Record {
		<-ctx.Done()
		records, _ := r.Stop() // what went wrong shows in what was read
		return records
	}, nil
}
