package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Producer sends records to one log.
type Producer interface {
	// Produce takes a record, which stays as it is until done is called, once, when
	// the record is acknowledged or failed. It may block while too much is under way.
	Produce(ctx context.Context, value []byte, done func(error))
	// Batches is how many batches were sent so far, or 0 if that is not known.
	Batches() uint64
	Close()
}

// Run is what one run did.
type Run struct {
	Records uint64
	Bytes   uint64
	// Batches that the records were sent in; 0 if that is not known.
	Batches uint64
	// Elapsed is the time from the first record sent to the last one acknowledged.
	Elapsed time.Duration
	Latency *Histogram
}

// RecordsPerSecond is the rate of acknowledgements.
func (r Run) RecordsPerSecond() float64 { return float64(r.Records) / r.Elapsed.Seconds() }

// Values gives record values of one size, out of random bytes that do not compress.
type Values struct {
	bytes []byte
	size  int
}

// NewValues makes values of a size; the seed makes them the same in every run.
func NewValues(size int, seed uint64) Values {
	b := make([]byte, 4<<20+size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	_, _ = random.Read(b) // never fails
	return Values{b, size}
}

// at gives the value of record i.
func (v Values) at(i uint64) []byte {
	begin := i * 97 % uint64(len(v.bytes)-v.size)
	return v.bytes[begin:][:v.size]
}

// tally counts acknowledgements.
type tally struct {
	records atomic.Uint64
	failed  atomic.Pointer[error]
	latency Histogram
}

func (t *tally) add(sent time.Time, err error) {
	if err != nil {
		t.failed.CompareAndSwap(nil, &err)
		return
	}
	t.latency.Add(time.Since(sent))
	t.records.Add(1)
}

func (t *tally) run(v Values, elapsed time.Duration, batches uint64) (Run, error) {
	if err := t.failed.Load(); err != nil {
		return Run{}, *err
	}
	n := t.records.Load()
	return Run{Records: n, Bytes: n * uint64(v.size), Batches: batches, Elapsed: elapsed, Latency: &t.latency}, nil
}

func batches(producers []Producer) (n uint64) {
	for _, p := range producers {
		n += p.Batches()
	}
	return n
}

// Limit ends a closed loop: after a time, or once so many bytes were sent.
type Limit struct {
	Duration time.Duration
	Bytes    uint64
}

// Closed lets every producer have inFlight records under way, a new one for each that
// was acknowledged, until the limit, and then waits for the rest.
func Closed(ctx context.Context, producers []Producer, inFlight int, v Values, limit Limit) (Run, error) {
	var t tally
	var stop atomic.Bool
	var sent atomic.Uint64
	if limit.Duration > 0 {
		timer := time.AfterFunc(limit.Duration, func() { stop.Store(true) })
		defer timer.Stop()
	}
	before := batches(producers)
	begun := time.Now()
	var workers sync.WaitGroup
	for _, p := range producers {
		workers.Go(func() {
			slots := make(chan struct{}, inFlight)
			for !stop.Load() && ctx.Err() == nil && t.failed.Load() == nil {
				n := sent.Add(1)
				if limit.Bytes > 0 && n*uint64(v.size) > limit.Bytes {
					break
				}
				slots <- struct{}{}
				at := time.Now()
				p.Produce(ctx, v.at(n), func(err error) {
					t.add(at, err)
					<-slots
				})
			}
			for range inFlight {
				slots <- struct{}{}
			}
		})
	}
	workers.Wait()
	return t.run(v, time.Since(begun), batches(producers)-before)
}
