package kafka

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// patience is how long a test waits for what must happen; it is never waited out
// by a test that passes.
const patience = 20 * time.Second

// running is a server on a real socket. The test fails if goroutines of this
// package are left when it has stopped.
type running struct {
	t         testing.TB
	partition *memPartition
	addr      string
	stop      func()
}

func start(t testing.TB, p *memPartition, configure ...func(*Server)) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(ln.Addr().(*net.TCPAddr).Port)
	p.setView(func(v *View) {
		v.Replicas = append([]Node(nil), v.Replicas...)
		v.Replicas[0].Address = epoch.Address{Host: "127.0.0.1", ClientPort: port, ReplicationPort: port}
	})
	s := &Server{Partition: p}
	for _, f := range configure {
		f(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	r := &running{t: t, partition: p, addr: ln.Addr().String()}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("Serve returned %v after an orderly stop", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not return")
		}
		awaitNoGoroutines(t)
	}
	t.Cleanup(r.stop)
	return r
}

func replication(s *Server) { s.Listener = Replication }

// awaitNoGoroutines waits until no goroutine runs this package's production code.
func awaitNoGoroutines(t testing.TB) {
	t.Helper()
	var left string
	await(t, "goroutines of the server to end", func() bool {
		left = ""
		buf := make([]byte, 1<<20)
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "kafka.(*conn)") || strings.Contains(g, "kafka.(*serving)") {
				left += g + "\n\n"
			}
		}
		return left == ""
	})
	if left != "" {
		t.Errorf("goroutines left:\n%s", left)
	}
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Errorf("waited in vain for %s", what)
			return
		case <-tick.C:
		}
	}
}

func (r *running) dial() net.Conn {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return nc
}

func (r *running) client() *Client { return NewClient(r.dial(), "test", 64<<20) }

// ask sends one request over a new connection.
func ask[R kmsg.Response](r *running, req kmsg.Request) R {
	r.t.Helper()
	return askOver[R](r.t, r.client(), req)
}

func askOver[R kmsg.Response](t testing.TB, c *Client, req kmsg.Request) R {
	t.Helper()
	resp, err := c.Do(t.Context(), req)
	if err != nil {
		t.Fatalf("%s version %d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp.(R)
}

// expectClosed reads until the server closes, and fails if it sends anything.
func expectClosed(t testing.TB, nc net.Conn) {
	t.Helper()
	got, err := io.ReadAll(nc)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Errorf("the connection is still open")
	}
	if len(got) > 0 {
		t.Errorf("got %d bytes instead of a closed connection", len(got))
	}
}

// expectServing checks that the server still answers.
func (r *running) expectServing() {
	r.t.Helper()
	ask[*kmsg.MetadataResponse](r, metadataRequest(12))
}

func metadataRequest(version int16, topics ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = version
	for _, name := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

func produceRequest(version, acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, acks, 30_000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: testTopic, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: records}}}}
	return req
}

func fetchRequest(version int16, offset int64, wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = version, int32(wait.Milliseconds()), 1, 1<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: testTopic, TopicID: testTopicID, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return req
}

func replicaFetchRequest(version int16, id int32, session, offset int64, wait time.Duration) *kmsg.FetchRequest {
	req := fetchRequest(version, offset, wait)
	req.ReplicaID = id
	req.ReplicaState.ID, req.ReplicaState.Epoch = id, session
	return req
}

func batchOf(values ...string) batch.Batch { return batch.NewBuilder().Values(values...).Build() }

func onlyProduced(resp *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	return resp.Topics[0].Partitions[0]
}

func onlyFetched(resp *kmsg.FetchResponse) kmsg.FetchResponseTopicPartition {
	return resp.Topics[0].Partitions[0]
}

// frameOf is the request as it goes over the wire.
func frameOf(req kmsg.Request, correlationID int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, correlationID)
}
