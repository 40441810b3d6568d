package processes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

// service is the name that clients know the partition by; it leads to any replica that is ready, as a Service does.
const service = "service:9092"

// viaService makes a client that connects to the service first.
func (p *partition) viaService() kgo.Opt {
	dialer := net.Dialer{Timeout: 500 * time.Millisecond}
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == service {
			address = p.anyReady()
		}
		return dialer.DialContext(ctx, network, address)
	})
}

func (p *partition) anyReady() string {
	all := p.kubelet.containers()
	var ready []*container
	for _, c := range all {
		if c.isReady() {
			ready = append(ready, c)
		}
	}
	if len(ready) == 0 {
		ready = all
	}
	if len(ready) == 0 {
		return "127.0.0.1:1" // refused at once
	}
	return ready[rand.IntN(len(ready))].ip + ":9092"
}

// nemesisLoad is every kind of client at work.
type nemesisLoad struct {
	p         *partition
	history   *history.Log
	reliable  []*prober.Prober // idempotent, acks=all: none of their records may fail
	others    []*prober.Prober
	readers   []*prober.Reader
	rereading *rereader
	reads     []history.Read // when it is over
}

// producers of a round: two idempotent ones, one that learns of each refusal, and those that ask for less.
var producers = []prober.Config{
	{Name: "idempotent-1", Every: 15 * time.Millisecond, Padding: 500},
	{Name: "idempotent-2", Every: 40 * time.Millisecond, Padding: 2000},
	{Name: "once", Every: 60 * time.Millisecond, Once: true, Promise: history.Promise{Plain: true}},
	{Name: "plain", Every: 60 * time.Millisecond, Promise: history.Promise{Plain: true}},
	{Name: "leader-ack", Every: 30 * time.Millisecond, Promise: history.Promise{Acks: history.AcksLeader, Plain: true}},
	{Name: "no-ack", Every: 60 * time.Millisecond, Promise: history.Promise{Acks: history.AcksNone, Plain: true}},
}

func startNemesisLoad(p *partition) *nemesisLoad {
	p.t.Helper()
	l := &nemesisLoad{p: p, history: history.NewLog()}
	for range 2 {
		r, err := prober.StartReader([]string{service}, p.key.Name, p.viaService(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
		if err != nil {
			p.t.Fatal(err)
		}
		l.readers = append(l.readers, r)
	}
	for _, cfg := range producers {
		cfg.Brokers, cfg.Topic, cfg.History, cfg.Options = []string{service}, p.key.Name, l.history, []kgo.Opt{p.viaService()}
		if !cfg.Promise.Plain {
			cfg.Options = append(cfg.Options, kgo.StopProducerOnDataLossDetected())
		}
		producer, err := prober.Start(cfg)
		if err != nil {
			p.t.Fatal(err)
		}
		if cfg.Promise.Plain {
			l.others = append(l.others, producer)
		} else {
			l.reliable = append(l.reliable, producer)
		}
	}
	l.rereading = startRereader(p)
	p.t.Cleanup(l.breakOff)
	l.await(p.t, time.Now())
	return l
}

// breakOff ends what a failed round has left running; after a round that was finished it does nothing.
func (l *nemesisLoad) breakOff() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.rereading.stop()
	for _, p := range append(l.reliable, l.others...) {
		_, _ = p.Stop(ctx)
	}
	for _, r := range l.readers {
		_, _ = r.Stop()
	}
}

// await waits until every producer that is owed an answer had one for a record sent after that moment. A producer that
// failed fails the test, which goes on: the verdict tells more.
func (l *nemesisLoad) await(t *testing.T, after time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, p := range l.reliable {
		if err := p.Await(ctx, after); err != nil {
			t.Errorf("idempotent producer %d: %v", i+1, err)
		}
	}
}

// stopProducers waits for every answer and returns the end of what was acknowledged with acks=all.
func (l *nemesisLoad) stopProducers(t *testing.T) (end int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, p := range l.others {
		if _, err := p.Stop(ctx); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a producer that is not idempotent has no answers: %v", err)
		}
	}
	for i, p := range l.reliable {
		e, err := p.Stop(ctx)
		if err != nil {
			t.Errorf("idempotent producer %d, whose records must not fail: %v", i+1, err)
		}
		end = max(end, e)
	}
	return end
}

// stopReaders lets the consumers read all that was acknowledged.
func (l *nemesisLoad) stopReaders(t *testing.T, end int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, r := range l.readers {
		if err := r.Await(ctx, end); err != nil {
			t.Error(err) // and what it missed is in the verdict
		}
		records, err := r.Stop()
		if err != nil {
			t.Error(err)
		}
		l.reads = append(l.reads, history.Read{Name: fmt.Sprintf("consumer %d", i+1), Records: records, Upto: end})
	}
	for i, records := range l.rereading.stop() {
		l.reads = append(l.reads, history.Read{Name: fmt.Sprintf("late consumer %d", i+1), Records: records})
	}
}

// keep writes down what the clients saw.
func (l *nemesisLoad) keep(dir string) {
	f, err := os.Create(filepath.Join(dir, "history.txt"))
	if err != nil {
		l.p.t.Log(err)
		return
	}
	defer f.Close()
	if err := l.history.Write(f); err != nil {
		l.p.t.Log(err)
	}
	for _, r := range l.reads {
		g, err := os.Create(filepath.Join(dir, "read-"+r.Name+".txt"))
		if err != nil {
			l.p.t.Log(err)
			return
		}
		for _, rec := range r.Records {
			_, _ = fmt.Fprintln(g, rec.Offset, rec.Value)
		}
		_ = g.Close()
	}
}

// rereader is one consumer after the other, each of which reads the log from its start to its end.
type rereader struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	reads  [][]history.Record
}

func startRereader(p *partition) *rereader {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rereader{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			one, cancel := context.WithTimeout(ctx, 10*time.Second)
			read, _ := prober.ReadAll(one, []string{service}, p.key.Name, 1, p.viaService()) // as far as it got
			// Not again at once: a log that is being read all the time is a load of another kind.
			timer := time.NewTimer(3 * time.Second)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			cancel()
			r.mu.Lock()
			r.reads = append(r.reads, read)
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *rereader) stop() [][]history.Record {
	r.cancel()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}
