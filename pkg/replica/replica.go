package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/fetcher"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
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
	cfg      Config
	front    *front
	volume   *volume.Volume
	log      *log.Log
	recovery log.Recovery
	known    *epoch.Record // the newest record that the volume has acted upon
	startID  epoch.StartID
	proven   bool // the directory id's promise has been judged
}

// running is a registered process.
type running struct {
	*starting
	replica *Replica
	node    *node
	mailbox *mailbox
	servers []func(context.Context) error
}

// start opens the volume, recovers the log and registers.
func start(ctx context.Context, cfg Config, front *front) (*running, error) {
	s := &starting{cfg: cfg, front: front, startID: epoch.StartID(newID())}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	front.enter("Registering", "")
	snap, err := s.register(ctx)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("register: %w", err)
	}
	r, err := s.bind(snap)
	if err != nil {
		s.close()
		return nil, err
	}
	return r, nil
}

// bind puts core, loop, fetcher and servers together around a registered process.
func (s *starting) bind(snap epoch.Snapshot) (*running, error) {
	cfg := s.cfg
	mine, _ := snap.Record.Replica(cfg.ID)
	me := core.Identity{ID: cfg.ID, Session: mine.Session, StartID: s.startID, DirectoryID: mine.DirectoryID}
	m := newMailbox()
	mt := newMetrics(cfg.Registry)
	n := &node{cfg: cfg, settings: cfg.Settings, log: s.log, volume: s.volume, metrics: mt, started: time.Now(),
		produces: map[uint64]func(error){}, released: make(chan struct{})}
	n.core = core.New(me, coreOptions(cfg.Settings), s.log, s.log.CheckpointedHighWatermark(), newChangeID)
	n.records = &recordClient{store: cfg.Records, mailbox: m, timeout: min(5*time.Second, cfg.Settings.LeaseDuration/2), metrics: mt}
	n.fetcher = fetcher.New(fetcher.Config{Me: me, Topic: cfg.Topic, TopicID: cfg.TopicID, MaxWait: cfg.Settings.FetchMaxWait,
		MaxBytes: cfg.Settings.FetchMaxBytes, Log: cfg.Log.WithName("fetcher")}, &fetchOwner{m})
	r := &Replica{node: n, log: s.log, mailbox: m, identity: me}
	r.maxMessage.Store(int64(cfg.Settings.MaxMessageBytes))
	n.core.Observe(n.now(), snap, core.FromWrite)
	n.publish()
	r.registerState(cfg.Registry)
	run := &running{starting: s, replica: r, node: n, mailbox: m}
	km := kafka.NewMetrics(cfg.Registry)
	for _, l := range []struct {
		address string
		kind    kafka.Listener
	}{{cfg.ClientListen, kafka.Clients}, {cfg.ReplicationListen, kafka.Replication}} {
		if l.address == "" {
			continue
		}
		serve, err := listenKafka(l.address, &kafka.Server{Partition: r, Listener: l.kind, Limits: limits(l.kind), Log: cfg.Log.WithName("kafka"), Metrics: km})
		if err != nil {
			return nil, err
		}
		run.servers = append(run.servers, serve)
	}
	cfg.Log.Info("registered", "replica", cfg.ID, "session", me.Session, "directoryID", me.DirectoryID.String(),
		"logStartOffset", s.log.StartOffset(), "logEndOffset", s.log.EndOffset(), "epochCache", s.log.EpochCache().String())
	return run, nil
}

// limits are the server's defaults, but for followers: what they may fetch at once is
// set by spec.replication.fetchMaxBytes.
func limits(l kafka.Listener) kafka.Limits {
	if l == kafka.Replication {
		return kafka.Limits{MaxFetchBytes: 100 << 20}
	}
	return kafka.Limits{}
}

func coreOptions(s Settings) core.Options {
	return core.Options{LagTimeMax: s.LagTimeMax, LeaseDuration: s.LeaseDuration, FlushEveryBatch: s.FlushEveryBatch}
}

// serve runs everything until ctx ends or the loop fails.
func (r *running) serve(ctx context.Context) error {
	background, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.node.records.ctx = background
	loop := make(chan error, 1)
	loopCtx, endLoop := context.WithCancel(background)
	defer endLoop()
	go func() { loop <- r.node.run(loopCtx, r.mailbox) }()
	servers := r.serveKafka(background)
	r.node.records.running.Go(func() { r.node.records.watch(background) })
	if r.cfg.WatchSettings != nil {
		r.node.records.running.Go(func() {
			r.cfg.WatchSettings(background, func(s Settings) { r.mailbox.post(func(n *node) { n.configure(r.replica, s) }) })
		})
	}
	r.front.replica.Store(r.replica)
	r.front.enter("Serving", "")
	select {
	case err := <-loop:
		cancel()
		servers.stop()
		r.node.fetcher.Close()
		r.close()
		return err
	case <-ctx.Done():
	}
	r.handOver()
	servers.stop()
	endLoop()
	err := <-loop
	r.node.fetcher.Close()
	cancel()
	r.node.records.running.Wait()
	if err != nil {
		r.close()
		return err
	}
	return r.finish()
}

// handOver waits until nobody needs this replica any more, but not for ever.
func (r *running) handOver() {
	r.front.enter("Stopping", "")
	begun := time.Now()
	r.cfg.Log.Info("stopping: handing over and leaving the ISR")
	r.mailbox.post((*node).stop)
	timeout := time.NewTimer(r.cfg.StopTimeout)
	defer timeout.Stop()
	select {
	case <-r.node.released:
		r.cfg.Log.Info("released", "seconds", time.Since(begun).Seconds())
	case <-r.mailbox.ended:
	case <-timeout.C:
		r.cfg.Log.Info("nobody could take over in time; stopping all the same", "seconds", time.Since(begun).Seconds())
	}
}

// finish flushes everything and writes the clean mark, in this order.
func (r *running) finish() error {
	hw := r.node.core.HighWatermark()
	if _, err := r.log.Flush(); err != nil {
		r.volume.MarkError()
		r.close()
		return fmt.Errorf("flush the log at the end: %w", err)
	}
	if err := r.log.Checkpoint(hw); err != nil {
		r.close()
		return fmt.Errorf("write the checkpoints at the end: %w", err)
	}
	if err := r.log.Close(); err != nil {
		r.close()
		return fmt.Errorf("close the log: %w", err)
	}
	r.starting.log = nil
	if err := r.volume.WriteCleanMark(r.replica.identity.Session, r.startID); err != nil {
		r.close()
		return fmt.Errorf("mark the volume as cleanly stopped: %w", err)
	}
	r.cfg.Log.Info("stopped in good order", "highWatermark", hw)
	r.close()
	return nil
}
