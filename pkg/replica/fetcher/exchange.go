package fetcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

const (
	// fetchVersion has the directory id and the follower's high watermark (KIP-1166).
	fetchVersion       = 18
	listOffsetsVersion = 8
	dialTimeout        = 2 * time.Second
	// answerGrace is how long an answer may take beyond the wait that was asked for.
	answerGrace = 5 * time.Second
	// maxAnswer bounds an answer: a single batch may be larger than what was asked for
	// (KIP-74), up to the largest request of Kafka.
	maxAnswer = 128 << 20
)

// refusal is an error code of the leader's. The connection stays usable.
type refusal struct{ err error }

func (r *refusal) Error() string { return "the leader refuses: " + r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

type connection struct {
	client *kafka.Client
}

func connect(ctx context.Context, a epoch.Address, cfg Config) (*connection, error) {
	if a.Host == "" || a.ReplicationPort == 0 {
		return nil, fmt.Errorf("the leader has not registered an address")
	}
	nc, err := dial(ctx, a)
	if err != nil {
		return nil, err
	}
	return &connection{client: kafka.NewClient(nc, string(cfg.Me.StartID), maxAnswer)}, nil
}

func dial(ctx context.Context, a epoch.Address) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: KeepAlive, Control: LimitSilence}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(a.Host, strconv.Itoa(int(a.ReplicationPort))))
}

// Refuses reports that a replica's machine is there and no process of it listens. It waits
// for as long as a follower does before it connects anew: a process that ends closes
// its connections and its listener in any order.
func Refuses(a epoch.Address) bool {
	time.Sleep(firstPause)
	nc, err := dial(context.Background(), a)
	if err == nil {
		_ = nc.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (c *connection) close() { _ = c.client.Close() }

// fetch asks for records from the log's end on, and acknowledges what is below it.
// The records are valid until the next call.
func (c *connection) fetch(ctx context.Context, cfg Config, q core.FetchRequest) (core.FetchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.MaxWait+answerGrace)
	defer cancel()
	answer, err := c.client.Do(ctx, fetchRequest(cfg, q))
	if err != nil {
		return core.FetchResponse{}, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 {
		return core.FetchResponse{}, &refusal{kafka.ErrorOf(resp.ErrorCode)}
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return core.FetchResponse{}, fmt.Errorf("the leader answered a fetch of one partition with another number of them")
	}
	p := resp.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return core.FetchResponse{}, &refusal{kafka.ErrorOf(p.ErrorCode)}
	}
	a := core.FetchResponse{HighWatermark: epoch.Offset(p.HighWatermark), LogStartOffset: epoch.Offset(p.LogStartOffset), Records: p.RecordBatches}
	if d := p.DivergingEpoch; d.EndOffset >= 0 && d.Epoch >= 0 {
		a.Diverging = &epoch.Entry{Epoch: epoch.LeaderEpoch(d.Epoch), Start: epoch.Offset(d.EndOffset)}
	}
	return a, nil
}

func fetchRequest(cfg Config, q core.FetchRequest) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersion
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(cfg.Me.ID), int64(cfg.Me.Session)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(cfg.MaxWait.Milliseconds()), 1, int32(cfg.MaxBytes)
	req.SessionEpoch = -1
	kafka.TellTrouble(req, q.Trouble)
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch = int32(q.LeaderEpoch), int64(q.Offset), int32(q.LastEpoch)
	p.LogStartOffset, p.HighWatermark = int64(q.LogStartOffset), int64(q.HighWatermark)
	p.PartitionMaxBytes, p.ReplicaDirectoryID = int32(cfg.MaxBytes), cfg.Me.DirectoryID
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = cfg.Topic, cfg.TopicID
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// bounds asks for the leader's log start and end.
func (c *connection) bounds(ctx context.Context, cfg Config, e epoch.LeaderEpoch) (start, end epoch.Offset, err error) {
	if start, err = c.offset(ctx, cfg, e, kafka.TimestampEarliest); err != nil {
		return 0, 0, err
	}
	end, err = c.offset(ctx, cfg, e, kafka.TimestampLatest)
	return start, end, err
}

func (c *connection) offset(ctx context.Context, cfg Config, e epoch.LeaderEpoch, timestamp int64) (epoch.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = listOffsetsVersion, int32(cfg.Me.ID)
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = int32(e), timestamp
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = cfg.Topic
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	answer, err := c.client.Do(ctx, req)
	if err != nil {
		return 0, err
	}
	resp := answer.(*kmsg.ListOffsetsResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("the leader answered a question about one partition with another number of them")
	}
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		return 0, &refusal{kafka.ErrorOf(code)}
	}
	return epoch.Offset(resp.Topics[0].Partitions[0].Offset), nil
}
