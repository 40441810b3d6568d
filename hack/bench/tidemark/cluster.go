package tidemark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/franz"
	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/system"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	replicas = 3
	minISR   = 2
	topic    = "bench"
	// memoryLimit is what the operator gives a replica by default: 90 % of 512 MiB.
	memoryLimit = "483183820B"
	startLimit  = 60 * time.Second
)

// TopicID is the partition's.
var TopicID = epoch.UUID{0xbe, 0xbc}

// Options say where things are.
type Options struct {
	// Program is cmd/replica, built.
	Program string
	// Dir is for the volumes; it is on the disk that is measured.
	Dir string
	// Port is the first of the ports, four per replica.
	Port  int
	Pprof bool
	// Version is the commit.
	Version string
	Client  franz.Options
}

// System is Tidemark. Each log has processes of its own.
type System struct{ Options }

var _ system.System = System{}

// Info implements system.System.
func (s System) Info() system.Info {
	return system.Info{Name: "Tidemark", Version: s.Version, Settings: map[string]string{
		"replicas": strconv.Itoa(replicas), "minInSyncReplicas": strconv.Itoa(minISR), "GOMEMLIMIT": memoryLimit,
		"record": "a file shared by the three processes", "everything else": "the defaults of a ReplicatedPartition"}}
}

// Supports implements system.System.
func (System) Supports(system.Flush, system.Acks) bool { return true }

// Close implements system.System.
func (System) Close() {}

// Open starts three processes on empty volumes.
func (s System) Open(ctx context.Context, flush system.Flush) (system.Log, error) {
	dir, err := os.MkdirTemp(s.Dir, "tidemark-")
	if err != nil {
		return nil, err
	}
	witness, err := os.MkdirTemp("/dev/shm", "tidemark-bench-")
	if err != nil {
		return nil, err
	}
	l := &partition{System: s, dir: dir, witness: witness, flush: flush}
	l.cluster = franz.Cluster{Topic: topic, Options: s.Client}
	if err := l.open(ctx); err != nil {
		err = fmt.Errorf("%w\n%s", err, l.said())
		l.Close()
		return nil, err
	}
	return l, nil
}

// partition is a partition and its three processes.
type partition struct {
	System
	dir, witness string
	flush        system.Flush
	processes    [replicas]*machine.Process
	cluster      franz.Cluster
}

var _ system.Restarter = (*partition)(nil)

func (l *partition) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var ids []epoch.ReplicaID
	for i := range replicas {
		ids = append(ids, epoch.ReplicaID(i))
		l.cluster.Seeds = append(l.cluster.Seeds, l.address(i, 0))
	}
	if _, err := (Records{l.recordDir()}).Create(ctx, epoch.New(TopicID, ids, minISR, "bench")); err != nil {
		return err
	}
	for i := range replicas {
		if err := l.start(i); err != nil {
			return err
		}
	}
	for i := range replicas {
		if err := l.awaitReady(ctx, i); err != nil {
			return err
		}
	}
	_, err := l.cluster.AwaitInSync(ctx, replicas)
	return err
}

func (l *partition) address(i, n int) string {
	return "127.0.0.1:" + strconv.Itoa(l.Port+4*i+n)
}

func (l *partition) recordDir() string { return filepath.Join(l.dir, "record") }

func (l *partition) volume(i int) string { return filepath.Join(l.dir, fmt.Sprint("volume-", i)) }

func (l *partition) start(i int) error {
	witness := filepath.Join(l.witness, strconv.Itoa(i))
	if err := os.MkdirAll(witness, 0o755); err != nil {
		return err
	}
	args := []string{"-id", strconv.Itoa(i), "-record-dir", l.recordDir(), "-topic", topic, "-data-dir", l.volume(i), "-witness-dir", witness,
		"-port", strconv.Itoa(l.Port + 4*i), fmt.Sprintf("-flush-never=%t", l.flush == system.FlushNever), fmt.Sprintf("-pprof=%t", l.Pprof)}
	var err error
	l.processes[i], err = machine.Start(filepath.Join(l.dir, fmt.Sprint("replica-", i, ".log")), []string{"GOMEMLIMIT=" + memoryLimit}, l.Program, args...)
	return err
}

func (l *partition) awaitReady(ctx context.Context, i int) error {
	for {
		got, err := http.Get("http://" + l.address(i, 2) + "/readyz")
		if err == nil {
			_ = got.Body.Close()
			if got.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for replica %d: %w", i, errors.Join(err, ctx.Err()))
		case <-l.processes[i].Ended():
			return fmt.Errorf("replica %d has ended", i)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// said is the end of what the processes said.
func (l *partition) said() (all string) {
	for i, p := range l.processes {
		if p != nil {
			out := p.Output()
			all += fmt.Sprintf("replica %d:\n%s", i, out[max(0, len(out)-2000):])
		}
	}
	return all
}

// Servers implements system.Log.
func (l *partition) Servers() []system.Server {
	var all []system.Server
	for i, p := range l.processes {
		all = append(all, system.Server{Name: fmt.Sprint("replica ", i), PID: p.PID(), Dir: l.volume(i)})
	}
	return all
}

// Leader implements system.Log.
func (l *partition) Leader(ctx context.Context) (int, error) {
	s, err := l.cluster.State(ctx)
	return int(s.Leader), err
}

// Producer implements system.Log.
func (l *partition) Producer(acks system.Acks) (load.Producer, error) {
	return l.cluster.Producer(acks)
}

// Consume implements system.Log.
func (l *partition) Consume(ctx context.Context, records uint64) (system.Consumed, error) {
	return l.cluster.Consume(ctx, records)
}

// Restart implements system.Restarter.
func (l *partition) Restart(ctx context.Context, i int) (system.Restarted, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	l.processes[i].Kill()
	// The leader has to miss it first, or it would count as in sync before it has begun.
	if _, err := l.cluster.Await(ctx, func(s franz.State) bool { return len(s.ISR) == replicas-1 }); err != nil {
		return system.Restarted{}, err
	}
	begun := time.Now()
	if err := l.start(i); err != nil {
		return system.Restarted{}, err
	}
	if err := l.awaitReady(ctx, i); err != nil {
		return system.Restarted{}, err
	}
	r := system.Restarted{Ready: time.Since(begun)}
	_, err := l.cluster.AwaitInSync(ctx, replicas)
	r.InSync = time.Since(begun)
	return r, err
}

// Close implements system.Log.
func (l *partition) Close() {
	for _, p := range l.processes {
		if p != nil {
			p.Kill()
		}
	}
	_ = os.RemoveAll(l.dir)
	_ = os.RemoveAll(l.witness)
}
