package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/franz"
	"github.com/tidemark-io/tidemark/hack/bench/kafka"
	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/nats"
	"github.com/tidemark-io/tidemark/hack/bench/report"
	"github.com/tidemark-io/tidemark/hack/bench/system"
	"github.com/tidemark-io/tidemark/hack/bench/tidemark"
)

// bench is a run.
type bench struct {
	plan
	machine machine.Description
	infos   []system.Info
	rows    report.Rows
	json    io.Writer
	begun   time.Time
	// peak is the most memory that a server of a system had.
	peak map[string]float64
	// missing says what could not be measured.
	missing []string
}

// ports is how many all systems together take.
const ports = 60

func run(ctx context.Context, p plan) (err error) {
	d, err := machine.Describe(p.dir)
	if err != nil {
		return err
	}
	if p.port, err = machine.Ports(p.port, ports); err != nil {
		return err
	}
	b := &bench{plan: p, machine: d, json: io.Discard, begun: time.Now(), peak: map[string]float64{}}
	if p.jsonLines != "" {
		f, err := os.Create(p.jsonLines)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		b.json = f
	}
	defer func() { _ = os.RemoveAll(p.dir) }()
	if err := report.Line(b.json, map[string]any{"kind": "machine", "machine": d, "command": strings.Join(os.Args[1:], " ")}); err != nil {
		return err
	}
	// What was measured before an error or an interrupt is shown all the same.
	err = b.measure(ctx)
	b.goals()
	b.write(os.Stdout)
	if p.markdown == "" {
		return err
	}
	var text strings.Builder
	b.write(&text)
	return errors.Join(err, os.WriteFile(p.markdown, []byte(text.String()), 0o644))
}

// measure measures the floors and then one system after another.
func (b *bench) measure(ctx context.Context) error {
	if b.wants(measureFloor) {
		if err := b.floors(ctx); err != nil {
			return fmt.Errorf("floors: %w", err)
		}
	}
	for _, name := range b.systems {
		if err := b.system(ctx, name); err != nil {
			b.missing = append(b.missing, name+", from here on: "+err.Error())
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// tell shows what goes on; the result goes to standard output.
func (b *bench) tell(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// add keeps a row.
func (b *bench) add(r report.Row) error {
	b.rows = append(b.rows, r)
	return report.Line(b.json, r)
}

// open starts a system.
func (b *bench) open(ctx context.Context, name string) (system.System, error) {
	client := franz.Options{Linger: b.linger}
	switch name {
	case "tidemark":
		if b.pprof {
			b.tell("profiles of the replicas: http://127.0.0.1:{%d,%d,%d}/debug/pprof/", b.port+3, b.port+7, b.port+11)
		}
		return tidemark.System{Options: tidemark.Options{Program: b.replica, Dir: b.dir, Port: b.port, Pprof: b.pprof, Version: b.machine.Commit, Client: client}}, nil
	case "kafka":
		return kafka.Start(ctx, kafka.Options{Script: b.kafka, Dir: b.dir, Port: b.port + 20, Client: client})
	case "nats":
		return nats.New(nats.Options{Program: b.nats, Dir: b.dir, Port: b.port + 40})
	}
	return nil, errors.New("there is no such system")
}

// system measures everything of one system.
func (b *bench) system(ctx context.Context, name string) error {
	s, err := b.open(ctx, name)
	if errors.Is(err, kafka.ErrUnreachable) {
		b.tell("left out: %v", err)
		b.missing = append(b.missing, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	b.infos = append(b.infos, s.Info())
	if err := report.Line(b.json, map[string]any{"kind": "system", "system": s.Info()}); err != nil {
		return err
	}
	if b.wants(measureMemory) {
		if err := b.idle(ctx, s); err != nil {
			return err
		}
	}
	if name != "tidemark" {
		if err := b.rouse(ctx, s); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	for _, flush := range b.flushes {
		for _, acks := range b.acks {
			for _, size := range b.sizes {
				for _, producers := range b.producers {
					c := shape{flush, acks, size, producers}
					if !s.Supports(flush, acks) {
						continue
					}
					if err := b.shape(ctx, s, c); err != nil {
						return fmt.Errorf("%v: %w", c, err)
					}
				}
			}
		}
	}
	if b.wants(measureRestart) {
		if err := b.restarts(ctx, s); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	if b.wants(measureMemory) && b.peak[s.Info().Name] > 0 {
		return b.add(report.Row{Kind: measureMemory, System: s.Info().Name, Note: "largest server, at most in any case",
			Samples: []report.Sample{{residentMiB: b.peak[s.Info().Name]}}})
	}
	return nil
}
