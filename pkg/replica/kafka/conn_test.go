package kafka

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// G20: every version of every API is answered in a form that the client can read,
// headers included.
func TestEveryServedVersionIsAnswered(t *testing.T) {
	for _, l := range []Listener{Clients, Replication} {
		p := newMemPartition()
		r := start(t, p, func(s *Server) { s.Listener = l })
		cl := r.client()
		for _, a := range apis {
			if !a.servedOn(l) {
				continue
			}
			lo, hi := a.versions(l)
			for version := lo; version <= hi; version++ {
				req := kmsg.RequestForKey(a.key)
				switch a.key {
				case keyProduce:
					req = produceRequest(version, AcksAll, batchOf("x"))
				case keyFetch:
					req = fetchRequest(version, 0, 0)
				case keyListOffsets:
					req = listOffsetsRequest(version, -1)
				case keyMetadata:
					req = metadataRequest(version, testTopic)
				}
				req.SetVersion(version)
				resp := askOver[kmsg.Response](t, cl, req)
				if resp.GetVersion() != version {
					t.Errorf("%s version %d answered as %d", a.name, version, resp.GetVersion())
				}
			}
		}
	}
}

func TestApiVersionsTellsExactlyWhatIsServed(t *testing.T) {
	r := start(t, newMemPartition())
	for version := int16(0); version <= 4; version++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		resp := ask[*kmsg.ApiVersionsResponse](r, req)
		if len(resp.ApiKeys) != len(apis) || resp.ErrorCode != 0 {
			t.Fatalf("version %d tells %d keys, error %d", version, len(resp.ApiKeys), resp.ErrorCode)
		}
		if k := resp.ApiKeys[0]; k.ApiKey != keyProduce || k.MinVersion != 0 || k.MaxVersion != 12 {
			t.Errorf("G01: Produce is advertised as %+v", k)
		}
		for _, k := range resp.ApiKeys {
			if name := kmsg.NameForKey(k.ApiKey); strings.Contains(name, "Group") || strings.Contains(name, "Txn") {
				t.Errorf("%s is advertised", name)
			}
		}
	}
}

// G02.
func TestApiVersionsOfAnUnknownVersionIsAnsweredInVersion0(t *testing.T) {
	r := start(t, newMemPartition())
	nc := r.dial()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 9
	nc.Write(frameOf(req, 77))
	body := readResponse(t, nc, 77)
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	if Code(resp.ErrorCode) != CodeUnsupportedVersion || len(resp.ApiKeys) != len(apis) {
		t.Errorf("got %v with %d ranges", Code(resp.ErrorCode), len(resp.ApiKeys))
	}
	nc.Write(frameOf(metadataRequest(12), 78))
	readResponse(t, nc, 78)
}

func readResponse(t testing.TB, nc net.Conn, correlationID uint32) []byte {
	t.Helper()
	head := make([]byte, 8)
	if _, err := io.ReadFull(nc, head); err != nil {
		t.Fatal(err)
	}
	if got := binary.BigEndian.Uint32(head[4:]); got != correlationID {
		t.Fatalf("got the response to %d, want %d", got, correlationID)
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(nc, body); err != nil {
		t.Fatal(err)
	}
	return body
}

// G19: a tagged field that nobody knows, in header and body, is skipped.
func TestUnknownTaggedFieldsAreSkipped(t *testing.T) {
	r := start(t, newMemPartition())
	nc := r.dial()
	req := metadataRequest(12, testTopic)
	req.UnknownTags.Set(200, []byte("body"))
	b := []byte{0, 3, 0, 12, 0, 0, 0, 5, 0xff, 0xff} // key, version, correlation id, no client id
	b = append(b, 1, 100, 4, 'h', 'e', 'a', 'd')
	b = req.AppendTo(b)
	nc.Write(append(kbin.AppendInt32(nil, int32(len(b))), b...))
	body := readResponse(t, nc, 5)
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = 12
	if err := resp.ReadFrom(body[1:]); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Errorf("got %+v, %v", resp.Topics, err)
	}
}

// G18 and the rest of what closes a connection, and only that one.
func TestMalformedRequestsCloseTheirConnectionOnly(t *testing.T) {
	sized := func(size int32, rest ...byte) []byte { return append(kbin.AppendInt32(nil, size), rest...) }
	framed := func(b ...byte) []byte { return sized(int32(len(b)), b...) }
	truncated := frameOf(produceRequest(9, AcksAll, batchOf("a")), 1)
	truncated = truncated[:len(truncated)-10]
	binary.BigEndian.PutUint32(truncated, uint32(len(truncated)-4))
	many := kmsg.NewPtrProduceRequest()
	many.Version = 9
	many.Topics = make([]kmsg.ProduceRequestTopic, maxProduceEntries+1)
	cases := map[string][]byte{
		"G18 negative size":              sized(-5),
		"G18 size above the limit":       sized(1<<20+1, make([]byte, 100)...),
		"size below a header":            sized(3, 0, 3, 0),
		"unknown API key":                framed(0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"group API":                      frameOf(kmsg.NewPtrJoinGroupRequest(), 1),
		"version that is not served":     frameOf(&kmsg.FetchRequest{Version: 3}, 1),
		"negative version":               framed(0, 3, 0xff, 0xff, 0, 0, 0, 1, 0xff, 0xff),
		"client id longer than the rest": framed(0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 'x'),
		"body cut short":                 truncated,
		"more topics than anybody needs": frameOf(many, 1),
		"large request that is not Produce": framed(append([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff},
			make([]byte, maxOtherRequestBytes+1)...)...),
		"an HTTP request": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	}
	var mu sync.Mutex
	lines := 0
	log := funcr.New(func(_, _ string) {
		mu.Lock()
		defer mu.Unlock()
		lines++
	}, funcr.Options{Verbosity: 1})
	r := start(t, newMemPartition(), func(s *Server) {
		s.Limits.MaxRequestBytes = 1 << 20
		s.Log = log
	})
	for name, bytes := range cases {
		t.Run(name, func(t *testing.T) {
			mu.Lock()
			lines = 0
			mu.Unlock()
			nc := r.dial()
			nc.Write(bytes)
			io.ReadAll(nc) // until closed; a reset is as good
			r.expectServing()
			await(t, "the line in the log", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return lines > 0
			})
			mu.Lock()
			defer mu.Unlock()
			if lines != 1 {
				t.Errorf("%d lines were logged, want 1", lines)
			}
		})
	}
}

func TestAnswersDueAreGivenBeforeAMalformedRequestCloses(t *testing.T) {
	r := start(t, newMemPartition())
	nc := r.dial()
	nc.Write(append(frameOf(metadataRequest(12), 1), 0xff, 0xff, 0xff, 0xff))
	readResponse(t, nc, 1)
	expectClosed(t, nc)
}

func TestSilentConnectionsAreClosed(t *testing.T) {
	cases := map[string]struct {
		limits Limits
		sent   []byte
	}{
		"idle":                       {Limits{IdleTimeout: 20 * time.Millisecond}, nil},
		"stalled in the size":        {Limits{StallTimeout: 20 * time.Millisecond}, []byte{0, 0}},
		"stalled in the middle":      {Limits{StallTimeout: 20 * time.Millisecond}, frameOf(metadataRequest(12), 1)[:9]},
		"stalled in a large request": {Limits{StallTimeout: 20 * time.Millisecond}, append(kbin.AppendInt32(nil, 50<<20), make([]byte, 3<<20)...)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := start(t, newMemPartition(), func(s *Server) { s.Limits = c.limits })
			nc := r.dial()
			nc.Write(c.sent)
			expectClosed(t, nc)
			r.expectServing()
		})
	}
}

func TestALongPollIsNotIdle(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, func(s *Server) { s.Limits.IdleTimeout = 10 * time.Millisecond })
	answer := askLater(r, fetchRequest(12, 0, 300*time.Millisecond))
	if got := onlyFetched(<-answer); got.ErrorCode != 0 {
		t.Errorf("got %v", Code(got.ErrorCode))
	}
}

// Stopping answers what completes, ends long polls, and leaves nothing behind even
// if the partition never reports back.
func TestStopWithRequestsUnderWay(t *testing.T) {
	p := newMemPartition()
	p.acks = make(chan func(), 10)
	r := start(t, p, func(s *Server) { s.Limits.DrainTimeout = 50 * time.Millisecond })
	stuck := r.dial()
	stuck.Write(frameOf(produceRequest(9, AcksAll, batchOf("never acknowledged")), 1))
	poll := r.dial()
	poll.Write(frameOf(fetchRequest(12, 1, 10*patience), 2))
	half := r.dial()
	half.Write([]byte{0, 0})
	await(t, "the batch", func() bool { return len(p.acks) == 1 })
	readAll := make(chan struct{})
	go func() {
		defer close(readAll)
		io.ReadAll(poll)
	}()
	r.stop()
	<-readAll
	expectClosed(t, stuck)
	(<-p.acks)() // too late, and harmless
}

func TestStopAnswersWhatCompletesInTime(t *testing.T) {
	p := newMemPartition()
	p.acks = make(chan func(), 10)
	r := start(t, p, func(s *Server) { s.Limits.DrainTimeout = patience })
	nc := r.dial()
	nc.Write(frameOf(produceRequest(9, AcksAll, batchOf("a")), 1))
	ack := <-p.acks
	go r.stop()
	await(t, "the listener to close", func() bool {
		nc, err := net.Dial("tcp", r.addr)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	ack()
	readResponse(t, nc, 1)
	expectClosed(t, nc)
	awaitNoGoroutines(t)
}

func TestALargeBatchSurvivesTheWay(t *testing.T) {
	p := newMemPartition()
	p.rules.MaxMessageBytes = 8 << 20
	r := start(t, p)
	want := strings.Repeat("0123456789abcdef", 5<<20/16)
	if got := onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, batchOf(want)))); got.ErrorCode != 0 {
		t.Fatalf("produce got %v", Code(got.ErrorCode))
	}
	got := onlyFetched(ask[*kmsg.FetchResponse](r, fetchRequest(12, 0, 0)))
	if !bytes.Equal(got.RecordBatches, p.batches[0]) {
		t.Error("fetched other bytes than were stored")
	}
	if values, err := p.values(); err != nil || !slices.Equal(values, []string{want}) {
		t.Errorf("the log holds another value; %v", err)
	}
}

func TestMetricsCountRequestsErrorsAndBytes(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := newMemPartition()
	r := start(t, p, func(s *Server) { s.Metrics = NewMetrics(registry) })
	ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, batchOf("a")))
	ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, flipped(batchOf("a"), 17)))
	want := map[string]float64{
		"tidemark_kafka_requests_total":       2,
		"tidemark_kafka_request_errors_total": 1,
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			seen[f.GetName()] += m.GetCounter().GetValue()
		}
	}
	for name, n := range want {
		if seen[name] != n {
			t.Errorf("%s is %v, want %v", name, seen[name], n)
		}
	}
	if seen["tidemark_kafka_received_bytes_total"] == 0 || seen["tidemark_kafka_sent_bytes_total"] == 0 {
		t.Errorf("bytes are not counted: %v", seen)
	}
}

func TestErrorOfIsTheWayBack(t *testing.T) {
	for _, w := range wireErrors {
		err := ErrorOf(int16(w.code))
		if err == nil {
			t.Errorf("%v gives no error", w.code)
		} else if w.err != nil && CodeOf(err) != w.code {
			t.Errorf("%v comes back as %v", w.code, CodeOf(err))
		}
	}
	if ErrorOf(0) != nil || CodeOf(nil) != CodeNone {
		t.Error("no error is an error")
	}
}
