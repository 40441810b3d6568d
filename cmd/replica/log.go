package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/logtool"
)

// Exit statuses of the log commands, beside 0.
const (
	statusDamaged = 1 // the log is damaged, or is not imported for what it is
	statusFailed  = 2 // it could not be read or written, or the command line is wrong
)

// exit is an error that says with which status the program ends.
type exit struct {
	error
	status int
}

// Unwrap gives the reason.
func (e exit) Unwrap() error { return e.error }

// logCommand is what administrators do with a log directory.
func logCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "log",
		Short: "Look into a log directory, check it, or make one of Kafka's",
		Long: `Look into a log directory, check it, or make one of Kafka's.

DIR is the directory of a partition (orders-0), Tidemark's or Kafka's, or a data directory
that holds exactly one. Nothing is written to it, and it may be in use.

Exit status: 0 if all is well; 1 if the log is damaged, or refused by import; 2 if it could
not be read, or the command line is wrong.`,
	}
	c.AddCommand(dumpCommand(), verifyCommand(), importCommand())
	for _, sub := range c.Commands() {
		args, run := sub.Args, sub.RunE
		sub.Args = func(c *cobra.Command, a []string) error { return failed(args(c, a)) }
		sub.RunE = func(c *cobra.Command, a []string) error { return failed(run(c, a)) }
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(err) })
	return c
}

// failed gives an error its status, unless it has one.
func failed(err error) error {
	var e exit
	if err == nil || errors.As(err, &e) {
		return err
	}
	return exit{err, statusFailed}
}

func dumpCommand() *cobra.Command {
	var o logtool.DumpOptions
	c := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print everything in a log directory",
		Example: `  replica log dump /var/lib/tidemark/orders-0
  replica log dump --json --records /var/lib/kafka/orders-3 | jq -c 'select(.kind == "record")'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, _, err := logtool.Find(args[0])
			if err != nil {
				return err
			}
			return logtool.Dump(c.OutOrStdout(), in, o)
		},
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "one JSON object a line; docs/log.md describes them")
	c.Flags().BoolVar(&o.Records, "records", false, "keys, values, headers and times of the records, too")
	return c
}

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check everything in a log directory, and say what is wrong and what to do",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, path, err := logtool.Find(args[0])
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			sum, err := log.Verify(in, findings(w))
			if err != nil {
				return fmt.Errorf("%s could not be read: %w", path, err)
			}
			return verdict(w, in, sum)
		},
	}
}

func findings(w io.Writer) func(log.Finding) {
	return func(f log.Finding) { fmt.Fprintln(w, f) }
}

func verdict(w io.Writer, in *log.Inspector, s log.Summary) error {
	fmt.Fprintf(w, "%s: offsets %d to %d, leader epoch %d; %d segments, %d batches, %d records, %d bytes; %d errors, %d warnings\n",
		in.Name, s.Start, s.End, s.Latest, s.Segments, s.Batches, s.Records, s.Bytes, s.Errors, s.Warnings)
	if s.Errors > 0 {
		return exit{fmt.Errorf("the log in %s is damaged", in.Name), statusDamaged}
	}
	return nil
}

func importCommand() *cobra.Command {
	var o logtool.ImportOptions
	var id string
	var replica int32
	c := &cobra.Command{
		Use:   "import SRC DATADIR --topic NAME",
		Short: "Make a Tidemark data directory of a log of Kafka's, or of another Tidemark's",
		Long: `Make a Tidemark data directory of a log of Kafka's, or of another Tidemark's.

SRC is verified, copied and never changed; stop its broker first. Everything in it counts as
committed, and leader epochs are kept. DATADIR must not hold a log.`,
		Example: `  replica log import /var/lib/kafka/orders-3 ./data/volume --topic orders
  replica standalone --data-dir ./data --topic orders`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Topic == "" {
				return errors.New("--topic is needed, as in: replica log import /var/lib/kafka/orders-3 ./data/volume --topic orders")
			}
			if id != "" {
				var err error
				if o.TopicID, err = epoch.ParseUUID(id); err != nil {
					return fmt.Errorf("--topic-id: %w", err)
				}
			}
			w := c.OutOrStdout()
			o.Replica, o.Report = epoch.ReplicaID(replica), findings(w)
			made, err := logtool.Import(args[0], args[1], o)
			if errors.Is(err, logtool.ErrRefused) {
				return exit{err, statusDamaged}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s: offsets %d to %d, all committed; leader epoch %d, topic id %s; %d bytes of an unfinished last write left out\n",
				filepath.Join(args[1], o.Topic+"-0"), made.Start, made.End, made.Latest, made.TopicID, made.TornBytes)
			return nil
		},
	}
	c.Flags().StringVar(&o.Topic, "topic", "", "name of the topic that the log becomes, as its partition 0")
	c.Flags().StringVar(&id, "topic-id", "", "id of the topic; empty for the log's own, or a new one if it has none")
	c.Flags().Int32Var(&replica, "replica-id", 0, "replica that the data directory is for")
	return c
}
