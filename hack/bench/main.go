// Command bench measures a whole Tidemark partition on this machine, beside what the
// machine can do with no product at all, and beside its peers. README.md says what is
// measured and how.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-io/tidemark/hack/bench/floor"
)

func main() {
	err := do(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	if len(args) > 1 && args[0] == floor.ReceiverCommand {
		return floor.Receive(args[1], args[2:])
	}
	p, err := parsePlan(flag.CommandLine, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return run(ctx, p)
}
