package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/floor"
	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/report"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

const (
	serversCPU    = "serversCPUSecondsPerGiB"
	fromDisk      = "shareFromDisk"
	readySeconds  = "readySeconds"
	inSyncSeconds = "inSyncSeconds"
	gib           = "gibibytes"
	readyPerGiB   = "readySecondsPerGiB"
	perSecond     = "perSecond"
	files         = "files"
)

const kindCopy, kindPages, kindSync, kindGathered = "copy", "pages", "sync", "gathered"

const firstMegabytes, laterMegabytes = "megabytesPerSecondOfFirst256MiB", "megabytesPerSecondAfter2GiB"

// idle is the memory of servers that have nothing to do.
func (b *bench) idle(ctx context.Context, s system.System) error {
	log, err := s.Open(ctx, system.FlushNever)
	if err != nil {
		return err
	}
	defer log.Close()
	time.Sleep(b.duration) // a server that has just started is not idle yet
	var most float64
	for _, server := range log.Servers() {
		m, err := machine.Resident(server.PID)
		if err != nil {
			return err
		}
		most = max(most, mebibytes(m.Now))
	}
	b.tell("%s, idle: %.0f MiB", s.Info().Name, most)
	return b.add(report.Row{Kind: measureMemory, System: s.Info().Name, Note: "largest server, idle", Samples: []report.Sample{{residentMiB: most}}})
}

// fetches reads what a case has written, from the page cache and from the disk.
func (b *bench) fetches(ctx context.Context, s system.System, l *loaded) (rows [2]report.Row, err error) {
	records := min(l.written, b.fetchBytes/uint64(l.size))
	var dirs []string
	for _, server := range l.Servers() {
		dirs = append(dirs, server.Dir)
	}
	for i, from := range []string{"cached", "cold"} {
		row := l.row(measureFetch, s.Info().Name, nil)
		row.Note, row.Producers = from, 0
		for range b.repeat {
			if from == "cold" {
				if err := machine.Forget(dirs...); err != nil {
					return rows, fmt.Errorf("drop the page cache: %w", err)
				}
			}
			one, err := l.fetch(ctx, records)
			if err != nil {
				return rows, fmt.Errorf("fetch, %s: %w", from, err)
			}
			row.Samples = append(row.Samples, one)
		}
		rows[i] = row
	}
	return rows, nil
}

func (l *loaded) fetch(ctx context.Context, records uint64) (report.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	read := func() (n int64) {
		for _, server := range l.Servers() {
			one, _ := machine.DiskReads(server.PID)
			n += one
		}
		return n
	}
	before, err := l.usage(ctx)
	if err != nil {
		return nil, err
	}
	disk := read()
	got, err := l.Consume(ctx, records)
	if err != nil {
		return nil, err
	}
	after, err := l.usage(ctx)
	if err != nil {
		return nil, err
	}
	size := float64(got.Bytes) / (1 << 30)
	return report.Sample{
		recordsPerSecond: float64(got.Records) / got.Elapsed.Seconds(), megabytesPerSecond: float64(got.Bytes) / got.Elapsed.Seconds() / 1e6,
		serversCPU: (after.leader + after.followers - before.leader - before.followers).Seconds() / size,
		clientCPU:  (after.client - before.client).Seconds() / size,
		fromDisk:   float64(read()-disk) / float64(got.Bytes),
	}, nil
}

// restarts kills each follower once, with a log of some size. A second kill of the same
// one would find a recovery point.
func (b *bench) restarts(ctx context.Context, s system.System) error {
	c := shape{system.FlushNever, system.AcksAll, 1024, 16}
	l, err := b.load(ctx, s, c)
	if err != nil {
		return err
	}
	defer l.close()
	r, ok := l.Log.(system.Restarter)
	if !ok {
		return nil
	}
	if _, err := l.closed(ctx, load.Limit{Bytes: b.restartBytes}); err != nil {
		return err
	}
	row := c.row(measureRestart, s.Info().Name, nil)
	for i, server := range l.Servers() {
		if i == l.leader {
			continue
		}
		bytes, err := machine.Bytes(server.Dir)
		if err != nil {
			return err
		}
		took, err := r.Restart(ctx, i)
		if err != nil {
			return err
		}
		size := float64(bytes) / (1 << 30)
		row.Samples = append(row.Samples, report.Sample{gib: size, readySeconds: took.Ready.Seconds(), inSyncSeconds: took.InSync.Seconds(),
			readyPerGiB: took.Ready.Seconds() / size})
		b.tell("%s, restart with %.2f GiB: ready after %.2f s, in sync after %.2f s", s.Info().Name, size, took.Ready.Seconds(), took.InSync.Seconds())
	}
	return b.add(row)
}

// floors measures the machine without any product.
func (b *bench) floors(ctx context.Context) error {
	row := report.Row{Kind: kindCopy}
	for i := range b.repeat + 1 {
		c, err := floor.Copy(ctx, b.dir, b.copyBytes)
		if err != nil {
			return err
		}
		if i == 0 {
			continue // to warm up
		}
		size := float64(c.Bytes) / (1 << 30)
		row.Samples = append(row.Samples, report.Sample{megabytesPerSecond: float64(c.Bytes) / c.Elapsed.Seconds() / 1e6,
			leaderCPU: c.Leader.Seconds() / size, followersCPU: c.Followers.Seconds() / size})
	}
	m, _ := row.Median(megabytesPerSecond)
	b.tell("bare copy: %s MB/s", report.Number(m))
	if err := b.add(row); err != nil {
		return err
	}
	pages, err := floor.Pages(b.dir)
	if err != nil {
		return err
	}
	if err := b.add(report.Row{Kind: kindPages, Samples: []report.Sample{{firstMegabytes: pages.First / 1e6, laterMegabytes: pages.Later / 1e6}}}); err != nil {
		return err
	}
	for _, n := range []int{1, 3} {
		for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
			row := report.Row{Kind: kindSync, Size: size}
			if err := b.syncs(&row, n); err != nil {
				return err
			}
			if err := b.add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// syncs appends and syncs, to n files at once.
func (b *bench) syncs(row *report.Row, n int) error {
	for range b.repeat {
		s, err := floor.Sync(b.dir, row.Size, n, b.duration/2)
		if err != nil {
			return err
		}
		row.Samples = append(row.Samples, report.Sample{files: float64(n), perSecond: s.PerSecond,
			p50: milliseconds(s.Latency.Quantile(0.5)), p99: milliseconds(s.Latency.Quantile(0.99)),
			megabytesPerSecond: s.PerSecond * float64(row.Size) / 1e6})
	}
	return nil
}

// gatheredFloor measures, right after a case, what the disk makes of writes as large as
// those that the leader's group commit gathered, in three files at once.
func (b *bench) gatheredFloor(produced report.Row) error {
	n, ok := produced.Median(recordsPerFlush)
	if !ok {
		return nil
	}
	row := produced
	row.Kind, row.Size, row.Samples = kindGathered, max(1, int(n*float64(produced.Size))), nil
	if err := b.syncs(&row, 3); err != nil {
		return err
	}
	row.Size = produced.Size
	for _, s := range row.Samples {
		s[recordsPerSecond] = s[perSecond] * n
		s[recordsPerFlush] = n
	}
	return b.add(row)
}
