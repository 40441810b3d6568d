package kafka

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Fetch (key 1).
//
// Versions 4 to 18 are served. v5 adds the log start offset, v7 sessions, v9 the
// current leader epoch (KIP-320), v12 is flexible and adds the last fetched epoch
// (KIP-595) and the current leader (KIP-951), v13 names topics by id, v15 puts the
// replica and its session into a tagged field (KIP-903), v16 adds the leader's
// address, v17 the follower's directory id, v18 its high watermark.
//
//   - Sessions (KIP-227): the answer's session id is always 0, which means "none
//     was made"; a request that continues one is FETCH_SESSION_ID_NOT_FOUND.
//   - Sizes (KIP-74): the records are bounded by the request's and the partition's
//     limit and by Limits.MaxFetchBytes, but the first batch always fits.
//   - Without transactions the last stable offset is the high watermark and no
//     transaction is aborted, so both isolation levels read the same.
//   - The client listener takes consumers only (replica id -1): a fetch that claims
//     to be a replica's would move the high watermark. The replication listener
//     takes replicas only, from version 15 on, where the session is told. Either
//     refuses the other with CLUSTER_AUTHORIZATION_FAILED.
var apiFetch = &api{key: keyFetch, name: "Fetch", min: 4, max: 18, replication: true, handle: (*exchange).fetch}

const (
	fetchFirstSessions     = 7
	fetchFirstTopicIDs     = 13
	fetchFirstState        = 15
	sessionEpochInitial    = 0
	sessionEpochFinal      = -1
	consumerID             = epoch.ReplicaID(-1)
	highWatermarkUntold    = math.MaxInt64
	replicaFetchMinVersion = fetchFirstState
)

func (x *exchange) fetch(ctx context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.FetchRequest)
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = x.version
	if x.version >= fetchFirstSessions && req.SessionEpoch != sessionEpochInitial && req.SessionEpoch != sessionEpochFinal {
		resp.ErrorCode = x.fail(CodeFetchSessionIDNotFound)
		return resp, nil
	}
	ours := x.planFetch(req, resp)
	if ours == nil {
		return resp, nil
	}
	// Another entry's refusal is answered at once, as a refusal of ours would be.
	wait := time.Duration(max(req.MaxWaitMillis, 0)) * time.Millisecond
	if ours.otherFailed {
		wait = 0
	}
	if x.Listener == Replication {
		x.replicaFetch(ctx, req, ours, wait)
	} else {
		x.consumerFetch(ctx, req, ours, wait)
	}
	ours.settle(x, resp)
	return resp, nil
}

// fetched is the entry of our partition in a Fetch under way.
type fetched struct {
	req         *kmsg.FetchRequestTopicPartition
	resp        *kmsg.FetchResponseTopicPartition
	maxBytes    int
	otherFailed bool
	result      FetchResult
	// answeredIn is the epoch that the leader told its follower, NoEpoch for consumers.
	answeredIn epoch.LeaderEpoch
}

// planFetch builds the response's entries with every refusal that needs no
// partition. It returns nil when nothing is left to read.
func (x *exchange) planFetch(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) *fetched {
	view := x.Partition.View()
	byID := x.version >= fetchFirstTopicIDs
	var ours *fetched
	failed := false
	resp.Topics = make([]kmsg.FetchResponseTopic, len(req.Topics))
	for i := range req.Topics {
		rt, t := &req.Topics[i], &resp.Topics[i]
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		t.Partitions = make([]kmsg.FetchResponseTopicPartition, len(rt.Partitions))
		for j := range rt.Partitions {
			e := emptyFetchEntry(&t.Partitions[j], rt.Partitions[j].Partition)
			var code Code
			switch {
			case !view.ours(rt.Topic, rt.TopicID, byID):
				code = unknownTopic(byID)
			case e.Partition != 0:
				code = CodeUnknownTopicOrPartition
			case ours != nil:
				code = CodeInvalidRequest
			default:
				code = x.authorizeFetch(req)
			}
			if code != CodeNone {
				e.ErrorCode = x.fail(code)
				failed = true
				continue
			}
			ours = &fetched{req: &rt.Partitions[j], resp: e, answeredIn: epoch.NoEpoch}
		}
	}
	if ours != nil {
		ours.otherFailed = failed
		ours.maxBytes = min(int(max(req.MaxBytes, 0)), int(max(ours.req.PartitionMaxBytes, 0)), x.limits.MaxFetchBytes)
	}
	return ours
}

func emptyFetchEntry(e *kmsg.FetchResponseTopicPartition, partition int32) *kmsg.FetchResponseTopicPartition {
	e.Default()
	e.Partition = partition
	e.HighWatermark, e.LastStableOffset, e.LogStartOffset = -1, -1, -1
	e.RecordBatches = []byte{}
	return e
}

// authorizeFetch keeps the two kinds of fetch on their listeners (DESIGN.md rule 9).
func (x *exchange) authorizeFetch(req *kmsg.FetchRequest) Code {
	id := x.fetcher(req)
	if x.Listener == Replication && id >= 0 || x.Listener != Replication && id == consumerID {
		return CodeNone
	}
	return CodeClusterAuthorizationFailed
}

// fetcher is the replica id that the request claims, -1 for a consumer.
func (x *exchange) fetcher(req *kmsg.FetchRequest) epoch.ReplicaID {
	if x.version >= fetchFirstState {
		return epoch.ReplicaID(req.ReplicaState.ID)
	}
	return epoch.ReplicaID(req.ReplicaID)
}

func (x *exchange) consumerFetch(ctx context.Context, req *kmsg.FetchRequest, f *fetched, wait time.Duration) {
	f.result = x.Partition.Fetch(ctx, FetchRequest{
		Offset: epoch.Offset(f.req.FetchOffset), MaxBytes: f.maxBytes, AtLeastOne: true,
		MinBytes: int(max(req.MinBytes, 0)), MaxWait: wait,
		CurrentLeaderEpoch: epoch.LeaderEpoch(f.req.CurrentLeaderEpoch),
		LastFetchedEpoch:   epoch.LeaderEpoch(f.req.LastFetchedEpoch),
	})
}

func (x *exchange) replicaFetch(ctx context.Context, req *kmsg.FetchRequest, f *fetched, wait time.Duration) {
	id, session := epoch.ReplicaID(req.ReplicaState.ID), epoch.Session(req.ReplicaState.Epoch)
	x.noteReplica(id, session)
	hw := epoch.Offset(f.req.HighWatermark)
	if f.req.HighWatermark == highWatermarkUntold {
		hw = epoch.NoOffset
	}
	res := x.Partition.ReplicaFetch(ctx, ReplicaFetchRequest{
		ReplicaID: id, Session: session, StartID: epoch.StartID(x.clientID), DirectoryID: f.req.ReplicaDirectoryID,
		CurrentLeaderEpoch: epoch.LeaderEpoch(f.req.CurrentLeaderEpoch),
		Offset:             epoch.Offset(f.req.FetchOffset),
		LastFetchedEpoch:   epoch.LeaderEpoch(f.req.LastFetchedEpoch),
		LogStartOffset:     epoch.Offset(f.req.LogStartOffset),
		HighWatermark:      hw,
		MaxBytes:           f.maxBytes, MinBytes: int(max(req.MinBytes, 0)), MaxWait: wait,
		ConnectionID: x.conn.id,
		Trouble:      troubleOf(&req.UnknownTags),
	})
	f.result, f.answeredIn = res.FetchResult, res.LeaderEpoch
}

// tagTrouble is a tagged field of our own in the fetches of followers: one byte with a bit
// for each trouble. Kafka's own tags count up from 0, and who does not know it skips it.
const tagTrouble = 10001

const (
	bitFull = 1 << iota
	bitDamaged
	bitDeaf
)

// TellTrouble puts into a follower's fetch what it says of itself.
func TellTrouble(req *kmsg.FetchRequest, t epoch.Trouble) {
	var bits byte
	if t.Full {
		bits |= bitFull
	}
	if t.Damaged {
		bits |= bitDamaged
	}
	if t.Deaf {
		bits |= bitDeaf
	}
	if bits != 0 {
		req.UnknownTags.Set(tagTrouble, []byte{bits})
	}
}

func troubleOf(tags *kmsg.Tags) (t epoch.Trouble) {
	tags.Each(func(key uint32, val []byte) {
		if key == tagTrouble && len(val) == 1 {
			t = epoch.Trouble{Full: val[0]&bitFull != 0, Damaged: val[0]&bitDamaged != 0, Deaf: val[0]&bitDeaf != 0}
		}
	})
	return t
}

// noteReplica remembers whose connection this is, for ReplicaDisconnected. A process
// that registered anew goes on with another session.
func (c *conn) noteReplica(id epoch.ReplicaID, session epoch.Session) {
	if c.replica.id == id && c.replica.session == session {
		return
	}
	if c.replica.id != epoch.NoReplica {
		c.Partition.ReplicaDisconnected(c.replica.id, c.replica.session, c.id)
	}
	c.replica.id, c.replica.session = id, session
}

// settle turns the partition's answer into the response's entry.
func (f *fetched) settle(x *exchange, resp *kmsg.FetchResponse) {
	x.after = f.result.Release
	if f.result.Err != nil {
		f.refuse(x, resp)
		return
	}
	e := f.resp
	e.HighWatermark = int64(f.result.HighWatermark)
	e.LastStableOffset = e.HighWatermark
	e.LogStartOffset = int64(f.result.LogStartOffset)
	if d := f.result.Diverging; d != nil {
		e.DivergingEpoch.Epoch, e.DivergingEpoch.EndOffset = int32(d.Epoch), int64(d.EndOffset)
	} else if len(f.result.Records) > 0 {
		e.RecordBatches = f.result.Records
	}
	if f.answeredIn != epoch.NoEpoch {
		e.CurrentLeader.LeaderID = int32(x.Partition.View().Self)
		e.CurrentLeader.LeaderEpoch = int32(f.answeredIn)
	}
}

func (f *fetched) refuse(x *exchange, resp *kmsg.FetchResponse) {
	code := x.code(f.result.Err)
	f.resp.ErrorCode = int16(code)
	leader, ok := x.currentLeader(code)
	if !ok {
		return
	}
	f.resp.CurrentLeader.LeaderID, f.resp.CurrentLeader.LeaderEpoch = leader.id, leader.epoch
	if leader.node != nil {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port = leader.id, leader.node.Address.Host, x.port(leader.node.Address)
		resp.Brokers = append(resp.Brokers, b)
	}
}
