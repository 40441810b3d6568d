package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// memPartition is a log in memory with one replica: everything appended is
// committed, unless acknowledgements are held back. It dedupes as a leader does.
type memPartition struct {
	mu        sync.Mutex
	view      View
	rules     ProduceRules
	batches   []batch.Batch
	end       epoch.Offset
	producers map[int64][]batch.Batch // the last five of each
	nextID    int64
	changed   chan struct{} // closed at every change
	// acks, if set, takes the completions instead of running them.
	acks chan func()
	// failWith is answered to everything while set.
	failWith error

	replicaFetches []ReplicaFetchRequest
	disconnected   []uint64
	listed         []ListOffsetsRequest
	deleted        []DeleteRecordsRequest
	start          epoch.Offset
	released       int
}

const testTopic = "orders"

var testTopicID = epoch.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// newMemPartition is replica 0, leader in epoch 3, of three replicas; 2 is offline.
func newMemPartition() *memPartition {
	return &memPartition{
		rules: ProduceRules{MaxMessageBytes: 1 << 20}, producers: map[int64][]batch.Batch{}, changed: make(chan struct{}),
		view: View{
			Topic: testTopic, TopicID: testTopicID, Self: 0, Leads: true, Leader: 0, LeaderEpoch: 3,
			Replicas: []Node{{ID: 0}, {ID: 1}, {ID: 2}},
			LiveISR:  []epoch.ReplicaID{0, 1}, Offline: []epoch.ReplicaID{2},
		},
	}
}

func (p *memPartition) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *memPartition) setView(f func(v *View)) { p.change(func() { f(&p.view) }) }

func (p *memPartition) View() View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

func (p *memPartition) Rules() ProduceRules { return p.rules }

// Configs tells one setting as it is by default, and one that is not.
func (p *memPartition) Configs() (topic, broker []ConfigEntry) {
	e := ConfigEntry{Name: "segment.bytes", Value: "5", Default: "5", Type: kmsg.ConfigTypeInt, From: "spec.log.segmentBytes"}
	f := ConfigEntry{Name: "retention.bytes", Value: "7", Default: "-1", Type: kmsg.ConfigTypeLong, From: "spec.log.retentionBytes"}
	return []ConfigEntry{e, f}, []ConfigEntry{{Name: "node.id", Value: "0"}}
}

func (p *memPartition) Produce(r ProduceRequest, done func(ProduceResult)) {
	var res ProduceResult
	p.change(func() {
		res = p.append(r.Batch)
		if r.AppendTime && res.Err == nil {
			res.LogAppendTime = time.Now().UnixMilli()
		}
	})
	if p.acks != nil {
		p.acks <- func() { done(res) }
		return
	}
	done(res)
}

func (p *memPartition) append(b batch.Batch) ProduceResult {
	res := ProduceResult{BaseOffset: p.end, LogAppendTime: -1, Err: p.failWith}
	if res.Err == nil && !p.view.Leads {
		res.Err = core.ErrNotLeader
	}
	if res.Err != nil {
		return res
	}
	stored := slices.Clone(b)
	stored.SetBaseOffset(p.end)
	stored.SetLeaderEpoch(p.view.LeaderEpoch)
	if id := b.ProducerID(); id >= 0 {
		last := p.producers[id]
		for _, old := range last {
			if old.ProducerEpoch() == b.ProducerEpoch() && old.BaseSequence() == b.BaseSequence() && old.LastSequence() == b.LastSequence() {
				res.BaseOffset = old.BaseOffset()
				return res
			}
		}
		if n := len(last); n > 0 && last[n-1].ProducerEpoch() == b.ProducerEpoch() && b.BaseSequence() != last[n-1].LastSequence()+1 {
			res.Err = log.ErrOutOfOrderSequence
			return res
		}
		last = append(last, stored)
		p.producers[id] = last[max(0, len(last)-5):]
	}
	p.batches = append(p.batches, stored)
	p.end = stored.NextOffset()
	return res
}

// read waits for minBytes at offset and returns whole batches.
func (p *memPartition) read(ctx context.Context, offset epoch.Offset, maxBytes, minBytes int, atLeastOne bool, current epoch.LeaderEpoch, wait time.Duration) FetchResult {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		p.mu.Lock()
		res := p.readNow(offset, maxBytes, atLeastOne, current)
		changed := p.changed
		p.mu.Unlock()
		if res.Err != nil || len(res.Records) >= minBytes || ctx.Err() != nil {
			return res
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (p *memPartition) readNow(offset epoch.Offset, maxBytes int, atLeastOne bool, current epoch.LeaderEpoch) FetchResult {
	res := FetchResult{HighWatermark: p.end, Err: p.failWith, Release: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.released++
	}}
	switch {
	case res.Err != nil:
	case current != epoch.NoEpoch && current < p.view.LeaderEpoch:
		res.Err = core.ErrFencedLeaderEpoch
	case current > p.view.LeaderEpoch:
		res.Err = core.ErrUnknownLeaderEpoch
	case !p.view.Leads:
		res.Err = core.ErrNotLeader
	case offset < 0 || offset > p.end:
		res.Err = core.ErrOffsetOutOfRange
	}
	if res.Err != nil {
		return res
	}
	for _, b := range p.batches {
		if b.NextOffset() <= offset {
			continue
		}
		if len(res.Records)+len(b) > maxBytes && !(atLeastOne && len(res.Records) == 0) {
			break
		}
		res.Records = append(res.Records, b...)
	}
	return res
}

func (p *memPartition) Fetch(ctx context.Context, r FetchRequest) FetchResult {
	return p.read(ctx, r.Offset, r.MaxBytes, r.MinBytes, r.AtLeastOne, r.CurrentLeaderEpoch, r.MaxWait)
}

func (p *memPartition) ReplicaFetch(ctx context.Context, r ReplicaFetchRequest) ReplicaFetchResult {
	p.mu.Lock()
	p.replicaFetches = append(p.replicaFetches, r)
	p.mu.Unlock()
	res := ReplicaFetchResult{FetchResult: p.read(ctx, r.Offset, r.MaxBytes, r.MinBytes, true, r.CurrentLeaderEpoch, r.MaxWait), LeaderEpoch: p.View().LeaderEpoch}
	if r.LastFetchedEpoch > res.LeaderEpoch {
		res.Records, res.Diverging = nil, &DivergingEpoch{Epoch: res.LeaderEpoch, EndOffset: res.HighWatermark}
	}
	return res
}

func (p *memPartition) ReplicaDisconnected(_ epoch.ReplicaID, _ epoch.Session, connectionID uint64) {
	p.change(func() { p.disconnected = append(p.disconnected, connectionID) })
}

func (p *memPartition) ListOffsets(_ context.Context, r ListOffsetsRequest) (ListOffsetsResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = append(p.listed, r)
	if p.failWith != nil {
		return ListOffsetsResult{}, p.failWith
	}
	none := ListOffsetsResult{Offset: epoch.NoOffset, Timestamp: -1, LeaderEpoch: epoch.NoEpoch}
	switch r.Timestamp {
	case TimestampLatest:
		return ListOffsetsResult{Offset: p.end, Timestamp: -1, LeaderEpoch: p.view.LeaderEpoch}, nil
	case TimestampEarliest, TimestampEarliestLocal:
		return ListOffsetsResult{Offset: 0, Timestamp: -1, LeaderEpoch: p.view.LeaderEpoch}, nil
	case TimestampMax:
		return none, nil
	}
	for _, b := range p.batches {
		if b.MaxTimestamp() >= r.Timestamp {
			return ListOffsetsResult{Offset: b.BaseOffset(), Timestamp: b.MaxTimestamp(), LeaderEpoch: b.LeaderEpoch()}, nil
		}
	}
	return none, nil
}

func (p *memPartition) EpochEndOffset(_ context.Context, _, e epoch.LeaderEpoch) (epoch.LeaderEpoch, epoch.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failWith != nil {
		return epoch.NoEpoch, epoch.NoOffset, p.failWith
	}
	if e < p.view.LeaderEpoch {
		return epoch.NoEpoch, epoch.NoOffset, nil
	}
	return p.view.LeaderEpoch, p.end, nil
}

// DeleteRecords moves the start at once; the other replicas have followed by then.
func (p *memPartition) DeleteRecords(_ context.Context, r DeleteRecordsRequest) (epoch.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted = append(p.deleted, r)
	switch {
	case p.failWith != nil:
		return epoch.NoOffset, p.failWith
	case r.Offset == epoch.NoOffset:
		r.Offset = p.end
	case r.Offset < 0 || r.Offset > p.end:
		return epoch.NoOffset, core.ErrOffsetOutOfRange
	}
	p.start = max(p.start, r.Offset)
	return p.start, nil
}

func (p *memPartition) AllocateProducerID(context.Context) (int64, int16, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextID++
	return p.nextID, 0, p.failWith
}

// values decodes all records of the log.
func (p *memPartition) values() (out []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.batches {
		for r, err := range batch.Records(b) {
			if err != nil {
				return nil, err
			}
			out = append(out, string(r.Value))
		}
	}
	return out, nil
}
