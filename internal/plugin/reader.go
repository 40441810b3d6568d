package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

const (
	// fetchBytes and fetchWait bound one fetch.
	fetchBytes = 8 << 20
	fetchWait  = 500 * time.Millisecond
	// retryPause is between two attempts to get an answer from a leader.
	retryPause = 100 * time.Millisecond
)

// reader reads a partition from its leader, whoever that is. It fetches by itself, since a
// consumer of the client library does not tell how far it has read where there are no records:
// compaction leaves such gaps, also at the end.
type reader struct {
	client  *kgo.Client
	topic   string
	name    string
	timeout time.Duration

	leader  int32
	topicID [16]byte
	known   bool // leader and topic id
}

// ask sends requests to the leader until one is answered, or time is up. answer returns
// errors of Kafka that are worth another attempt, and any other to end it.
func (r *reader) ask(ctx context.Context, request func() kmsg.Request, answer func(kmsg.Response) error) error {
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for {
		err := r.findLeader(within)
		if err == nil {
			var resp kmsg.Response
			if resp, err = r.client.Broker(int(r.leader)).Request(within, request()); err == nil {
				if err = answer(resp); err == nil || !kerr.IsRetriable(err) {
					return err
				}
			}
		}
		r.known = false
		select {
		case <-time.After(retryPause):
		case <-within.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errUnreached(within, r.name, err)
		}
	}
}

func (r *reader) findLeader(ctx context.Context) error {
	if r.known {
		return nil
	}
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &r.topic
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return errors.New("the replica's metadata name no topic")
	}
	got := resp.Topics[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		return err
	}
	if len(got.Partitions) != 1 || got.Partitions[0].Leader < 0 {
		return errors.New("nobody leads")
	}
	r.leader, r.topicID, r.known = got.Partitions[0].Leader, got.TopicID, true
	return nil
}

// bounds are the log's first offset, and its high watermark.
func (r *reader) bounds(ctx context.Context) (start, end int64, err error) {
	const earliest, latest = -2, -1
	if start, err = r.listOffset(ctx, earliest); err == nil {
		end, err = r.listOffset(ctx, latest)
	}
	return start, end, err
}

func (r *reader) listOffset(ctx context.Context, timestamp int64) (offset int64, err error) {
	err = r.ask(ctx, func() kmsg.Request {
		req := kmsg.NewPtrListOffsetsRequest()
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = r.topic
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = timestamp
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		return req
	}, func(resp kmsg.Response) error {
		topics := resp.(*kmsg.ListOffsetsResponse).Topics
		if len(topics) != 1 || len(topics[0].Partitions) != 1 {
			return errors.New("the leader's answer names no offset")
		}
		p := topics[0].Partitions[0]
		offset = p.Offset
		return kerr.ErrorForCode(p.ErrorCode)
	})
	return offset, err
}

// fetch hands out the records from an offset on that one answer brings, and returns where to
// go on. There may be none.
func (r *reader) fetch(ctx context.Context, from int64, each func(batch.Record) error) (next int64, err error) {
	var records []byte
	err = r.ask(ctx, func() kmsg.Request { return r.fetchRequest(from) }, func(resp kmsg.Response) error {
		topics := resp.(*kmsg.FetchResponse).Topics
		if err := kerr.ErrorForCode(resp.(*kmsg.FetchResponse).ErrorCode); err != nil {
			return err
		}
		if len(topics) != 1 || len(topics[0].Partitions) != 1 {
			return errors.New("the leader's answer names no partition")
		}
		p := topics[0].Partitions[0]
		if p.ErrorCode == kerr.OffsetOutOfRange.Code {
			return fmt.Errorf("offset %d is not there: the log starts at %d, and its high watermark is %d", from, p.LogStartOffset, p.HighWatermark)
		}
		records = p.RecordBatches
		return kerr.ErrorForCode(p.ErrorCode)
	})
	if err != nil {
		return from, err
	}
	return decode(records, from, each)
}

func (r *reader) fetchRequest(from int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1 // a consumer
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(fetchWait.Milliseconds()), 1, fetchBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = r.topic, r.topicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = from, fetchBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// decode goes through whole batches. The first may begin below the offset asked for.
func decode(records []byte, from int64, each func(batch.Record) error) (next int64, err error) {
	next = from
	for len(records) > 0 {
		b, rest, err := batch.Next(records)
		if errors.Is(err, batch.ErrIncomplete) {
			return next, nil
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err != nil {
			return next, fmt.Errorf("the batch at offset %d: %w", next, err)
		}
		for rec, err := range batch.Records(b) {
			if err != nil {
				return next, fmt.Errorf("the batch at offset %d: %w", b.BaseOffset(), err)
			}
			if b.Control() || rec.Offset < epochOffset(next) {
				continue
			}
			if err := each(rec); err != nil {
				return next, err
			}
		}
		next, records = int64(b.NextOffset()), rest
	}
	return next, nil
}

func epochOffset(o int64) epoch.Offset { return epoch.Offset(o) }
