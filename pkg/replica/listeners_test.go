package replica

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// specs gives the replicas of a cluster their spec, as a watch of it does.
type specs struct {
	mu      sync.Mutex
	spec    map[epoch.ReplicaID][]Listener
	changed chan struct{} // closed at a change
}

// watched makes the replicas of a cluster watch their listeners, of which there are none yet.
func (c *cluster) watched() *specs {
	s := &specs{changed: make(chan struct{})}
	for _, m := range c.members {
		m.cfg.WatchSpec = func(ctx context.Context, onChange func(Spec)) {
			for ctx.Err() == nil {
				s.mu.Lock()
				next, changed := s.spec[m.cfg.ID], s.changed
				s.mu.Unlock()
				onChange(Spec{Settings: m.cfg.Settings, Listeners: next})
				select {
				case <-ctx.Done():
				case <-changed:
				}
			}
		}
	}
	return s
}

func (s *specs) set(spec map[epoch.ReplicaID][]Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spec = spec
	close(s.changed)
	s.changed = make(chan struct{})
}

// relays stand in for the Services of a listener: each leads to one replica. What they pass on
// is counted, which tells who came in by which way.
type relay struct {
	ln      net.Listener
	mu      sync.Mutex
	through int
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{ln: ln}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			r.mu.Lock()
			r.through++
			r.mu.Unlock()
			pipe := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				_ = a.Close()
				_ = b.Close()
			}
			go pipe(near, far)
			go pipe(far, near)
		}
	}()
	return r
}

func (r *relay) port() int32 { return int32(r.ln.Addr().(*net.TCPAddr).Port) }

func (r *relay) used() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.through
}

// clientOf is a client that knows only that address.
func (c *cluster) clientOf(seed string) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seed), kgo.DefaultProduceTopic("orders"), kgo.ProducerLinger(0),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}}),
		kgo.RecordDeliveryTimeout(30*time.Second), kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// told is what Metadata says at an address: the nodes, and the error of the partition.
func told(ctx context.Context, address string) (nodes map[int32]string, err error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := kafka.NewClient(nc, "test", 1<<20)
	defer conn.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	m := resp.(*kmsg.MetadataResponse)
	nodes = map[int32]string{}
	for _, b := range m.Brokers {
		nodes[b.NodeID] = fmt.Sprintf("%s port %d", b.Host, b.Port)
	}
	return nodes, kerr.ErrorForCode(m.Topics[0].Partitions[0].ErrorCode)
}

// eventually polls until what holds returns "".
func eventually(t *testing.T, what string, holds func() string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		why := holds()
		if why == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s: %s", what, why)
		}
	}
}

// H93: whoever comes in by a listener for clients outside of the cluster is sent to addresses
// of that listener, also to another leader; who comes in inside is sent to those inside. The
// listener comes, changes and goes while the replicas run.
func TestClientsOutsideAreSentToAddressesOutside(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	s := c.watched()
	c.start(0, 1, 2)
	before := c.awaitInSync()
	relays := map[int]*relay{}
	listen := map[int]string{}
	for i := range 3 {
		listen[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
		relays[i] = newRelay(t, listen[i])
	}
	spec := func(advertised map[epoch.ReplicaID]kafka.Endpoint) map[epoch.ReplicaID][]Listener {
		all := map[epoch.ReplicaID][]Listener{}
		for i := range 3 {
			all[epoch.ReplicaID(i)] = []Listener{{Name: "external", Listen: listen[i], Advertised: advertised}}
		}
		return all
	}
	s.set(spec(nil))
	eventually(t, "the listener, which knows no addresses yet", func() string {
		nodes, err := told(t.Context(), listen[0])
		if err != kerr.ListenerNotFound || len(nodes) != 0 {
			return fmt.Sprintf("nodes %v, %v", nodes, err)
		}
		return ""
	})
	advertised := map[epoch.ReplicaID]kafka.Endpoint{}
	want := map[int32]string{}
	for i, r := range relays {
		advertised[epoch.ReplicaID(i)] = kafka.Endpoint{Host: "127.0.0.1", Port: r.port()}
		want[int32(i)] = fmt.Sprintf("127.0.0.1 port %d", r.port())
	}
	s.set(spec(advertised))
	for i := range 3 {
		eventually(t, "the addresses of the listener", func() string {
			nodes, err := told(t.Context(), listen[i])
			if err != nil || fmt.Sprint(nodes) != fmt.Sprint(want) {
				return fmt.Sprintf("nodes %v, %v; want %v", nodes, err, want)
			}
			return ""
		})
		nodes, err := told(t.Context(), c.members[i].cfg.ClientListen)
		if own := fmt.Sprintf("127.0.0.1 port %d", c.members[i].cfg.Address.ClientPort); err != nil || nodes[int32(i)] != own {
			t.Errorf("inside, replica %d is told to be at %s (%v), want %s", i, nodes[int32(i)], err, own)
		}
	}

	follower := (int(before.Leader) + 1) % 3
	outside, inside := c.clientOf(relays[follower].ln.Addr().String()), c.clientOf(c.members[follower].cfg.ClientListen)
	c.produce(outside, "one")
	if relays[int(before.Leader)].used() == 0 {
		t.Error("the client outside did not reach the leader by its address outside")
	}
	through := func() (n int) {
		for _, r := range relays {
			n += r.used()
		}
		return n
	}
	n := through()
	c.produce(inside, "two")
	if through() != n {
		t.Error("a client inside went out of the cluster")
	}
	c.stop(int(before.Leader)) // hands over
	after := c.await("another leader", func(r epoch.Record) bool { return r.Leader != before.Leader && r.Leader != epoch.NoReplica })
	used := relays[int(after.Leader)].used()
	c.produce(outside, "three")
	if relays[int(after.Leader)].used() == used && int(after.Leader) != follower {
		t.Error("the client outside did not reach the new leader by its address outside")
	}
	if got := strings.Join(c.consume(c.clientOf(relays[follower].ln.Addr().String()), 3), " "); got != "one two three" {
		t.Errorf("outside, read %s", got)
	}

	s.set(nil)
	eventually(t, "the listener to be closed", func() string {
		if nodes, err := told(t.Context(), listen[follower]); err == nil {
			return fmt.Sprint("it answers ", nodes)
		}
		return ""
	})
	c.produce(inside, "four")
	if r := c.record(); r.LeaderEpoch != after.LeaderEpoch {
		t.Errorf("leader epoch %d after %d: the change of listeners moved the leadership", r.LeaderEpoch, after.LeaderEpoch)
	}
}

// A port that cannot be had costs the clients of that listener, and nobody else; it is told
// of, and had as soon as it is free.
func TestAListenerThatCannotBeOpenedIsToldOf(t *testing.T) {
	c := newTestCluster(t, 2, 1)
	s := c.watched()
	for _, m := range c.members {
		m.cfg.HTTPListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	}
	c.start(0, 1)
	c.awaitInSync()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	at := map[epoch.ReplicaID]kafka.Endpoint{0: {Host: "a", Port: 1}, 1: {Host: "b", Port: 1}}
	for id := range 2 {
		s.set(map[epoch.ReplicaID][]Listener{epoch.ReplicaID(id): {
			{Name: "bad", Listen: taken.Addr().String(), Advertised: at}, {Name: "good", Listen: free, Advertised: at}}})
		deaf := func(want bool) func(epoch.Record) bool {
			return func(r epoch.Record) bool {
				for _, p := range r.Progress.Replicas {
					if p.ID == epoch.ReplicaID(id) {
						return p.Deaf == want
					}
				}
				return false
			}
		}
		c.await(fmt.Sprintf("replica %d to tell of it in the record", id), deaf(true))
		eventually(t, "the other listener", func() string {
			_, err := told(t.Context(), free)
			return errText(err)
		})
		status := c.members[id].get(t, "/v1/status")
		for _, want := range []string{`"name": "bad"`, "address already in use", `"name": "good"`, `"open": true`} {
			if !strings.Contains(status, want) {
				t.Errorf("/v1/status of replica %d does not tell %q:\n%s", id, want, status)
			}
		}
		c.produce(c.producer(), "goes on")
		s.set(map[epoch.ReplicaID][]Listener{})
		c.await(fmt.Sprintf("replica %d not to tell of it any more", id), deaf(false))
	}
	s.set(map[epoch.ReplicaID][]Listener{0: {{Name: "bad", Listen: taken.Addr().String(), Advertised: at}}})
	c.await("the replica to tell of it", func(r epoch.Record) bool { return strings.Contains(fmt.Sprintf("%+v", r.Progress), "Deaf:true") })
	_ = taken.Close()
	eventually(t, "the port that is free now", func() string {
		_, err := told(t.Context(), taken.Addr().String())
		return errText(err)
	})
	c.await("the replica to be well", func(r epoch.Record) bool { return !strings.Contains(fmt.Sprintf("%+v", r.Progress), "Deaf:true") })
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// get reads a page of the replica's HTTP port.
func (m *member) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + m.cfg.HTTPListen + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// H90: replicas that have IPv6 addresses only. Kafka's answers name them without brackets.
func TestReplicasWithIPv6Addresses(t *testing.T) {
	if ln, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	} else {
		_ = ln.Close()
	}
	c := newTestClusterAt(t, "::1", 3, 2)
	for _, m := range c.members {
		m.cfg.HTTPListen = net.JoinHostPort("::1", strconv.Itoa(freePort(t)))
		m.cfg.Listeners = []Listener{{Name: "external", Listen: net.JoinHostPort("::1", strconv.Itoa(freePort(t))),
			Advertised: map[epoch.ReplicaID]kafka.Endpoint{m.cfg.ID: {Host: "2001:db8::1", Port: 31000}}}}
	}
	c.start(0, 1, 2)
	r := c.awaitInSync()
	client := c.clientOf(c.members[0].cfg.ClientListen)
	c.produce(client, "one", "two")
	if got := strings.Join(c.consume(client, 2), " "); got != "one two" {
		t.Errorf("read %s", got)
	}
	for i, m := range c.members {
		nodes, err := told(t.Context(), m.cfg.ClientListen)
		if want := fmt.Sprintf("::1 port %d", m.cfg.Address.ClientPort); err != nil || nodes[int32(i)] != want {
			t.Errorf("replica %d is told to be at %s (%v), want %s", i, nodes[int32(i)], err, want)
		}
		if nodes, _ := told(t.Context(), m.cfg.Listeners[0].Listen); nodes[int32(i)] != "2001:db8::1 port 31000" {
			t.Errorf("outside, replica %d is told to be at %s", i, nodes[int32(i)])
		}
		if page := m.get(t, "/v1/status"); !strings.Contains(page, `"Serving"`) {
			t.Errorf("/v1/status of replica %d says %s", i, page)
		}
	}
	c.stop(int(r.Leader))
	c.produce(client, "three")
	if got := strings.Join(c.consume(c.clientOf(c.members[(int(r.Leader)+1)%3].cfg.ClientListen), 3), " "); got != "one two three" {
		t.Errorf("after another replica took over, read %s", got)
	}
}
