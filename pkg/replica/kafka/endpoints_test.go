package kafka

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// outside is an external listener that advertises what the map holds.
type outside struct {
	mu sync.Mutex
	at map[epoch.ReplicaID]Endpoint
}

func (o *outside) set(at map[epoch.ReplicaID]Endpoint) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = at
}

func (o *outside) external(s *Server) {
	s.Listener = External
	s.Advertised = func(id epoch.ReplicaID) (Endpoint, bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		e, ok := o.at[id]
		return e, ok
	}
}

// H93: every answer that names a node names it by the listener that the request came in on.
func TestNodesAreNamedByTheListenerOfTheRequest(t *testing.T) {
	p := newMemPartition()
	o := &outside{at: map[epoch.ReplicaID]Endpoint{0: {"2001:db8::1", 31000}, 1: {"kafka-1.example.com", 31001}}}
	inside, out := start(t, p), start(t, p, o.external)
	p.setView(func(v *View) {
		v.Replicas = []Node{{ID: 0, Address: epoch.Address{Host: "10.0.0.1", ClientPort: 9092}}, {ID: 1, Address: epoch.Address{Host: "10.0.0.2", ClientPort: 9092}}, {ID: 2}}
		v.Leads, v.Leader, v.LeaderEpoch = false, 1, 4
	})
	p.change(func() { p.failWith = core.ErrNotLeader })
	for _, tc := range []struct {
		name string
		r    *running
		want map[int32]Endpoint
	}{
		{"inside", inside, map[int32]Endpoint{0: {"10.0.0.1", 9092}, 1: {"10.0.0.2", 9092}}},
		{"outside", out, map[int32]Endpoint{0: {"2001:db8::1", 31000}, 1: {"kafka-1.example.com", 31001}}},
	} {
		told := func(what string, id int32, host string, port int32) {
			t.Helper()
			if got := (Endpoint{host, port}); got != tc.want[id] {
				t.Errorf("%s, %s: replica %d is at %v, want %v", tc.name, what, id, got, tc.want[id])
			}
		}
		m := ask[*kmsg.MetadataResponse](tc.r, metadataRequest(12, testTopic))
		if len(m.Brokers) != 2 || m.Topics[0].Partitions[0].Leader != 1 {
			t.Errorf("%s: %d brokers, leader %d", tc.name, len(m.Brokers), m.Topics[0].Partitions[0].Leader)
		}
		for _, b := range m.Brokers {
			told("Metadata", b.NodeID, b.Host, b.Port)
		}
		q := kmsg.NewPtrDescribeClusterRequest()
		q.Version, q.EndpointType = 1, 1
		d := ask[*kmsg.DescribeClusterResponse](tc.r, q)
		if len(d.Brokers) != 2 {
			t.Errorf("%s: DescribeCluster shows %d brokers", tc.name, len(d.Brokers))
		}
		for _, b := range d.Brokers {
			told("DescribeCluster", b.NodeID, b.Host, b.Port)
		}
		pr := ask[*kmsg.ProduceResponse](tc.r, produceRequest(10, AcksAll, batchOf("x")))
		fr := ask[*kmsg.FetchResponse](tc.r, fetchRequest(16, 0, 0))
		if len(pr.Brokers) != 1 || len(fr.Brokers) != 1 {
			t.Fatalf("%s: refusals of Produce and Fetch name %d and %d nodes", tc.name, len(pr.Brokers), len(fr.Brokers))
		}
		told("Produce", pr.Brokers[0].NodeID, pr.Brokers[0].Host, pr.Brokers[0].Port)
		told("Fetch", fr.Brokers[0].NodeID, fr.Brokers[0].Host, fr.Brokers[0].Port)
	}
}

// As Kafka: getAliveEndpoint and getOfflineReplicas of its metadata cache.
func TestAReplicaWithoutAnAddressOnTheListenerIsNoBroker(t *testing.T) {
	p := newMemPartition()
	o := &outside{at: map[epoch.ReplicaID]Endpoint{1: {"b", 1}}}
	r := start(t, p, o.external)
	p.setView(func(v *View) {
		v.Replicas = []Node{v.Replicas[0], {ID: 1, Address: epoch.Address{Host: "10.0.0.2", ClientPort: 9092}}, {ID: 2}}
	})
	for version, want := range map[int16]Code{5: CodeLeaderNotAvailable, 6: CodeListenerNotFound, 12: CodeListenerNotFound} {
		resp := ask[*kmsg.MetadataResponse](r, metadataRequest(version, testTopic))
		got := resp.Topics[0].Partitions[0]
		if Code(got.ErrorCode) != want || got.Leader != -1 || len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || resp.ControllerID != 1 {
			t.Errorf("version %d: %v, leader %d, brokers %+v, controller %d", version, Code(got.ErrorCode), got.Leader, resp.Brokers, resp.ControllerID)
		}
		offline := slices.Sorted(slices.Values(got.OfflineReplicas))
		if !slices.Equal(got.Replicas, []int32{0, 1, 2}) || !slices.Equal(offline, []int32{0, 2}) {
			t.Errorf("version %d: replicas %v, offline %v", version, got.Replicas, offline)
		}
	}
	o.set(map[epoch.ReplicaID]Endpoint{0: {"a", 1}})
	got := ask[*kmsg.MetadataResponse](r, metadataRequest(12, testTopic)).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || got.Leader != 0 {
		t.Errorf("with an address: %v, leader %d", Code(got.ErrorCode), got.Leader)
	}
	p.setView(func(v *View) { v.Leader, v.LeaderEpoch = epoch.NoReplica, 4 })
	if got := ask[*kmsg.MetadataResponse](r, metadataRequest(12, testTopic)).Topics[0].Partitions[0]; Code(got.ErrorCode) != CodeLeaderNotAvailable {
		t.Errorf("without a leader: %v", Code(got.ErrorCode))
	}
	// A refusal still says who leads, only not where.
	p.setView(func(v *View) { v.Leads, v.Leader, v.LeaderEpoch = false, 1, 5 })
	p.change(func() { p.failWith = core.ErrNotLeader })
	resp := ask[*kmsg.ProduceResponse](r, produceRequest(10, AcksAll, batchOf("x")))
	if e := onlyProduced(resp); len(resp.Brokers) != 0 || e.CurrentLeader.LeaderID != 1 || e.CurrentLeader.LeaderEpoch != 5 {
		t.Errorf("nodes %+v, current leader %+v", resp.Brokers, e.CurrentLeader)
	}
}

// Rule 9.
func TestNoReplicaFetchesOverAnExternalListener(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, (&outside{}).external)
	for _, version := range []int16{12, 17} {
		resp, err := NewClient(r.dial(), "test", 1<<20).Do(t.Context(), replicaFetchRequest(version, 2, 41, 0, 0))
		if err == nil && onlyFetched(resp.(*kmsg.FetchResponse)).ErrorCode == 0 {
			t.Errorf("version %d: a replica's fetch is answered", version)
		}
	}
	if len(p.replicaFetches) != 0 {
		t.Errorf("%d fetches counted as a replica's", len(p.replicaFetches))
	}
}

// More listeners do not mean more memory.
func TestServersShareABudget(t *testing.T) {
	limits := Limits{MaxRequestBytes: 100 << 10, MaxInFlightBytes: 100 << 10}
	budget, err := limits.Budget()
	if err != nil {
		t.Fatal(err)
	}
	p := newMemPartition()
	p.acks = make(chan func(), 100)
	share := func(s *Server) { s.Limits, s.Budget = limits, budget }
	inside, out := start(t, p, share), start(t, p, share, (&outside{}).external)
	write := func(nc net.Conn, id int32) {
		_, _ = nc.Write(frameOf(produceRequest(9, AcksAll, batchOf(strings.Repeat("x", 80<<10))), id))
	}
	first, second := inside.dial(), out.dial()
	write(first, 1)
	await(t, "the first batch", func() bool { return len(p.acks) == 1 })
	write(second, 2)
	out.expectServing()
	if len(p.acks) != 1 {
		t.Error("the second batch was read beyond the limit")
	}
	(<-p.acks)()
	readResponse(t, first, 1)
	(<-p.acks)()
	readResponse(t, second, 2)
}

// Rule 9 for the other question that replicas ask.
func TestNoReplicaAsksForEpochsOverAnExternalListener(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b")
	r := start(t, p, (&outside{}).external)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	rp.LeaderEpoch = 3
	req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: testTopic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{rp}}}
	for replica, refused := range map[int32]bool{-1: false, 2: true} {
		req.Version, req.ReplicaID = 4, replica
		if got := ask[*kmsg.OffsetForLeaderEpochResponse](r, req).Topics[0].Partitions[0]; (got.ErrorCode != 0) != refused {
			t.Errorf("replica id %d is answered %+v", replica, got)
		}
	}
}

func TestNoReplicaAsksForOffsetsOverAnExternalListener(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b")
	r := start(t, p, (&outside{}).external)
	req := kmsg.NewPtrListOffsetsRequest()
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: testTopic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{rp}}}
	for replica, refused := range map[int32]bool{-1: false, 2: true} {
		req.Version, req.ReplicaID = 5, replica
		if got := ask[*kmsg.ListOffsetsResponse](r, req).Topics[0].Partitions[0]; (got.ErrorCode != 0) != refused {
			t.Errorf("replica id %d is answered %+v", replica, got)
		}
	}
}
