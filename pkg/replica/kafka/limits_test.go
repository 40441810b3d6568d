package kafka

import (
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The server stops reading a connection that has MaxOutstanding requests waiting.
func TestOutstandingRequestsAreBounded(t *testing.T) {
	const limit = 4
	p := newMemPartition()
	p.acks = make(chan func(), 100)
	r := start(t, p, func(s *Server) { s.Limits.MaxOutstanding = limit })
	nc := r.dial()
	for i := range int32(20) {
		nc.Write(frameOf(produceRequest(9, AcksAll, batchOf("x")), i))
	}
	// One is with the writer, one with the reader, which waits for room.
	await(t, "the server to read what it may", func() bool { return len(p.acks) == limit+2 })
	r.expectServing()
	if n := len(p.acks); n != limit+2 {
		t.Errorf("%d requests reached the partition, want %d", n, limit+2)
	}
	for i := range uint32(20) {
		(<-p.acks)()
		readResponse(t, nc, i)
	}
}

// Bytes in flight are bounded over all connections: a second large request waits
// until the first is answered, small ones go on.
func TestBytesInFlightAreBounded(t *testing.T) {
	large := func() *kmsg.ProduceRequest {
		return produceRequest(9, AcksAll, batchOf(strings.Repeat("x", 80<<10)))
	}
	p := newMemPartition()
	p.acks = make(chan func(), 100)
	r := start(t, p, func(s *Server) { s.Limits.MaxRequestBytes, s.Limits.MaxInFlightBytes = 100<<10, 100<<10 })
	first, second := r.dial(), r.dial()
	first.Write(frameOf(large(), 1))
	await(t, "the first batch", func() bool { return len(p.acks) == 1 })
	second.Write(frameOf(large(), 2))
	r.expectServing()
	if len(p.acks) != 1 {
		t.Error("the second batch was read beyond the limit")
	}
	(<-p.acks)()
	readResponse(t, first, 1)
	(<-p.acks)()
	readResponse(t, second, 2)
}

func TestConnectionsAreBounded(t *testing.T) {
	r := start(t, newMemPartition(), func(s *Server) { s.Limits.MaxConnections = 1 })
	cl := r.client()
	askOver[*kmsg.MetadataResponse](t, cl, metadataRequest(12))
	expectClosed(t, r.dial())
	askOver[*kmsg.MetadataResponse](t, cl, metadataRequest(12))
	cl.Close()
	await(t, "a free place", func() bool {
		nc, err := net.Dial("tcp", r.addr)
		if err != nil {
			return false
		}
		defer nc.Close()
		_, err = NewClient(nc, "", 1<<20).Do(t.Context(), metadataRequest(12))
		return err == nil
	})
}

func TestServeRefusesLimitsThatCannotWork(t *testing.T) {
	for name, l := range map[string]Limits{
		"negative":                       {MaxOutstanding: -1},
		"budget below the largest frame": {MaxRequestBytes: 100, MaxInFlightBytes: 99},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Server{Partition: newMemPartition(), Limits: l}).Serve(t.Context(), ln); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
