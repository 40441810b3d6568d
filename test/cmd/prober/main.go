// Prober writes a record every few milliseconds with acks=all until it is
// interrupted, and then reports how long nothing was acknowledged.
//
//	prober -brokers HOST:PORT,… -topic NAME [-since-file FILE] [-v]
//
// FILE holds a time in nanoseconds since 1970, such as `cluster.sh kill-pod`
// prints; the report is then about the outage after that moment. The exit
// status is 1 when a record failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

func main() {
	brokers := flag.String("brokers", "localhost:9092", "comma-separated `addresses`")
	topic := flag.String("topic", "", "topic to write to")
	every := flag.Duration("every", 5*time.Millisecond, "time between two records")
	since := flag.String("since-file", "", "`file` with the moment of the fault, read at the end")
	verbose := flag.Bool("v", false, "log what the client does")
	flag.Parse()
	cfg := prober.Config{Brokers: strings.Split(*brokers, ","), Topic: *topic, Every: *every, History: history.NewLog()}
	// One request at a time, since the cluster is measured: a client waits for each request that is under way to a lost
	// machine, one after the other.
	cfg.Options = append(cfg.Options, kgo.MaxProduceRequestsInflightPerBroker(1))
	if *verbose {
		cfg.Options = append(cfg.Options, kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelDebug, func() string {
			return time.Now().Format("15:04:05.000 ")
		})))
	}
	if err := run(cfg, *since); err != nil {
		fmt.Fprintln(os.Stderr, "prober:", err)
		os.Exit(1)
	}
}

func run(cfg prober.Config, sinceFile string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	p, err := prober.Start(cfg)
	if err != nil {
		return err
	}
	<-ctx.Done()
	since, err := moment(sinceFile)
	if err != nil {
		return err
	}
	gap := p.Longest(since)
	ctx, cancel = context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = p.Stop(ctx)
	sent, acked, failed := cfg.History.Counts()
	fmt.Printf("%d records sent, %d acknowledged, %d failed\n", sent, acked, failed)
	if gap.To.IsZero() {
		fmt.Println("nothing was acknowledged afterwards")
		return err
	}
	if !since.IsZero() {
		fmt.Printf("first acknowledged record after the fault: %d ms\n", gap.To.Sub(since).Milliseconds())
	}
	fmt.Printf("longest time without an acknowledgement: %d ms\n", gap.Length().Milliseconds())
	return err
}

// moment reads the time of the fault; the zero time without a file.
func moment(file string) (time.Time, error) {
	if file == "" {
		return time.Time{}, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s holds no time in nanoseconds: %w", file, err)
	}
	return time.Unix(0, ns), nil
}
