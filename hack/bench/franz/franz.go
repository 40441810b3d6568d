// Package franz is the client of every system that speaks Kafka's protocol: the same
// code and the same options for all of them.
package franz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

// maxInFlight is the produce requests of one producer that are under way at once: what
// Kafka allows an idempotent producer, and the client then does by itself.
const maxInFlight = 5

// Options are the client's own.
type Options struct {
	// Linger is how long a producer waits for a batch to grow.
	Linger time.Duration
}

// Settings tells them for a report.
func (o Options) Settings() string {
	return fmt.Sprintf("franz-go: linger %v, %d requests in flight per producer, no compression, batches up to 1,000,012 bytes, idempotent with acks=all, fetches of its defaults (1 MiB per partition)", o.Linger, maxInFlight)
}

// Cluster reaches a topic of one partition.
type Cluster struct {
	Seeds []string
	Topic string
	Options
}

type producer struct {
	client  *kgo.Client
	records sync.Pool
	batches atomic.Uint64
}

// Producer makes a producer with connections of its own.
func (c Cluster) Producer(acks system.Acks) (load.Producer, error) {
	p := &producer{records: sync.Pool{New: func() any { return new(kgo.Record) }}}
	opts := []kgo.Opt{kgo.SeedBrokers(c.Seeds...), kgo.DefaultProduceTopic(c.Topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(c.Linger), kgo.MaxBufferedRecords(1 << 20),
		kgo.RecordDeliveryTimeout(30 * time.Second), kgo.WithHooks((*counter)(&p.batches))}
	if acks == system.AcksOne {
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(maxInFlight))
	}
	var err error
	p.client, err = kgo.NewClient(opts...)
	return p, err
}

// counter counts batches as they are written.
type counter atomic.Uint64

var _ kgo.HookProduceBatchWritten = (*counter)(nil)

// OnProduceBatchWritten implements kgo's hook.
func (c *counter) OnProduceBatchWritten(kgo.BrokerMetadata, string, int32, kgo.ProduceBatchMetrics) {
	(*atomic.Uint64)(c).Add(1)
}

// Produce implements load.Producer.
func (p *producer) Produce(ctx context.Context, value []byte, done func(error)) {
	r := p.records.Get().(*kgo.Record)
	*r = kgo.Record{Value: value}
	p.client.Produce(ctx, r, func(r *kgo.Record, err error) {
		p.records.Put(r)
		done(err)
	})
}

// Batches implements load.Producer.
func (p *producer) Batches() uint64 { return p.batches.Load() }

// Close implements load.Producer.
func (p *producer) Close() { p.client.Close() }

// Consume reads records from the log's start.
func (c Cluster) Consume(ctx context.Context, records uint64) (system.Consumed, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return system.Consumed{}, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return system.Consumed{}, err
	}
	var got system.Consumed
	begun := time.Now()
	for got.Records < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return got, fmt.Errorf("read record %d of %d: %w", got.Records, records, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got.Records++
			got.Bytes += uint64(len(r.Value))
		})
	}
	got.Elapsed = time.Since(begun)
	return got, nil
}

// State is what the metadata say of the partition.
type State struct {
	Leader int32
	ISR    []int32
}

var errNotThere = errors.New("the topic is not there yet")

// State asks for it.
func (c Cluster) State(ctx context.Context) (State, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds...))
	if err != nil {
		return State{}, err
	}
	defer client.Close()
	ask := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(c.Topic)
	ask.Topics = append(ask.Topics, t)
	got, err := ask.RequestWith(ctx, client)
	if err != nil {
		return State{}, err
	}
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 || got.Topics[0].Partitions[0].Leader < 0 {
		return State{}, errNotThere
	}
	p := got.Topics[0].Partitions[0]
	return State{p.Leader, p.ISR}, nil
}

// Await asks until the state is as wanted, or ctx ends.
func (c Cluster) Await(ctx context.Context, ok func(State) bool) (State, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		s, err := c.State(one)
		cancel()
		if err == nil && ok(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("waited in vain for %s: the state is %+v, %w", c.Topic, s, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// AwaitInSync waits until there is a leader and n members of the ISR.
func (c Cluster) AwaitInSync(ctx context.Context, n int) (State, error) {
	return c.Await(ctx, func(s State) bool { return len(s.ISR) == n && slices.Contains(s.ISR, s.Leader) })
}
