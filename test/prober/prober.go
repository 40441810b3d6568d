package prober

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
)

// Config says what to write, and where.
type Config struct {
	// Brokers are addresses, host:port, of which one must answer.
	Brokers []string
	// Topic is written to; its only partition is 0.
	Topic string
	// Name is the producer's name in the history; "probe" if empty. Every record carries it as its key.
	Name string
	// Every is the time between two records; 5 ms if zero.
	Every time.Duration
	// History is told of every record and answer; a new one if nil.
	History *history.Log
	// Options are added to the client's, last.
	Options []kgo.Opt
}

// Prober is one producer at work.
type Prober struct {
	cfg    Config
	client *kgo.Client
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	acks    []time.Time // when each acknowledgement came, ascending
	newest  time.Time   // when the newest acknowledged record was sent
	highest int64       // highest acknowledged offset, -1 before the first
	err     error       // why the first record failed
	changed chan struct{}
}

// impatient makes a client that finds a new leader as soon as there is one.
func impatient(brokers []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		// a lost machine refuses nothing: each request under way tries to connect to it again, one after the other
		kgo.DialTimeout(200 * time.Millisecond),
		kgo.RequestTimeoutOverhead(200 * time.Millisecond),
		kgo.ProduceRequestTimeout(time.Second),
		// what it writes is read by clients that were built without codecs
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.MetadataMaxAge(10 * time.Second),
	}
}

// Start connects and begins to write. It does not wait for the cluster.
func Start(cfg Config) (*Prober, error) {
	if cfg.Name == "" {
		cfg.Name = "probe"
	}
	if cfg.Every == 0 {
		cfg.Every = 5 * time.Millisecond
	}
	if cfg.History == nil {
		cfg.History = history.NewLog()
	}
	opts := append(impatient(cfg.Brokers),
		kgo.DefaultProduceTopic(cfg.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1_000_000), // an outage must not stop the sending
		kgo.UnknownTopicRetries(-1),
	)
	client, err := kgo.NewClient(append(opts, cfg.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("prober of %s: %w", cfg.Topic, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{cfg: cfg, client: client, stop: cancel, done: make(chan struct{}), highest: -1, changed: make(chan struct{})}
	go p.run(ctx)
	return p, nil
}

func (p *Prober) run(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(p.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.send()
		}
	}
}

func (p *Prober) send() {
	sent := time.Now()
	seq, value := p.cfg.History.Send(p.cfg.Name)
	record := &kgo.Record{Key: []byte(p.cfg.Name), Value: []byte(value)}
	// Not the loop's context: a record that has been sent is not taken back when the prober stops.
	p.client.Produce(context.Background(), record, func(r *kgo.Record, err error) {
		if err != nil {
			p.cfg.History.Failed(p.cfg.Name, seq)
		} else {
			p.cfg.History.Acked(p.cfg.Name, seq, r.Offset)
		}
		p.answered(sent, r.Offset, err)
	})
}

func (p *Prober) answered(sent time.Time, offset int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("a record sent at %s failed: %w", sent.Format(time.TimeOnly), err)
		}
		return
	}
	p.acks = append(p.acks, time.Now())
	if sent.After(p.newest) {
		p.newest = sent
	}
	p.highest = max(p.highest, offset)
	close(p.changed)
	p.changed = make(chan struct{})
}

// Await returns once a record that was sent after the given moment has been
// acknowledged: the topic takes records again.
func (p *Prober) Await(ctx context.Context, after time.Time) error {
	for {
		p.mu.Lock()
		newest, changed, failed := p.newest, p.changed, p.err
		p.mu.Unlock()
		if newest.After(after) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if failed != nil {
				return failed
			}
			return fmt.Errorf("no record sent to %s after %s was acknowledged: %w", p.cfg.Topic, after.Format(time.TimeOnly), ctx.Err())
		}
	}
}

// Longest returns the longest time without an acknowledgement that ended after
// the given moment.
func (p *Prober) Longest(after time.Time) Gap {
	p.mu.Lock()
	defer p.mu.Unlock()
	return longest(p.acks, after)
}

// Stop sends nothing more, waits until every record has its answer or ctx
// ends, and closes the client. It returns the end of what was acknowledged, the
// highest offset plus one, and an error if any record failed or stayed without
// an answer.
func (p *Prober) Stop(ctx context.Context) (end int64, err error) {
	p.stop()
	<-p.done
	flushed := p.client.Flush(ctx)
	p.client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return p.highest + 1, p.err
	case flushed != nil:
		return p.highest + 1, fmt.Errorf("records sent to %s were never answered: %w", p.cfg.Topic, flushed)
	}
	return p.highest + 1, nil
}
