package prober

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
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
	// Promise is how it writes: an idempotent producer with acks=all if zero. A plain one has one request under way, so
	// that its retries keep the order.
	Promise history.Promise
	// Once gives each record one try, so that a refusal is known to mean that the record was not appended. It needs a
	// plain producer; failures are to be expected.
	Once bool
	// Padding is the size of a header that makes records larger, in bytes.
	Padding int
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

// producer makes the client's options.
func (c Config) producer() []kgo.Opt {
	acks := map[history.Acks]kgo.Acks{history.AcksAll: kgo.AllISRAcks(), history.AcksLeader: kgo.LeaderAck(), history.AcksNone: kgo.NoAck()}
	opts := append(impatient(c.Brokers),
		kgo.DefaultProduceTopic(c.Topic),
		kgo.RequiredAcks(acks[c.Promise.Acks]),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1_000_000), // an outage must not stop the sending
		kgo.UnknownTopicRetries(-1),
	)
	if c.Promise.Plain {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if c.Once {
		opts = append(opts, kgo.RecordRetries(0))
	}
	return opts
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
	cfg.History.Declare(cfg.Name, cfg.Promise)
	client, err := kgo.NewClient(append(cfg.producer(), cfg.Options...)...)
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
	if p.cfg.Padding > 0 {
		record.Headers = []kgo.RecordHeader{{Key: "padding", Value: make([]byte, p.cfg.Padding)}}
	}
	// Not the loop's context: a record that has been sent is not taken back when the prober stops.
	p.client.Produce(context.Background(), record, func(r *kgo.Record, err error) {
		switch {
		case err == nil:
			p.cfg.History.Acked(p.cfg.Name, seq, r.Offset)
		case p.cfg.Once && errors.Is(err, kerr.NotEnoughReplicas):
			// Of the errors a leader answers with only this one always means: not appended.
			p.cfg.History.Rejected(p.cfg.Name, seq)
		default:
			p.cfg.History.Failed(p.cfg.Name, seq)
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
