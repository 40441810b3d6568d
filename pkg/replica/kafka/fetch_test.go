package kafka

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// fill appends batches of one record each.
func fill(p *memPartition, values ...string) {
	for _, v := range values {
		p.change(func() { p.append(batchOf(v)) })
	}
}

// G06, KIP-74.
func TestFetchSizes(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b", "c", "d")
	one := len(p.batches[0])
	cases := map[string]struct {
		requestMax, partitionMax, serverMax int
		wantBatches                         int
	}{
		"everything fits":                      {1 << 20, 1 << 20, 1 << 20, 4},
		"one batch though nothing fits":        {1, 1, 1 << 20, 1},
		"limit of the partition":               {1 << 20, 2*one + 5, 1 << 20, 2},
		"limit of the request":                 {3 * one, 1 << 20, 1 << 20, 3},
		"limit of the server":                  {1 << 20, 1 << 20, 2 * one, 2},
		"negative limits still give one batch": {-1, -1, 1 << 20, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := start(t, p, func(s *Server) { s.Limits.MaxFetchBytes = c.serverMax })
			req := fetchRequest(12, 0, 0)
			req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = int32(c.requestMax), int32(c.partitionMax)
			got := onlyFetched(ask[*kmsg.FetchResponse](r, req))
			if len(got.RecordBatches) != c.wantBatches*one {
				t.Errorf("got %d bytes, want %d batches of %d", len(got.RecordBatches), c.wantBatches, one)
			}
		})
	}
}

func TestFetchReleasesTheRecords(t *testing.T) {
	p := newMemPartition()
	fill(p, "a")
	r := start(t, p)
	ask[*kmsg.FetchResponse](r, fetchRequest(12, 0, 0))
	await(t, "the records to be released", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.released == 1
	})
}

func TestFetchRefusals(t *testing.T) {
	cases := map[string]struct {
		version  int16
		edit     func(req *kmsg.FetchRequest)
		wantTop  Code
		wantPart Code
	}{
		"G14 continued session":            {12, func(r *kmsg.FetchRequest) { r.SessionID, r.SessionEpoch = 7, 2 }, CodeFetchSessionIDNotFound, CodeNone},
		"G14 epoch without a session":      {12, func(r *kmsg.FetchRequest) { r.SessionEpoch = 1 }, CodeFetchSessionIDNotFound, CodeNone},
		"new session":                      {12, func(r *kmsg.FetchRequest) { r.SessionEpoch = 0 }, CodeNone, CodeNone},
		"unknown name":                     {12, func(r *kmsg.FetchRequest) { r.Topics[0].Topic = "other" }, CodeNone, CodeUnknownTopicOrPartition},
		"G15 unknown id":                   {13, func(r *kmsg.FetchRequest) { r.Topics[0].TopicID[0]++ }, CodeNone, CodeUnknownTopicID},
		"id in a version with ids":         {13, func(*kmsg.FetchRequest) {}, CodeNone, CodeNone},
		"other partition":                  {12, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].Partition = 1 }, CodeNone, CodeUnknownTopicOrPartition},
		"beyond the end":                   {12, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].FetchOffset = 99 }, CodeNone, CodeOffsetOutOfRange},
		"old leader epoch":                 {12, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].CurrentLeaderEpoch = 1 }, CodeNone, CodeFencedLeaderEpoch},
		"unknown leader epoch":             {12, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].CurrentLeaderEpoch = 9 }, CodeNone, CodeUnknownLeaderEpoch},
		"replica on the client listener":   {12, func(r *kmsg.FetchRequest) { r.ReplicaID = 1 }, CodeNone, CodeClusterAuthorizationFailed},
		"replica state on client listener": {15, func(r *kmsg.FetchRequest) { r.ReplicaState.ID = 1 }, CodeNone, CodeClusterAuthorizationFailed},
		"debug consumer":                   {12, func(r *kmsg.FetchRequest) { r.ReplicaID = -2 }, CodeNone, CodeClusterAuthorizationFailed},
	}
	r := start(t, newMemPartition())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := fetchRequest(c.version, 0, 0)
			c.edit(req)
			resp := ask[*kmsg.FetchResponse](r, req)
			if Code(resp.ErrorCode) != c.wantTop {
				t.Fatalf("got %v at the top, want %v", Code(resp.ErrorCode), c.wantTop)
			}
			if resp.SessionID != 0 {
				t.Errorf("session id is %d", resp.SessionID)
			}
			if c.wantTop != CodeNone {
				return
			}
			if got := onlyFetched(resp); Code(got.ErrorCode) != c.wantPart {
				t.Errorf("got %v, want %v", Code(got.ErrorCode), c.wantPart)
			}
		})
	}
}

func TestFetchWithAnErrorBesideDoesNotWait(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	req := fetchRequest(12, 0, 10*patience)
	req.Topics = append(req.Topics, kmsg.FetchRequestTopic{Topic: "other", Partitions: []kmsg.FetchRequestTopicPartition{kmsg.NewFetchRequestTopicPartition()}})
	resp := ask[*kmsg.FetchResponse](r, req)
	if got := Code(resp.Topics[1].Partitions[0].ErrorCode); got != CodeUnknownTopicOrPartition {
		t.Errorf("got %v", got)
	}
}

func TestFetchWaitsForRecords(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	answer := askLater(r, fetchRequest(12, 0, 10*patience))
	fill(p, "late")
	if got := onlyFetched(<-answer); len(got.RecordBatches) == 0 || got.HighWatermark != 1 {
		t.Errorf("got %d bytes, high watermark %d", len(got.RecordBatches), got.HighWatermark)
	}
}

// G22.
func TestFetchReturnsEarlyWhenLeadershipIsLost(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	answer := askLater(r, fetchRequest(16, 0, 10*patience))
	p.setView(func(v *View) {
		v.Leads, v.Leader, v.LeaderEpoch = false, 1, 4
		v.Replicas = []Node{v.Replicas[0], {ID: 1, Address: epoch.Address{Host: "orders-1", ClientPort: 9092, ReplicationPort: 9093}}}
	})
	resp := <-answer
	got := onlyFetched(resp)
	if Code(got.ErrorCode) != CodeNotLeaderOrFollower || got.CurrentLeader.LeaderID != 1 || got.CurrentLeader.LeaderEpoch != 4 {
		t.Errorf("got %v with current leader %+v", Code(got.ErrorCode), got.CurrentLeader)
	}
	if len(resp.Brokers) != 1 || resp.Brokers[0].Port != 9092 {
		t.Errorf("node endpoints are %+v", resp.Brokers)
	}
}

func askLater(r *running, req *kmsg.FetchRequest) <-chan *kmsg.FetchResponse {
	answer := make(chan *kmsg.FetchResponse, 1)
	cl := r.client()
	go func() { answer <- askOver[*kmsg.FetchResponse](r.t, cl, req) }()
	return answer
}

func TestReplicaFetchPassesOnWhatTheFollowerSays(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b")
	r := start(t, p, replication)
	cl := NewClient(r.dial(), "start-7", 1<<20)
	req := replicaFetchRequest(18, 2, 41, 1, 0)
	q := &req.Topics[0].Partitions[0]
	q.CurrentLeaderEpoch, q.LastFetchedEpoch, q.LogStartOffset, q.HighWatermark, q.ReplicaDirectoryID = 3, 3, 0, 1, [16]byte{9}
	TellTrouble(req, epoch.Trouble{Damaged: true, Deaf: true})
	resp := askOver[*kmsg.FetchResponse](t, cl, req)
	got := p.replicaFetches[0]
	want := ReplicaFetchRequest{
		ReplicaID: 2, Session: 41, StartID: "start-7", DirectoryID: epoch.UUID{9}, CurrentLeaderEpoch: 3, Offset: 1,
		LastFetchedEpoch: 3, HighWatermark: 1, MaxBytes: 1 << 20, MinBytes: 1, ConnectionID: got.ConnectionID, Trouble: epoch.Trouble{Damaged: true, Deaf: true},
	}
	if got != want {
		t.Errorf("the partition got\n%+v\nwant\n%+v", got, want)
	}
	e := onlyFetched(resp)
	if !bytes.Equal(e.RecordBatches, p.batches[1]) || e.HighWatermark != 2 || e.CurrentLeader.LeaderEpoch != 3 {
		t.Errorf("answer has %d bytes, high watermark %d, leader %+v", len(e.RecordBatches), e.HighWatermark, e.CurrentLeader)
	}
	cl.Close()
	await(t, "the disconnect to be reported", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Equal(p.disconnected, []uint64{got.ConnectionID})
	})
}

func TestReplicaFetchBelowVersion18TellsNoHighWatermark(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, replication)
	ask[*kmsg.FetchResponse](r, replicaFetchRequest(17, 2, 41, 0, 0))
	if got := p.replicaFetches[0].HighWatermark; got != epoch.NoOffset {
		t.Errorf("high watermark %d, want none", got)
	}
}

func TestReplicaFetchIsToldWhereItsHistoryDiverges(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b")
	r := start(t, p, replication)
	req := replicaFetchRequest(18, 2, 41, 1, 0)
	req.Topics[0].Partitions[0].LastFetchedEpoch = 8
	got := onlyFetched(ask[*kmsg.FetchResponse](r, req))
	if got.DivergingEpoch.Epoch != 3 || got.DivergingEpoch.EndOffset != 2 || len(got.RecordBatches) != 0 {
		t.Errorf("got %+v with %d bytes", got.DivergingEpoch, len(got.RecordBatches))
	}
}

func TestReplicaThatVanishesInALongPollIsReportedAtOnce(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, replication)
	nc := r.dial()
	nc.Write(frameOf(replicaFetchRequest(18, 2, 41, 0, 10*patience), 1))
	await(t, "the fetch to arrive", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.replicaFetches) == 1
	})
	nc.Close()
	await(t, "the disconnect to be reported", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.disconnected) == 1
	})
}

// DESIGN.md rule 9.
func TestReplicationListenerServesReplicasOnly(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, replication)
	consumer := fetchRequest(15, 0, 0)
	if got := onlyFetched(ask[*kmsg.FetchResponse](r, consumer)); Code(got.ErrorCode) != CodeClusterAuthorizationFailed {
		t.Errorf("a consumer's fetch got %v", Code(got.ErrorCode))
	}
	closing := map[string]kmsg.Request{
		"Produce":                     produceRequest(9, AcksAll, batchOf("a")),
		"Metadata":                    metadataRequest(12),
		"Fetch that tells no session": replicaFetchRequest(14, 2, 41, 0, 0),
		"InitProducerId":              kmsg.NewPtrInitProducerIDRequest(),
	}
	for name, req := range closing {
		t.Run(name, func(t *testing.T) {
			nc := r.dial()
			nc.Write(frameOf(req, 1))
			expectClosed(t, nc)
		})
	}
	if len(p.replicaFetches) != 0 || p.end != 0 {
		t.Errorf("%d fetches and %d records came through", len(p.replicaFetches), p.end)
	}
}

func TestListOffsets(t *testing.T) {
	at := time.Now().UnixMilli()
	p := newMemPartition()
	p.change(func() {
		p.append(batch.NewBuilder().Record(at, nil, []byte("a")).Build())
		p.append(batch.NewBuilder().Record(at+1000, nil, []byte("b")).Build())
	})
	cases := map[string]struct {
		version    int16
		timestamp  int64
		fail       error
		edit       func(*kmsg.ListOffsetsRequest)
		wantOffset int64
		want       Code
	}{
		"latest":                             {1, -1, nil, nil, 2, CodeNone},
		"earliest":                           {5, -2, nil, nil, 0, CodeNone},
		"by time":                            {7, at + 1, nil, nil, 1, CodeNone},
		"by a time nobody wrote at":          {7, at + 5000, nil, nil, -1, CodeNone},
		"largest timestamp":                  {7, -3, nil, nil, -1, CodeNone},
		"largest timestamp before version 7": {6, -3, nil, nil, -1, CodeUnsupportedVersion},
		"earliest local before version 8":    {7, -4, nil, nil, -1, CodeUnsupportedVersion},
		"earliest local":                     {8, -4, nil, nil, 0, CodeNone},
		"latest tiered":                      {8, -5, nil, nil, -1, CodeUnsupportedVersion},
		"KIP-207 new leader":                 {5, -1, core.ErrOffsetNotAvailable, nil, -1, CodeOffsetNotAvailable},
		"KIP-207 for an old client":          {4, -1, core.ErrOffsetNotAvailable, nil, -1, CodeLeaderNotAvailable},
		"G30 stale epoch":                    {5, -1, core.ErrFencedLeaderEpoch, nil, -1, CodeFencedLeaderEpoch},
		"as a replica":                       {5, -1, nil, func(r *kmsg.ListOffsetsRequest) { r.ReplicaID = 1 }, -1, CodeClusterAuthorizationFailed},
		"unknown topic":                      {5, -1, nil, func(r *kmsg.ListOffsetsRequest) { r.Topics[0].Topic = "other" }, -1, CodeUnknownTopicOrPartition},
	}
	r := start(t, p)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p.change(func() { p.failWith = c.fail })
			req := listOffsetsRequest(c.version, c.timestamp)
			if c.edit != nil {
				c.edit(req)
			}
			got := ask[*kmsg.ListOffsetsResponse](r, req).Topics[0].Partitions[0]
			if got.Offset != c.wantOffset || Code(got.ErrorCode) != c.want {
				t.Errorf("got offset %d with %v, want %d with %v", got.Offset, Code(got.ErrorCode), c.wantOffset, c.want)
			}
		})
	}
}

func TestListOffsetsOfAReplicaIsMarkedSo(t *testing.T) {
	p := newMemPartition()
	r := start(t, p, replication)
	req := listOffsetsRequest(7, -1)
	req.ReplicaID = 2
	ask[*kmsg.ListOffsetsResponse](r, req)
	if len(p.listed) != 1 || !p.listed[0].Replica {
		t.Errorf("the partition got %+v", p.listed)
	}
}

func listOffsetsRequest(version int16, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = version
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = timestamp
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: testTopic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return req
}

// G03, KAFKA-6857.
func TestOffsetForLeaderEpoch(t *testing.T) {
	p := newMemPartition()
	fill(p, "a", "b")
	r := start(t, p)
	for _, c := range []struct {
		version   int16
		epoch     int32
		wantEpoch int32
		wantEnd   int64
	}{{2, 3, 3, 2}, {3, 3, 3, 2}, {4, 3, 3, 2}, {2, 1, -1, -1}} {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.Version, req.ReplicaID = c.version, -1
		rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		rp.LeaderEpoch = c.epoch
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: testTopic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{rp}}}
		got := ask[*kmsg.OffsetForLeaderEpochResponse](r, req).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || got.LeaderEpoch != c.wantEpoch || got.EndOffset != c.wantEnd {
			t.Errorf("version %d, epoch %d: got %+v", c.version, c.epoch, got)
		}
	}
}
