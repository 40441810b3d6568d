package replica

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/fetcher"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// listenKafka opens the port at once, so that a port in use is told at start.
func listenKafka(address string, s *kafka.Server) (func(context.Context) error, error) {
	var lc net.ListenConfig
	if s.Listener == kafka.Replication {
		lc = net.ListenConfig{KeepAliveConfig: fetcher.KeepAlive, Control: fetcher.LimitSilence}
	}
	ln, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", s.Listener, err)
	}
	return func(ctx context.Context) error { return s.Serve(ctx, ln) }, nil
}

// kafkaServers are the listeners at work.
type kafkaServers struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (r *running) serveKafka(ctx context.Context) *kafkaServers {
	ctx, cancel := context.WithCancel(ctx)
	s := &kafkaServers{cancel: cancel}
	for _, serve := range r.servers {
		s.done.Go(func() {
			if err := serve(ctx); err != nil {
				r.cfg.Log.Error(err, "a listener has failed; ending")
				r.mailbox.post(func(n *node.Node) { n.Quit(err) })
			}
		})
	}
	s.done.Go(func() { r.watchSpec(ctx) })
	return s
}

func (s *kafkaServers) stop() {
	s.cancel()
	s.done.Wait()
}

// fetchOwner is the fetch loop's way to the core.
type fetchOwner struct{ mailbox *mailbox }

func (o *fetchOwner) NextFetch(ctx context.Context) (core.FetchRequest, bool) {
	type next struct {
		request core.FetchRequest
		ok      bool
	}
	answer := make(chan next, 1)
	if !o.mailbox.ask(ctx, func(n *node.Node) {
		q, ok := n.NextFetch()
		answer <- next{q, ok}
	}) {
		return core.FetchRequest{}, false
	}
	a := <-answer
	return a.request, a.ok
}

func (o *fetchOwner) Fetched(ctx context.Context, q core.FetchRequest, a core.FetchResponse) {
	o.mailbox.ask(ctx, func(n *node.Node) { n.Fetched(q, a) })
}

func (o *fetchOwner) OutOfRange(ctx context.Context, q core.FetchRequest, start, end epoch.Offset) {
	o.mailbox.ask(ctx, func(n *node.Node) { n.OutOfRange(q, start, end) })
}

func (o *fetchOwner) LeaderEnded(ctx context.Context, e epoch.LeaderEpoch) {
	o.mailbox.ask(ctx, func(n *node.Node) { n.LeaderEnded(e) })
}

func (o *fetchOwner) FetchFailed(ctx context.Context, q core.FetchRequest, fenced bool) {
	o.mailbox.ask(ctx, func(n *node.Node) { n.FetchFailed(q, fenced) })
}
