// Package nats runs three servers of NATS JetStream on this machine.
package nats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

const (
	servers    = 3
	startLimit = time.Minute
)

// Options say where things are.
type Options struct {
	// Program is nats-server.
	Program string
	Dir     string
	// Port is the first of the ports, two per server.
	Port int
}

// System is a cluster, started anew when another way to flush is asked for. Each log is
// a stream.
type System struct {
	Options
	version   string
	flush     system.Flush
	dir       string
	processes [servers]*machine.Process
	streams   int
}

var _ system.System = (*System)(nil)

// New finds out the version.
func New(o Options) (*System, error) {
	out, err := exec.Command(o.Program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("run nats-server: %w", err)
	}
	return &System{Options: o, version: strings.TrimSpace(strings.TrimPrefix(string(out), "nats-server:"))}, nil
}

// Info implements system.System.
func (s *System) Info() system.Info {
	return system.Info{Name: "NATS JetStream", Version: s.version, Settings: map[string]string{
		"stream": "R3, file storage", "acks=all": "a quorum, two of three, has it", "EveryBatch": "sync_interval: always", "Never": "sync_interval as by default, 2m",
		"client": "nats.go, asynchronous publishing; a record is a message, there are no batches; an ordered consumer", "everything else": "defaults"}}
}

// Supports implements system.System: there is no acknowledgement by the leader alone.
func (*System) Supports(_ system.Flush, acks system.Acks) bool { return acks == system.AcksAll }

// Open makes a stream.
func (s *System) Open(ctx context.Context, flush system.Flush) (system.Log, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if s.flush != flush {
		s.Close()
		if err := s.start(ctx, flush); err != nil {
			return nil, err
		}
	}
	s.streams++
	st := &stream{System: s, name: fmt.Sprint("bench-", s.streams)}
	if err := st.open(ctx); err != nil {
		return nil, fmt.Errorf("open a stream: %w\n%s", err, s.processes[0].Output())
	}
	return st, nil
}

func (s *System) start(ctx context.Context, flush system.Flush) (err error) {
	if s.dir, err = os.MkdirTemp(s.Dir, "nats-"); err != nil {
		return err
	}
	for i := range servers {
		if err := s.startOne(i, flush); err != nil {
			return err
		}
	}
	s.flush = flush
	nc, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for { // until the servers have found each other
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.AccountInfo(one)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %w", errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *System) startOne(i int, flush system.Flush) (err error) {
	name := serverName(i)
	if err := os.MkdirAll(s.store(i), 0o755); err != nil {
		return err
	}
	sync := ""
	if flush == system.FlushEveryBatch {
		sync = "sync_interval: always"
	}
	var routes []string
	for j := range servers {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", s.Port+2*j+1))
	}
	config := fmt.Sprintf("server_name: %s\nlisten: 127.0.0.1:%d\njetstream {store_dir: %q, max_file_store: 60GB, %s}\ncluster {name: bench, listen: 127.0.0.1:%d, routes: [%s]}\n",
		name, s.Port+2*i, s.store(i), sync, s.Port+2*i+1, strings.Join(routes, ", "))
	file := filepath.Join(s.dir, name+".conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	s.processes[i], err = machine.Start(filepath.Join(s.dir, name+".log"), nil, s.Program, "-c", file)
	return err
}

func serverName(i int) string { return "n" + strconv.Itoa(i) }

func (s *System) store(i int) string { return filepath.Join(s.dir, serverName(i)) }

// connect connects to a server as soon as there is one.
func (s *System) connect(ctx context.Context) (*nats.Conn, error) {
	var urls []string
	for i := range servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", s.Port+2*i))
	}
	for {
		nc, err := nats.Connect(strings.Join(urls, ","))
		if err == nil {
			return nc, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close ends the servers.
func (s *System) Close() {
	for _, p := range s.processes {
		if p != nil {
			p.Kill()
		}
	}
	s.flush = ""
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
