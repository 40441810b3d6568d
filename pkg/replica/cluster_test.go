package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordfile"
)

// trouble is a record store that can be cut off, or lose answers.
type trouble struct {
	RecordStore
	mu         sync.Mutex
	fail       error // of every call
	loseAnswer bool  // of the next write, which lands
}

var errUnreachable = errors.New("the record store is unreachable")

func (s *trouble) set(change func(*trouble)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *trouble) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}

func (s *trouble) Get(ctx context.Context) (epoch.Snapshot, error) {
	if err := s.failure(); err != nil {
		return epoch.Snapshot{}, err
	}
	return s.RecordStore.Get(ctx)
}

func (s *trouble) Update(ctx context.Context, base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error) {
	if err := s.failure(); err != nil {
		return epoch.Snapshot{}, err
	}
	got, err := s.RecordStore.Update(ctx, base, next)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.loseAnswer {
		s.loseAnswer = false
		return epoch.Snapshot{}, errUnreachable
	}
	return got, err
}

// cluster is a partition of replicas in this process, on real disks and sockets, with
// the record in a file.
type cluster struct {
	t       *testing.T
	records *trouble
	file    *recordfile.Store
	address string // of all replicas
	topicID epoch.UUID
	members []*member
}

type member struct {
	cfg    Config
	cancel context.CancelFunc
	done   chan error
}

func newTestCluster(t *testing.T, replicas, minISR int) *cluster {
	t.Helper()
	return newTestClusterAt(t, "127.0.0.1", replicas, minISR)
}

// newTestClusterAt makes one whose replicas are at that address of this machine.
func newTestClusterAt(t *testing.T, address string, replicas, minISR int) *cluster {
	t.Helper()
	file, err := recordfile.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := &cluster{t: t, file: file, records: &trouble{RecordStore: file}, address: address, topicID: epoch.UUID{1, 2, 3}}
	var ids []epoch.ReplicaID
	for i := range replicas {
		ids = append(ids, epoch.ReplicaID(i))
	}
	if _, err := file.Create(t.Context(), epoch.New(c.topicID, ids, minISR, newChangeID())); err != nil {
		t.Fatal(err)
	}
	for i := range replicas {
		c.members = append(c.members, c.newMember(epoch.ReplicaID(i)))
	}
	t.Cleanup(func() {
		for _, m := range c.members {
			m.cancelled()
		}
	})
	return c
}

func (c *cluster) newMember(id epoch.ReplicaID) *member {
	witness, err := os.MkdirTemp("/dev/shm", "tidemark-test-")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(witness) })
	client, replication := freePort(c.t), freePort(c.t)
	settings := DefaultSettings()
	settings.LeaseDuration, settings.LagTimeMax = time.Second, time.Second
	log := logr.Discard()
	if testing.Verbose() {
		log = testr.New(c.t).WithName(id.String())
	}
	return &member{cfg: Config{
		ID: id, Topic: "orders", TopicID: c.topicID, DataDir: filepath.Join(c.t.TempDir(), "volume"), WitnessDir: witness,
		Address:      epoch.Address{Host: c.address, ClientPort: int32(client), ReplicationPort: int32(replication)},
		ClientListen: net.JoinHostPort(c.address, strconv.Itoa(client)), ReplicationListen: net.JoinHostPort(c.address, strconv.Itoa(replication)),
		BootID: "boot", PodUID: fmt.Sprint("pod", id), StopTimeout: 5 * time.Second, Records: c.records, Settings: settings, Log: log,
	}}
}

// given holds the ports that freePort has given out: the system gives one again.
var given sync.Map

func freePort(t *testing.T) int {
	t.Helper()
	for {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		_ = ln.Close()
		if _, used := given.LoadOrStore(port, true); !used {
			return port
		}
	}
}

func (c *cluster) start(ids ...int) {
	for _, id := range ids {
		m := c.members[id]
		ctx, cancel := context.WithCancel(context.Background())
		m.cancel, m.done = cancel, make(chan error, 1)
		go func() { m.done <- Run(ctx, m.cfg) }()
	}
}

// stop ends a replica in good order and returns what it said.
func (m *member) cancelled() error {
	if m.cancel == nil {
		return nil
	}
	m.cancel()
	err := <-m.done
	m.cancel = nil
	return err
}

func (c *cluster) stop(id int) {
	c.t.Helper()
	if err := c.members[id].cancelled(); err != nil {
		c.t.Errorf("replica %d ended with: %v", id, err)
	}
}

func (c *cluster) record() epoch.Record {
	c.t.Helper()
	s, err := c.file.Get(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return s.Record
}

// await polls the record until it is as wanted.
func (c *cluster) await(what string, ok func(epoch.Record) bool) epoch.Record {
	c.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		r := c.record()
		if ok(r) {
			return r
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			c.t.Fatalf("waited in vain for: %s; the record is %+v", what, r)
		}
	}
}

// awaitInSync waits until the leader reports all replicas as live members of the ISR.
func (c *cluster) awaitInSync() epoch.Record {
	c.t.Helper()
	return c.await("all replicas in sync", func(r epoch.Record) bool {
		if len(r.ISR) != len(r.Replicas) || r.Progress == nil || r.Progress.TookOver != r.LeaderEpoch {
			return false
		}
		for _, p := range r.Progress.Replicas {
			if !p.Live {
				return false
			}
		}
		return true
	})
}

// producer is an idempotent one with acks=all that gives up late.
func (c *cluster) producer() *kgo.Client {
	c.t.Helper()
	var seeds []string
	for _, m := range c.members {
		seeds = append(seeds, m.cfg.ClientListen)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic("orders"), kgo.ProducerLinger(0),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}}),
		kgo.RecordDeliveryTimeout(30*time.Second), kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

func (c *cluster) produce(client *kgo.Client, values ...string) {
	c.t.Helper()
	for _, v := range values {
		if err := client.ProduceSync(c.t.Context(), kgo.StringRecord(v)).FirstErr(); err != nil {
			c.t.Fatalf("produce %s: %v", v, err)
		}
	}
}

// consume reads n records from the log's start.
func (c *cluster) consume(client *kgo.Client, n int) []string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	var values []string
	for len(values) < n {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			c.t.Fatalf("read %d of %d records: %v", len(values), n, fetches.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

// change writes the record as an operator does, whatever the replicas write meanwhile.
func (c *cluster) change(next func(epoch.Record) (epoch.Record, error)) {
	c.t.Helper()
	for {
		base, err := c.file.Get(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		r, err := next(base.Record)
		if err == nil {
			_, err = c.file.Update(c.t.Context(), base, r)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, epoch.ErrConflict) {
			c.t.Fatal(err)
		}
	}
}
