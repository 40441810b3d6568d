// Command cmd explores one configuration and prints what it found. With the build tag
// mutants, -off takes rules away:
//
//	go run ./internal/explore/cmd -replicas 2 -records 2 -elections 2 -changes 4 -crashes 1 -machine-crashes 1
//	go run -tags mutants ./internal/explore/cmd -off truncate-by-epoch -replicas 2 -crashes 1
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/tidemark-io/tidemark/internal/explore"
	"github.com/tidemark-io/tidemark/internal/guard"
)

func main() {
	c := explore.Config{}
	flag.IntVar(&c.Replicas, "replicas", 2, "replicas, up to 3")
	flag.IntVar(&c.MinISR, "min-isr", 1, "min ISR")
	flag.IntVar(&c.Records, "records", 2, "records produced, up to 4")
	flag.IntVar(&c.Elections, "elections", 2, "elections after the first")
	flag.IntVar(&c.Changes, "changes", 4, "changes of the record after the start")
	flag.IntVar(&c.Crashes, "crashes", 0, "crashes of a process")
	flag.IntVar(&c.MachineCrashes, "machine-crashes", 0, "crashes of a machine")
	flag.BoolVar(&c.EveryBatch, "every-batch", false, "durability EveryBatch")
	flag.BoolVar(&c.UndecidedWrites, "undecided", false, "writes of the record whose answer is lost")
	flag.BoolVar(&c.SkipNothing, "every-version", false, "followers may see every version of the record")
	flag.BoolVar(&c.StaleCheckpoint, "stale-checkpoint", false, "processes restart with high watermark 0")
	flag.BoolVar(&c.OnlyElections, "only-elections", false, "no timer runs out")
	flag.IntVar(&c.MaxStates, "max-states", 0, "end after so many states (0: never)")
	flag.DurationVar(&c.MaxTime, "max-time", 0, "end after that time (0: never)")
	fetching := flag.Int("fetching", 0, "0 prompt, 1 late answers, 2 disordered")
	off := flag.String("off", "", "guards to take away, by comma")
	memory := flag.Int64("memory", 5<<10, "soft limit of memory, MiB")
	flag.Parse()
	c.Fetching = explore.Fetching(*fetching)
	debug.SetMemoryLimit(*memory << 20)
	if err := run(c, *off); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(c explore.Config, off string) error {
	for name := range strings.SplitSeq(off, ",") {
		if name == "" {
			continue
		}
		g, ok := guard.Parse(name)
		if !ok || !guard.Switchable {
			return fmt.Errorf("cannot take away %q: no such guard, or a build without the tag mutants", name)
		}
		guard.SwitchOff(g)
	}
	r, err := explore.Explore(c)
	if err != nil {
		return err
	}
	fmt.Printf("%v\n%v\n%s", c, r, r.Trace)
	if r.Violation != "" && off == "" {
		return fmt.Errorf("a violation with all rules on")
	}
	return nil
}
