package prober

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
)

// Reader is a consumer at work, that keeps what it is shown in the order in which it comes, whatever the offsets.
type Reader struct {
	client *kgo.Client
	topic  string
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	records []history.Record
	err     error // the first that tells of a loss
	next    int64 // one past the highest offset seen
	changed chan struct{}
}

// StartReader reads the topic from its start, as far as it is committed. It does not wait for the cluster.
func StartReader(brokers []string, topic string, options ...kgo.Opt) (*Reader, error) {
	client, err := consumer(brokers, topic, options)
	if err != nil {
		return nil, fmt.Errorf("reader of %s: %w", topic, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Reader{client: client, topic: topic, stop: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	go r.run(ctx)
	return r, nil
}

func (r *Reader) run(ctx context.Context) {
	defer close(r.done)
	defer r.client.Close()
	for ctx.Err() == nil {
		r.took(r.client.PollFetches(ctx))
	}
}

func (r *Reader) took(fetches kgo.Fetches) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fetches.EachRecord(func(rec *kgo.Record) {
		r.records = append(r.records, history.Record{Offset: rec.Offset, Value: string(rec.Value)})
		r.next = max(r.next, rec.Offset+1)
	})
	fetches.EachError(func(_ string, _ int32, err error) {
		if r.err == nil && tellsOfLoss(err) {
			r.err = fmt.Errorf("a reader of %s at offset %d was told of a loss: %w", r.topic, r.next, err)
		}
	})
	close(r.changed)
	r.changed = make(chan struct{})
}

// tellsOfLoss: the client was shown records and now learns that they are not there. Anything else it tries again.
func tellsOfLoss(err error) bool {
	var loss *kgo.ErrDataLoss
	return errors.As(err, &loss) || errors.Is(err, kerr.OffsetOutOfRange)
}

// Await returns once the records before the given offset were shown.
func (r *Reader) Await(ctx context.Context, end int64) error {
	for {
		r.mu.Lock()
		next, changed := r.next, r.changed
		r.mu.Unlock()
		if next >= end {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("a reader of %s is at offset %d of %d: %w", r.topic, next, end, ctx.Err())
		}
	}
}

// Stop ends the reading. It returns what was shown, and an error if the client was told meanwhile that something it had
// been shown, or was about to read, is lost.
func (r *Reader) Stop() ([]history.Record, error) {
	r.stop()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records, r.err
}
