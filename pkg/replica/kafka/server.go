package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Listener says whom a server serves.
type Listener int

const (
	// Clients is the listener of producers, consumers and admin tools. It refuses
	// every request that claims to come from a replica.
	Clients Listener = iota
	// Replication is the listener of the other replicas: the only one whose fetches
	// move the high watermark (DESIGN.md rule 9).
	Replication
	// External is a listener of clients outside of the cluster: as Clients, but for the
	// addresses that they are told.
	External
)

func (l Listener) String() string {
	return [...]string{"clients", "replication", "external"}[l]
}

// Server speaks Kafka's protocol for one partition on one listener. The fields are
// set before Serve and left alone from then on.
type Server struct {
	// Partition is what is served. Required.
	Partition Partition
	// Listener says whom.
	Listener Listener
	// Advertised tells where clients of an External listener reach a replica, false while
	// that is not known; others are told the address in the partition record. It is called
	// for every Metadata request and for every refusal, so it must be cheap.
	Advertised func(epoch.ReplicaID) (Endpoint, bool)
	// Limits bound what clients can make the server hold.
	Limits Limits
	// Budget, from Limits.Budget, is shared by the servers of one process, so that more
	// listeners do not mean more memory; nil for one of the server's own.
	Budget *semaphore.Weighted
	// Log gets one V(1) line for each connection closed because of what it sent, and
	// every error that has no code of its own. The zero value discards.
	Log logr.Logger
	// Metrics may be shared by several servers; nil counts nothing.
	Metrics *Metrics

	// epochs keeps Metadata from ever telling an older leader than before.
	epochs epochGuard
}

// connectionIDs are unique among all servers of the process.
var connectionIDs atomic.Uint64

// serving is one run of Serve: the server with its defaults resolved.
type serving struct {
	*Server
	limits  Limits
	metrics *listenerMetrics
	budget  *semaphore.Weighted
	apis    []*api
	conns   sync.WaitGroup
	open    atomic.Int64
}

// Serve accepts connections on ln until ctx ends, then answers what is due within
// Limits.DrainTimeout, closes every connection and returns nil with no goroutine
// left. It closes ln in any case. An error means that the limits are unusable or
// that the listener failed for good.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	sv, err := s.start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer sv.conns.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	return sv.accept(ctx, ln)
}

func (s *Server) start() (*serving, error) {
	if s.Partition == nil {
		return nil, errors.New("kafka.Server needs a Partition")
	}
	if s.Listener == External && s.Advertised == nil {
		return nil, errors.New("kafka.Server needs to know what an external listener advertises")
	}
	limits, err := s.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	sv := &serving{
		Server: s, limits: limits, metrics: s.Metrics.of(s.Listener), budget: s.Budget,
	}
	if sv.budget == nil {
		sv.budget = semaphore.NewWeighted(limits.MaxInFlightBytes)
	}
	for _, a := range apis {
		if a.servedOn(s.Listener) {
			sv.apis = append(sv.apis, a)
		}
	}
	return sv, nil
}

// accept takes connections. A failing accept, as with no file descriptor left, is
// retried with growing pauses: the open connections may go away.
func (sv *serving) accept(ctx context.Context, ln net.Listener) error {
	const maxPause = time.Second
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			sv.serveConn(ctx, nc)
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept on the %s listener: %w", sv.Listener, err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), maxPause)
		sv.Log.V(1).Info("cannot accept a connection, trying again", "listener", sv.Listener.String(), "pause", pause, "error", err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (sv *serving) serveConn(ctx context.Context, nc net.Conn) {
	if sv.open.Add(1) > int64(sv.limits.MaxConnections) {
		sv.open.Add(-1)
		sv.metrics.closed.Inc()
		sv.Log.V(1).Info("connection refused: too many are open", "listener", sv.Listener.String(), "remote", nc.RemoteAddr().String(), "limit", sv.limits.MaxConnections)
		_ = nc.Close()
		return
	}
	sv.metrics.connections.Inc()
	sv.conns.Go(func() {
		defer sv.open.Add(-1)
		defer sv.metrics.connections.Dec()
		newConn(sv, nc).run(ctx)
	})
}
