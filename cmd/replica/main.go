// Command replica runs one replica of a Tidemark partition.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replica: "+err.Error())
	}
	return statusOf(err)
}

// statusOf is what the program ends with.
func statusOf(err error) int {
	var e exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.status
	}
	return 1
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:           "replica",
		Short:         "One replica of a Tidemark partition: a Kafka-compatible, replicated, ordered log",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(runCommand(), standaloneCommand(), logCommand())
	return c
}

// logger writes to standard error, as text for a person or JSON for a collector.
func logger(format string, verbosity int) (logr.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	switch format {
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, opts)), nil
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, opts)), nil
	}
	return logr.Logger{}, fmt.Errorf("--log-format %q: use text or json", format)
}

type logFlags struct {
	format    string
	verbosity int
}

func (l *logFlags) add(c *cobra.Command, format string) {
	c.Flags().StringVar(&l.format, "log-format", format, "log as text or json")
	c.Flags().IntVarP(&l.verbosity, "verbosity", "v", 0, "more log lines with 1 and above")
}
