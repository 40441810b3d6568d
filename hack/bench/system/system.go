// Package system says what a benchmark needs of what it measures: three servers that
// replicate one log.
package system

import (
	"context"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/load"
)

// Acks is how many replicas must hold a record before it is acknowledged.
type Acks string

// Flush is when data become durable.
type Flush string

// The values are Kafka's and Tidemark's own words.
const (
	AcksOne Acks = "1"
	AcksAll Acks = "all"

	FlushNever      Flush = "Never"
	FlushEveryBatch Flush = "EveryBatch"
)

// Server is one process of a system.
type Server struct {
	Name string
	PID  int
	// Dir is where its data are.
	Dir string
}

// Info tells a reader what was measured.
type Info struct {
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
}

// System is one product.
type System interface {
	Info() Info
	// Supports reports whether the product has such a thing.
	Supports(flush Flush, acks Acks) bool
	// Open gives an empty, replicated log, with all replicas in sync.
	Open(ctx context.Context, flush Flush) (Log, error)
	// Close ends all its processes.
	Close()
}

// Log is one replicated log, and the servers that hold it.
type Log interface {
	Servers() []Server
	// Leader is the index of the leader in Servers.
	Leader(ctx context.Context) (int, error)
	Producer(acks Acks) (load.Producer, error)
	// Consume reads that many records from the begin of the log.
	Consume(ctx context.Context, records uint64) (Consumed, error)
	// Flushes is how often a server had its log synced, or false if it does not tell.
	Flushes(ctx context.Context, server int) (uint64, bool)
	Close()
}

// Restarter is a Log whose servers can be killed and started again.
type Restarter interface {
	Log
	// Restart kills a server that follows as kill -9 does, and starts it again.
	Restart(ctx context.Context, server int) (Restarted, error)
}

// Restarted is how long a start took: until the server serves, and until it is in sync.
type Restarted struct{ Ready, InSync time.Duration }

// Consumed is what a consumer got.
type Consumed struct {
	Records, Bytes uint64
	Elapsed        time.Duration
}
