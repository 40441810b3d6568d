package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

// maxPending is what one producer may have under way.
const maxPending = 1 << 15

// stream is one log; its subject is its name.
type stream struct {
	*System
	name   string
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

var _ system.Log = (*stream)(nil)

func (st *stream) open(ctx context.Context) (err error) {
	if st.conn, err = st.connect(ctx); err != nil {
		return err
	}
	if st.js, err = jetstream.New(st.conn); err != nil {
		return err
	}
	config := jetstream.StreamConfig{Name: st.name, Subjects: []string{st.name}, Storage: jetstream.FileStorage, Replicas: servers}
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		st.stream, err = st.js.CreateOrUpdateStream(one, config)
		cancel()
		if err == nil {
			if _, err = st.Leader(ctx); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Servers implements system.Log.
func (st *stream) Servers() []system.Server {
	var all []system.Server
	for i, p := range st.processes {
		all = append(all, system.Server{Name: serverName(i), PID: p.PID(), Dir: st.store(i)})
	}
	return all
}

// Leader implements system.Log; it is an error as long as not all replicas are current.
func (st *stream) Leader(ctx context.Context) (int, error) {
	info, err := st.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	if info.Cluster == nil || len(info.Cluster.Replicas) != servers-1 {
		return 0, fmt.Errorf("stream %s has not all replicas yet", st.name)
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current {
			return 0, fmt.Errorf("%s is not current", r.Name)
		}
	}
	for i := range servers {
		if serverName(i) == info.Cluster.Leader {
			return i, nil
		}
	}
	return 0, fmt.Errorf("stream %s has no leader", st.name)
}

// Flushes implements system.Log.
func (*stream) Flushes(context.Context, int) (uint64, bool) { return 0, false }

// Close deletes the stream.
func (st *stream) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = st.js.DeleteStream(ctx, st.name) // the whole directory goes at the end
	st.conn.Close()
}

// published is a record that waits for its acknowledgement.
type published struct {
	jetstream.PubAckFuture
	done func(error)
}

type producer struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string
	waiting chan published
	ended   chan struct{}
}

// Producer implements system.Log.
func (st *stream) Producer(system.Acks) (load.Producer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	nc, err := st.connect(ctx)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(30*time.Second))
	if err != nil {
		nc.Close()
		return nil, err
	}
	p := &producer{nc, js, st.name, make(chan published, maxPending), make(chan struct{})}
	go p.await()
	return p, nil
}

// Produce implements load.Producer.
func (p *producer) Produce(_ context.Context, value []byte, done func(error)) {
	f, err := p.js.PublishAsync(p.subject, value, jetstream.WithStallWait(30*time.Second))
	if err != nil {
		done(err)
		return
	}
	p.waiting <- published{f, done}
}

// await takes the acknowledgements in the order of the records, which is theirs.
func (p *producer) await() {
	defer close(p.ended)
	for w := range p.waiting {
		select {
		case <-w.Ok():
			w.done(nil)
		case err := <-w.Err():
			w.done(err)
		}
	}
}

// Batches implements load.Producer.
func (*producer) Batches() uint64 { return 0 }

// Close implements load.Producer.
func (p *producer) Close() {
	close(p.waiting)
	<-p.ended
	p.conn.Close()
}

// Consume implements system.Log.
func (st *stream) Consume(ctx context.Context, records uint64) (system.Consumed, error) {
	c, err := st.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return system.Consumed{}, err
	}
	begun := time.Now()
	messages, err := c.Messages(jetstream.PullMaxMessages(5000))
	if err != nil {
		return system.Consumed{}, err
	}
	defer messages.Stop()
	var got system.Consumed
	for got.Records < records {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return got, fmt.Errorf("read message %d of %d: %w", got.Records, records, err)
		}
		got.Records++
		got.Bytes += uint64(len(m.Data()))
	}
	got.Elapsed = time.Since(begun)
	return got, nil
}
