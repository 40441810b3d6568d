package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

type consumeOptions struct {
	*base
	beginning, follow, keys, offsets bool
	offset                           string
	most                             int64
	timeout                          time.Duration
}

func consumeCommand(b *base) *cobra.Command {
	o := consumeOptions{base: b}
	c := &cobra.Command{
		Use:   "consume NAME",
		Short: "Print committed records",
		Long: `Print the values of committed records, one per line, by Kafka's protocol through the API server.

Without --follow it ends at the high watermark of the moment at which it began. It begins at
the log's start, or with --follow at its end.`,
		Example: `  kubectl tidemark consume orders
  kubectl tidemark consume orders --offset=-10 --print-offsets   # the last ten
  kubectl tidemark consume orders --follow`,
		Args:              named,
		ValidArgsFunction: b.completeOne,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.BoolVar(&o.beginning, "from-beginning", false, "begin at the log's start")
	f.StringVar(&o.offset, "offset", "", "begin at this offset; -N: N offsets before the end")
	f.Int64Var(&o.most, "max-messages", 0, "end after so many records")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what is written later, until interrupted")
	f.BoolVar(&o.offsets, "print-offsets", false, "print each record's offset before it")
	f.BoolVar(&o.keys, "print-keys", false, "print each record's key before its value")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long to go on without an answer from a leader")
	c.MarkFlagsMutuallyExclusive("from-beginning", "offset")
	return c
}

func (o *consumeOptions) run(ctx context.Context, name string) error {
	start, err := o.start()
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
	client, err := n.kafka()
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	out := bufio.NewWriter(o.Out)
	r := reader{client: client, topic: n.partition.EffectiveTopic(), name: name, timeout: o.timeout}
	err = o.read(ctx, &r, start, out)
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if o.follow && ctx.Err() != nil {
		return nil // that is how it ends
	}
	return err
}

// beginning is where to begin: at an offset of the log, or that many before its end.
type beginning struct {
	offset  int64
	fromEnd bool
}

func (o *consumeOptions) start() (beginning, error) {
	switch {
	case o.most < 0:
		return beginning{}, fmt.Errorf("--max-messages %d is no number of records", o.most)
	case o.offset == "":
		return beginning{offset: 0, fromEnd: o.follow && !o.beginning}, nil
	}
	n, err := strconv.ParseInt(o.offset, 10, 64)
	if err != nil {
		return beginning{}, fmt.Errorf("--offset %s is not a number", o.offset)
	}
	if n < 0 {
		return beginning{offset: n, fromEnd: true}, nil
	}
	return beginning{offset: n}, nil
}

var errEnough = errors.New("as many records as were asked for")

// read prints from the beginning to the end that is there, or on and on.
func (o *consumeOptions) read(ctx context.Context, r *reader, b beginning, out *bufio.Writer) error {
	from, end, err := r.bounds(ctx)
	if err != nil {
		return err
	}
	next := max(b.offset, from)
	switch {
	case b.fromEnd:
		next = max(end+b.offset, from)
	case o.offset != "" && (b.offset < from || b.offset > end):
		return fmt.Errorf("offset %d is not there: the log holds offsets from %d to %d", b.offset, from, end)
	}
	printed := int64(0)
	for o.follow || next < end {
		next, err = r.fetch(ctx, next, func(rec batch.Record) error {
			if !o.follow && rec.Offset >= epochOffset(end) {
				return nil
			}
			if err := o.print(out, rec); err != nil {
				return err
			}
			if printed++; printed == o.most {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (o *consumeOptions) print(out io.Writer, r batch.Record) error {
	var line []byte
	if o.offsets {
		line = append(strconv.AppendInt(line, int64(r.Offset), 10), '\t')
	}
	if o.keys {
		line = append(append(line, orNull(r.Key)...), '\t')
	}
	line = append(append(line, orNull(r.Value)...), '\n')
	_, err := out.Write(line)
	return err
}

// orNull shows that there is nothing, which is not the same as an empty text.
func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}
