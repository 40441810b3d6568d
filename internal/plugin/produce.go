package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

type produceOptions struct {
	*base
	separator string
	acks      string
	timeout   time.Duration
}

func produceCommand(b *base) *cobra.Command {
	o := produceOptions{base: b}
	c := &cobra.Command{
		Use:               "produce NAME",
		Short:             "Write lines from the standard input as records",
		Long:              "Write lines from the standard input as records, one per line, by Kafka's protocol through the API server.",
		Example:           "  echo hello | kubectl tidemark produce orders\n  kubectl tidemark produce orders --key-separator=: < pairs.txt",
		Args:              named,
		ValidArgsFunction: b.completeOne,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.separator, "key-separator", "", "what stands between key and value in a line; without it records have no key")
	f.StringVar(&o.acks, "acks", "all", "all: acknowledged by every in-sync replica; 1: by the leader alone; 0: by nobody")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "after how long without an acknowledgement a record has failed")
	complete(c, "acks", fixed("all", "1", "0"))
	return c
}

func (o *produceOptions) run(ctx context.Context, name string) error {
	acks, err := acksOptions(o.acks)
	if err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	n, err := newNetwork(ctx, c, name)
	if err != nil {
		return err
	}
	client, err := n.kafka(append(acks, kgo.DefaultProduceTopic(n.partition.EffectiveTopic()), kgo.RecordDeliveryTimeout(o.timeout),
		kgo.MaxBufferedRecords(1000), kgo.UnknownTopicRetries(-1))...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	t := tally{first: -1, last: -1}
	err = o.send(ctx, client, &t)
	if ferr := client.Flush(ctx); err == nil {
		err = ferr
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(o.ErrOut, t.text(o.acks))
	if t.err != nil {
		return fmt.Errorf("%d records have failed, the first with: %w; kubectl tidemark status %s says how the partition is", t.failed, t.err, name)
	}
	return err
}

func acksOptions(acks string) ([]kgo.Opt, error) {
	switch acks {
	case "all":
		return nil, nil
	case "1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}, nil
	case "0":
		return []kgo.Opt{kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()}, nil
	}
	return nil, fmt.Errorf("--acks %s is not known; all, 1 and 0 are", acks)
}

// send reads lines until the input or ctx ends, or a record has failed.
func (o *produceOptions) send(ctx context.Context, client *kgo.Client, t *tally) error {
	in := bufio.NewReader(o.In)
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if len(text) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read line %d: %w", line, err)
		}
		r, err := o.record(bytes.TrimSuffix(text, []byte("\n")))
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		client.Produce(ctx, r, t.note)
		if t.hasFailed() {
			return nil
		}
	}
}

func (o *produceOptions) record(line []byte) (*kgo.Record, error) {
	if o.separator == "" {
		return &kgo.Record{Value: line}, nil
	}
	key, value, ok := bytes.Cut(line, []byte(o.separator))
	if !ok {
		return nil, fmt.Errorf("there is no %q, so no key; nothing from this line on was sent", o.separator)
	}
	return &kgo.Record{Key: key, Value: value}, nil
}

// tally counts what has become of records.
type tally struct {
	mu              sync.Mutex
	written, failed int
	first, last     int64
	err             error
}

func (t *tally) note(r *kgo.Record, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed++
		if t.err == nil {
			t.err = err
		}
		return
	}
	if t.written == 0 {
		t.first = r.Offset
	}
	t.written++
	t.last = r.Offset
}

func (t *tally) hasFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

func (t *tally) text(acks string) string {
	switch {
	case acks == "0":
		return fmt.Sprintf("%d records sent; nobody has acknowledged them", t.written)
	case t.written == 0:
		return "no record written"
	}
	return fmt.Sprintf("%d records written, offsets %d to %d", t.written, t.first, t.last)
}
