package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/fetcher"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// defaultStopTimeout bounds an orderly stop.
const defaultStopTimeout = 20 * time.Second

// Run runs a replica until ctx ends, and then ends it in good order: it hands over
// its leadership, leaves the ISR, flushes, and marks the volume as cleanly stopped.
// An error means that the process could not start or must not go on.
func Run(ctx context.Context, cfg Config) error {
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = defaultStopTimeout
	}
	if cfg.Registry == nil {
		cfg.Registry = prometheus.NewRegistry()
	}
	front := newFront(cfg)
	stopHTTP, err := front.serve(cfg.HTTPListen, cfg.Registry)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	defer stopHTTP()
	s, err := start(ctx, cfg, front)
	if err != nil && ctx.Err() != nil {
		cfg.Log.Info("stopped before it served")
		return nil
	}
	if err != nil {
		return err
	}
	return s.serve(ctx)
}

// starting is a process before it serves: its volume is open, and it registers.
type starting struct {
	cfg     Config
	front   *front
	process *node.Starting
}

// running is a registered process.
type running struct {
	cfg     Config
	front   *front
	replica *Replica
	node    *node.Node
	records *recordClient
	fetcher *fetcher.Fetcher
	mailbox *mailbox
	servers []func(context.Context) error
	// budget and kafkaMetrics are shared by all listeners.
	budget       *semaphore.Weighted
	kafkaMetrics *kafka.Metrics
	outside      *outside
}

// start opens the volume, recovers the log and registers.
func start(ctx context.Context, cfg Config, front *front) (*running, error) {
	front.enter("Recovering", "reading the log")
	nc := nodeConfig(cfg)
	nc.Checking = newRecoveryClock(cfg.Log, front).checking
	process, err := node.Open(nc)
	if err != nil {
		return nil, err
	}
	s := &starting{cfg: cfg, front: front, process: process}
	front.enter("Registering", "")
	snap, err := s.register(ctx)
	if err != nil {
		process.Close()
		return nil, fmt.Errorf("register: %w", err)
	}
	return s.bind(snap)
}

func nodeConfig(cfg Config) node.Config {
	begun := time.Now()
	return node.Config{
		Volume: volume.Config{Dir: cfg.DataDir, WitnessDir: cfg.WitnessDir, Topic: cfg.Topic, TopicID: cfg.TopicID, ReplicaID: cfg.ID,
			BootID: cfg.BootID, PodUID: cfg.PodUID, Log: cfg.Log.WithName("volume")},
		StartID: epoch.StartID(newID()), Address: cfg.Address, RestartCount: cfg.RestartCount, Settings: cfg.Settings,
		Now: func() time.Duration { return time.Since(begun) }, Wall: time.Now, NewChangeID: newChangeID, Log: cfg.Log,
	}
}

// bind puts node, fetcher and servers together around a registered process.
func (s *starting) bind(snap epoch.Snapshot) (*running, error) {
	cfg := s.cfg
	me := s.process.Identity(snap)
	m := newMailbox()
	mt := newMetrics(cfg.Registry)
	r := &Replica{mailbox: m, identity: me, topic: cfg.Topic, topicID: cfg.TopicID}
	r.configure(cfg.Settings)
	run := &running{cfg: cfg, front: s.front, replica: r, mailbox: m}
	run.records = &recordClient{store: cfg.Records, mailbox: m, timeout: min(5*time.Second, cfg.Settings.LeaseDuration/2), metrics: mt}
	run.fetcher = fetcher.New(fetcher.Config{Me: me, Topic: cfg.Topic, TopicID: cfg.TopicID, MaxWait: cfg.Settings.FetchMaxWait,
		MaxBytes: cfg.Settings.FetchMaxBytes, Log: cfg.Log.WithName("fetcher")}, &fetchOwner{m})
	run.node = s.process.Serve(snap, node.Ports{Records: run.records, Fetcher: run.fetcher, Flush: run.records.flush, Compact: run.records.compact, Published: r.publish,
		Regressed: func(epoch.Record, epoch.Record) { mt.regressions.Inc() }})
	r.node = run.node
	r.registerState(cfg.Registry)
	if err := run.listen(); err != nil {
		run.node.Close()
		return nil, err
	}
	return run, nil
}

// listen opens both ports.
func (r *running) listen() error {
	r.kafkaMetrics = kafka.NewMetrics(r.cfg.Registry)
	budget, err := kafka.Limits{}.Budget()
	if err != nil {
		return err
	}
	r.budget, r.outside = budget, r.newOutside()
	for _, l := range []struct {
		address string
		kind    kafka.Listener
	}{{r.cfg.ClientListen, kafka.Clients}, {r.cfg.ReplicationListen, kafka.Replication}} {
		if l.address == "" {
			continue
		}
		serve, err := listenKafka(l.address, &kafka.Server{Partition: r.replica, Listener: l.kind, Limits: limits(l.kind), Budget: r.budgetOf(l.kind), Log: r.cfg.Log.WithName("kafka"), Metrics: r.kafkaMetrics})
		if err != nil {
			return err
		}
		r.servers = append(r.servers, serve)
	}
	return nil
}

// limits are the server's defaults, but for followers: what they may fetch at once is
// set by spec.replication.fetchMaxBytes.
func limits(l kafka.Listener) kafka.Limits {
	if l == kafka.Replication {
		return kafka.Limits{MaxFetchBytes: 100 << 20}
	}
	return kafka.Limits{}
}

// budgetOf is one for all clients together. Followers have their own: clients must not keep
// them from fetching.
func (r *running) budgetOf(l kafka.Listener) *semaphore.Weighted {
	if l == kafka.Replication {
		return nil
	}
	return r.budget
}

// serve runs everything until ctx ends or the loop fails.
func (r *running) serve(ctx context.Context) error {
	background, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.records.ctx = background
	loop := make(chan error, 1)
	loopCtx, endLoop := context.WithCancel(background)
	defer endLoop()
	go func() { loop <- r.mailbox.run(loopCtx, r.node) }()
	servers := r.serveKafka(background)
	r.records.running.Go(func() { r.records.watch(background) })
	r.records.running.Go(func() { r.replica.scrub(background) })
	r.front.outside.Store(r.outside)
	r.front.replica.Store(r.replica)
	r.front.enter("Serving", "")
	select {
	case err := <-loop:
		cancel()
		servers.stop()
		r.fetcher.Close()
		r.node.Close()
		return err
	case <-ctx.Done():
	}
	r.handOver()
	servers.stop()
	endLoop()
	err := <-loop
	r.fetcher.Close()
	cancel()
	r.records.running.Wait()
	if err != nil {
		r.node.Close()
		return err
	}
	return r.node.Finish()
}

// watchSpec opens the listeners for clients outside of the cluster, and follows the spec
// until ctx ends. Then they are closed.
func (r *running) watchSpec(ctx context.Context) {
	defer r.outside.stop()
	r.outside.set(ctx, r.cfg.Listeners)
	if r.cfg.WatchSpec == nil {
		<-ctx.Done()
		return
	}
	r.cfg.WatchSpec(ctx, func(s Spec) {
		r.mailbox.post(func(n *node.Node) { n.Configure(s.Settings) })
		r.replica.configure(s.Settings)
		r.outside.set(ctx, s.Listeners)
	})
}

// handOver waits until nobody needs this replica any more, but not for ever.
func (r *running) handOver() {
	r.front.enter("Stopping", "")
	begun := time.Now()
	r.cfg.Log.Info("stopping: handing over and leaving the ISR")
	r.mailbox.post((*node.Node).Stop)
	timeout := time.NewTimer(r.cfg.StopTimeout)
	defer timeout.Stop()
	select {
	case <-r.mailbox.released:
		r.cfg.Log.Info("released", "seconds", time.Since(begun).Seconds())
	case <-r.mailbox.ended:
	case <-timeout.C:
		r.cfg.Log.Info("nobody could take over in time; stopping all the same", "seconds", time.Since(begun).Seconds())
	}
}
