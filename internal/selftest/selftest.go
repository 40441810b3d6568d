package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Config says what to make. All but StorageClassName and Options is required.
type Config struct {
	// Namespace and Name are the partition's. One of that name which an earlier run left
	// is replaced, any other is refused.
	Namespace, Name string
	// Replicas of the partition.
	Replicas int32
	// Records to produce and consume.
	Records int
	// StorageSize of each volume, as a Kubernetes quantity.
	StorageSize string
	// StorageClassName of the volumes; the cluster's default when empty.
	StorageClassName string
	// Out is told of each step.
	Out io.Writer
	// Options are added to those of the Kafka client, last.
	Options []kgo.Opt
}

// removeWithin is how long the removal may take when the time for the test is over.
const removeWithin = 30 * time.Second

// Run carries the test out. The partition is removed in any case; an error of that is
// an error of the test.
func Run(ctx context.Context, api client.Client, c Config) (err error) {
	rp, err := c.parse()
	if err != nil {
		return err
	}
	if err := create(ctx, api, rp); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "created the partition %s/%s of %d replicas\n", rp.Namespace, rp.Name, c.Replicas)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		if gone := remove(ctx, api, rp); gone != nil {
			err = errors.Join(err, gone)
			return
		}
		fmt.Fprintln(c.Out, "removed the partition")
	}()
	if err := awaitReady(ctx, api, rp); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s leads in epoch %d\n", rp.Status.Leader, rp.Status.LeaderEpoch)
	return c.roundTrip(ctx, rp)
}

// roundTrip produces with acks=all, and consumes the same records in the same order.
func (c Config) roundTrip(ctx context.Context, rp *v1alpha1.ReplicatedPartition) error {
	broker := net.JoinHostPort(rp.ServiceName()+"."+rp.Namespace+".svc", strconv.Itoa(v1alpha1.PortKafka))
	topic := rp.EffectiveTopic()
	k, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(broker),
		kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.UnknownTopicRetries(-1),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
	}, c.Options...)...)
	if err != nil {
		return fmt.Errorf("make a Kafka client for %s: %w", broker, err)
	}
	defer k.Close()
	// The UID makes the records those of this run.
	value := func(i int) string { return fmt.Sprintf("%s %d", rp.UID, i) }
	records := make([]*kgo.Record, c.Records)
	for i := range records {
		records[i] = kgo.StringRecord(value(i))
	}
	if err := k.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce %d records to topic %s at %s: %w", c.Records, topic, broker, err)
	}
	fmt.Fprintf(c.Out, "produced %d records with acks=all to topic %s at %s\n", c.Records, topic, broker)
	if err := consume(ctx, k, c.Records, value); err != nil {
		return fmt.Errorf("consume topic %s at %s: %w", topic, broker, err)
	}
	fmt.Fprintf(c.Out, "consumed the same %d records in the same order\n", c.Records)
	return nil
}

func consume(ctx context.Context, k *kgo.Client, n int, want func(int) string) error {
	for seen := 0; seen < n; {
		fetches := k.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("after %d records: %w", seen, err)
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d records: %w", seen, err)
		}
		for it := fetches.RecordIter(); !it.Done(); seen++ {
			r := it.Next()
			if seen >= n {
				return fmt.Errorf("there are more than the %d records that were produced", n)
			}
			if r.Offset != int64(seen) || string(r.Value) != want(seen) {
				return fmt.Errorf("offset %d has %q, want offset %d with %q", r.Offset, r.Value, seen, want(seen))
			}
		}
	}
	return nil
}
