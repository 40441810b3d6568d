package kafka

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits bound what clients can make a server hold. The zero value of a field
// stands for its default.
type Limits struct {
	// MaxConnections at a time; one more is closed at once. Default 2000.
	MaxConnections int
	// MaxOutstanding requests of one connection; the server reads no further until
	// one is answered. Default 64.
	MaxOutstanding int
	// MaxRequestBytes of one request; a larger one closes its connection. Default
	// 100 MiB, as Kafka's socket.request.max.bytes.
	MaxRequestBytes int
	// MaxInFlightBytes of all requests together that are being read or wait for
	// their answer. At the limit connections are read no further. At least
	// MaxRequestBytes; default 128 MiB.
	MaxInFlightBytes int64
	// MaxFetchBytes bounds the records in one Fetch answer, whatever the client
	// asks for; one batch is returned even if larger (KIP-74). Default 4 MiB.
	MaxFetchBytes int
	// IdleTimeout closes a connection without requests. Default 10 minutes.
	IdleTimeout time.Duration
	// StallTimeout closes a connection that stops in the middle of a request, or
	// that does not take its answer. Default 30 seconds.
	StallTimeout time.Duration
	// DrainTimeout is how long answers that are still due may take once the server
	// stops or a client has closed its side. Default 1 second.
	DrainTimeout time.Duration
}

const (
	// maxOtherRequestBytes bounds every request but Produce: none of the others
	// has a reason to be large, and a decoded one is larger than its bytes.
	maxOtherRequestBytes = 1 << 20
	// freeRequestBytes is the size up to which a request is not counted in
	// MaxInFlightBytes, so that producers at the limit do not keep Metadata and
	// Fetch requests out.
	freeRequestBytes = 16 << 10
)

// Budget is what servers with these limits may share: their requests together take no more
// than MaxInFlightBytes.
func (l Limits) Budget() (*semaphore.Weighted, error) {
	l, err := l.withDefaults()
	if err != nil {
		return nil, err
	}
	return semaphore.NewWeighted(l.MaxInFlightBytes), nil
}

func (l Limits) withDefaults() (Limits, error) {
	l.MaxConnections = cmp.Or(l.MaxConnections, 2000)
	l.MaxOutstanding = cmp.Or(l.MaxOutstanding, 64)
	l.MaxRequestBytes = cmp.Or(l.MaxRequestBytes, 100<<20)
	l.MaxInFlightBytes = cmp.Or(l.MaxInFlightBytes, max(128<<20, int64(l.MaxRequestBytes)))
	l.MaxFetchBytes = cmp.Or(l.MaxFetchBytes, 4<<20)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 10*time.Minute)
	l.StallTimeout = cmp.Or(l.StallTimeout, 30*time.Second)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, time.Second)
	switch {
	case l.MaxConnections < 0, l.MaxOutstanding < 0, l.MaxRequestBytes < 0, l.MaxFetchBytes < 0,
		l.IdleTimeout < 0, l.StallTimeout < 0, l.DrainTimeout < 0:
		return l, fmt.Errorf("a limit of the Kafka server is negative: %+v", l)
	case l.MaxInFlightBytes < int64(l.MaxRequestBytes):
		return l, fmt.Errorf("MaxInFlightBytes %d must be at least MaxRequestBytes %d, or the largest request could never be read", l.MaxInFlightBytes, l.MaxRequestBytes)
	}
	return l, nil
}
