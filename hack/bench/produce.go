package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/report"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

// Names of what samples hold.
const (
	recordsPerSecond   = "recordsPerSecond"
	megabytesPerSecond = "megabytesPerSecond" // of record values, 10^6 bytes
	recordsPerBatch    = "recordsPerBatch"
	recordsPerFlush    = "recordsPerFlush"
	p50, p99, p999     = "p50Milliseconds", "p99Milliseconds", "p999Milliseconds"
	leaderCPU          = "leaderCPUSecondsPerGiB"
	followersCPU       = "followersCPUSecondsPerGiB"
	clientCPU          = "clientCPUSecondsPerGiB"
	recordsPerCPU      = "recordsPerServerCPUSecond"
	offeredPerSecond   = "offeredPerSecond"
	residentMiB        = "residentMiB"
)

// enoughForP999 is how many latencies make a quantile of 0.999 more than an accident.
const enoughForP999 = 1000

// shape is what a case varies.
type shape struct {
	flush     system.Flush
	acks      system.Acks
	size      int
	producers int
}

func (c shape) String() string {
	return fmt.Sprintf("flush %s, acks=%s, %d bytes, %d producers", c.flush, c.acks, c.size, c.producers)
}

func (c shape) row(kind, of string, samples []report.Sample) report.Row {
	return report.Row{Kind: kind, System: of, Flush: string(c.flush), Acks: string(c.acks), Size: c.size, Producers: c.producers, Samples: samples}
}

// loaded is a log with producers.
type loaded struct {
	system.Log
	shape
	bench     *bench
	values    load.Values
	producers []load.Producer
	barrier   load.Producer // acks=all, whatever the others have
	leader    int
	written   uint64 // records
}

// shape measures one case: every repeat on a log of its own, first the highest rate, and
// then the latency at half of it.
func (b *bench) shape(ctx context.Context, s system.System, c shape) error {
	name := s.Info().Name
	produced, latency := c.row(measureProduce, name, nil), c.row(measureLatency, name, nil)
	var fetched [2]report.Row
	for i := range b.repeat {
		if err := b.once(ctx, s, c, i == b.repeat-1, &produced, &latency, &fetched); err != nil {
			return err
		}
	}
	rate, _ := produced.Median(recordsPerSecond)
	late, _ := latency.Median(p99)
	b.tell("%s, %v: %s records/s, p99 at half of that %s ms", name, c, report.Number(rate), report.Number(late))
	for _, r := range append([]report.Row{produced, latency}, fetched[:]...) {
		if len(r.Samples) == 0 || !b.wants(r.Kind) {
			continue
		}
		if err := b.add(r); err != nil {
			return err
		}
	}
	if b.wants(measureFloor) && name == tidemarkName && c.flush == system.FlushEveryBatch && c.acks == system.AcksAll {
		return b.gatheredFloor(produced)
	}
	return nil
}

// once is one repeat.
func (b *bench) once(ctx context.Context, s system.System, c shape, last bool, produced, latency *report.Row, fetched *[2]report.Row) error {
	l, err := b.load(ctx, s, c)
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := l.closed(ctx, load.Limit{Duration: b.warmup, Bytes: b.runBytes / 5}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	one, err := l.closed(ctx, load.Limit{Duration: b.duration, Bytes: b.runBytes})
	if err != nil {
		return err
	}
	produced.Samples = append(produced.Samples, one)
	if err := l.notePeak(s.Info().Name); err != nil {
		return err
	}
	if b.wants(measureLatency) {
		one, err := l.open(ctx, one[recordsPerSecond]/2)
		if err != nil {
			return fmt.Errorf("at half of the peak: %w", err)
		}
		latency.Samples = append(latency.Samples, one)
	}
	if last && b.wants(measureFetch) && c.flush == system.FlushNever && c.acks == system.AcksAll && c.producers == b.producers[len(b.producers)-1] {
		*fetched, err = b.fetches(ctx, s, l)
	}
	return err
}

// rouse puts load on a system whose processes serve all cases, before the first one: a
// Java machine compiles what is used most only after a while. It goes on, run by run,
// for as long as a record costs less and less.
func (b *bench) rouse(ctx context.Context, s system.System) error {
	begun, best, worse := time.Now(), 0.0, 0
	for ; worse < enoughToRouse && time.Since(begun) < b.rousing; worse++ {
		one, err := b.rouseOnce(ctx, s)
		if err != nil {
			return err
		}
		if n := one[recordsPerCPU]; n > rousedBy*best {
			best, worse = n, -1
		}
	}
	b.tell("%s: %.0f s of load before the first case, at the end %s records per server CPU second", s.Info().Name, time.Since(begun).Seconds(), report.Number(best))
	return nil
}

// A system is roused when enoughToRouse runs in a row were not better than the best one
// before them by the factor rousedBy.
const (
	enoughToRouse = 8
	rousedBy      = 1.03
)

func (b *bench) rouseOnce(ctx context.Context, s system.System) (report.Sample, error) {
	l, err := b.load(ctx, s, shape{system.FlushNever, system.AcksAll, 1024, 16})
	if err != nil {
		return nil, err
	}
	defer l.close()
	return l.closed(ctx, load.Limit{Duration: rouseRun, Bytes: b.runBytes})
}

// rouseRun is the length of one of those runs.
const rouseRun = 3 * time.Second

func (b *bench) load(ctx context.Context, s system.System, c shape) (*loaded, error) {
	log, err := s.Open(ctx, c.flush)
	if err != nil {
		return nil, err
	}
	l := &loaded{Log: log, shape: c, bench: b, values: load.NewValues(c.size, b.seed)}
	for range c.producers {
		p, err := log.Producer(c.acks)
		if err != nil {
			l.close()
			return nil, err
		}
		l.producers = append(l.producers, p)
	}
	if l.barrier, err = log.Producer(system.AcksAll); err == nil {
		l.leader, err = log.Leader(ctx)
	}
	for _, server := range log.Servers() {
		err = errors.Join(err, machine.ResetPeak(server.PID))
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loaded) close() {
	for _, p := range append(l.producers, l.barrier) {
		if p != nil {
			p.Close()
		}
	}
	l.Close()
}

// closed runs a closed loop.
func (l *loaded) closed(ctx context.Context, limit load.Limit) (report.Sample, error) {
	n := l.bench.inFlight(l.size, len(l.producers))
	return l.sample(ctx, func() (load.Run, error) { return load.Closed(ctx, l.producers, n, l.values, limit) })
}

// open runs an open loop.
func (l *loaded) open(ctx context.Context, rate float64) (report.Sample, error) {
	d := l.bench.duration
	if most := float64(l.bench.runBytes) / float64(l.size) / rate; l.bench.runBytes > 0 {
		d = min(d, time.Duration(most*float64(time.Second)))
	}
	s, err := l.sample(ctx, func() (load.Run, error) { return load.Open(ctx, l.producers, rate, l.values, d) })
	if err == nil {
		s[offeredPerSecond] = rate
	}
	return s, err
}

// sample runs a load and tells what it cost. The processor time is that of the whole
// work: with acks=1 followers have a rest to fetch after the last acknowledgement.
func (l *loaded) sample(ctx context.Context, drive func() (load.Run, error)) (report.Sample, error) {
	before, err := l.usage(ctx)
	if err != nil {
		return nil, err
	}
	r, err := drive()
	if err != nil {
		return nil, err
	}
	if err := l.settle(ctx); err != nil {
		return nil, err
	}
	l.written += r.Records
	after, err := l.usage(ctx)
	if err != nil {
		return nil, err
	}
	gib := float64(r.Bytes) / (1 << 30)
	s := report.Sample{
		recordsPerSecond: r.RecordsPerSecond(), megabytesPerSecond: float64(r.Bytes) / r.Elapsed.Seconds() / 1e6,
		p50: milliseconds(r.Latency.Quantile(0.5)), p99: milliseconds(r.Latency.Quantile(0.99)),
		leaderCPU:    (after.leader - before.leader).Seconds() / gib,
		followersCPU: (after.followers - before.followers).Seconds() / gib,
		clientCPU:    (after.client - before.client).Seconds() / gib,
	}
	if servers := (after.leader + after.followers - before.leader - before.followers).Seconds(); servers > 0 {
		s[recordsPerCPU] = float64(r.Records) / servers
	}
	if r.Records >= enoughForP999 {
		s[p999] = milliseconds(r.Latency.Quantile(0.999))
	}
	if r.Batches > 0 {
		s[recordsPerBatch] = float64(r.Records) / float64(r.Batches)
	}
	if n := after.flushes - before.flushes; n > 0 && l.flush == system.FlushEveryBatch {
		s[recordsPerFlush] = float64(r.Records) / float64(n)
	}
	return s, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// settle waits until every replica in sync has everything.
func (l *loaded) settle(ctx context.Context) error {
	done := make(chan error, 1)
	l.barrier.Produce(ctx, []byte("all of it"), func(err error) { done <- err })
	l.written++
	return <-done
}

// usage is what has been used so far.
type usage struct {
	leader, followers, client time.Duration
	flushes                   uint64
}

func (l *loaded) usage(ctx context.Context) (u usage, err error) {
	for i, server := range l.Servers() {
		cpu, err := machine.CPU(server.PID)
		if err != nil {
			return u, err
		}
		if i == l.leader {
			u.leader = cpu
		} else {
			u.followers += cpu
		}
	}
	u.client, err = machine.CPU(os.Getpid())
	u.flushes, _ = l.Flushes(ctx, l.leader)
	return u, err
}

// notePeak remembers the most memory that a server had.
func (l *loaded) notePeak(name string) error {
	for _, server := range l.Servers() {
		m, err := machine.Resident(server.PID)
		if err != nil {
			return err
		}
		l.bench.peak[name] = max(l.bench.peak[name], mebibytes(m.Peak))
	}
	return nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
