// Command replica is one of three replicas of a partition whose record is in a file that
// they share: what `replica run` is in a pod, without Kubernetes. The rest is the
// product's own code.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" // for a profile of what is measured; served only where -pprof says
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tidemark-io/tidemark/hack/bench/tidemark"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica"
)

func main() {
	var cfg replica.Config
	id := flag.Int("id", 0, "id of this replica")
	records := flag.String("record-dir", "", "directory of the partition record, the same for all replicas")
	flag.StringVar(&cfg.Topic, "topic", "bench", "name of the topic")
	flag.StringVar(&cfg.DataDir, "data-dir", "", "the volume")
	flag.StringVar(&cfg.WitnessDir, "witness-dir", "", "directory on tmpfs")
	port := flag.Int("port", 0, "first of the four ports: Kafka clients, replication, HTTP, pprof")
	never := flag.Bool("flush-never", false, "do not fsync every batch")
	pprof := flag.Bool("pprof", false, "serve net/http/pprof on the fourth port")
	flag.Parse()
	cfg.ID, cfg.Settings = epoch.ReplicaID(*id), replica.DefaultSettings()
	cfg.Settings.FlushEveryBatch = !*never
	cfg.BootID, cfg.PodUID = "bench", "bench-"+strconv.Itoa(*id)
	cfg.Records = tidemark.Records{Dir: *records}
	cfg.TopicID = tidemark.TopicID
	local := func(n int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(*port+n)) }
	cfg.ClientListen, cfg.ReplicationListen, cfg.HTTPListen = local(0), local(1), local(2)
	cfg.Address = epoch.Address{Host: "127.0.0.1", ClientPort: int32(*port), ReplicationPort: int32(*port + 1)}
	cfg.Log = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	cfg.Registry = prometheus.NewRegistry()
	cfg.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if *pprof {
		go func() { fmt.Fprintln(os.Stderr, "pprof:", http.ListenAndServe(local(3), nil)) }()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := replica.Run(ctx, cfg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}
