package processes

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// outsidePort is where replicas listen for clients outside.
const outsidePort = 9094

// provide gives a Service its load balancer, as a cloud does; here it is an address that leads to
// the replica without one.
func (p *partition) provide(service, address string) {
	p.t.Helper()
	p.poll("the load balancer of "+service, func() bool {
		s := &corev1.Service{}
		if err := env.api.Get(p.t.Context(), types.NamespacedName{Namespace: p.key.Namespace, Name: service}, s); err != nil {
			return false
		}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
		return env.api.Status().Update(p.t.Context(), s) == nil
	})
}

// nodesAt is what Metadata says at an address: where the replicas are, and why there is no leader.
func nodesAt(ctx context.Context, address string) (nodes map[int32]string, err error) {
	nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := kafka.NewClient(nc, "listeners", 1<<20)
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
		nodes[b.NodeID] = net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
	}
	return nodes, kerr.ErrorForCode(m.Topics[0].Partitions[0].ErrorCode)
}

// A listener is added, used and removed while everything runs: by the operator, an API server and
// replicas that are processes of their own.
func TestAListenerComesAndGoesWhileTheReplicasRun(t *testing.T) {
	p := newPartition(t, threeReplicas())
	begun := p.processes()
	addresses, inside, outside := map[string]string{}, map[int32]string{}, map[int32]string{}
	for id, c := range p.kubelet.containers() {
		addresses[c.name] = c.ip
		inside[int32(id)] = net.JoinHostPort(c.ip, fmt.Sprint(v1alpha1.PortKafka))
		outside[int32(id)] = net.JoinHostPort(c.ip, fmt.Sprint(outsidePort))
	}
	told := func(what, at string, want map[int32]string) {
		t.Helper()
		var got map[int32]string
		var err error
		p.poll(fmt.Sprintf("%s at %s", what, at), func() bool {
			got, err = nodesAt(t.Context(), at)
			return maps.Equal(got, want) && (err == nil) == (len(want) > 0)
		})
	}
	patch := func(text string) {
		t.Helper()
		rp := &v1alpha1.ReplicatedPartition{}
		rp.Namespace, rp.Name = p.key.Namespace, p.key.Name
		if err := env.api.Patch(t.Context(), rp, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	patch(fmt.Sprintf(`{"spec":{"listeners":[{"name":"external","type":"LoadBalancer","port":%d}]}}`, outsidePort))
	told("a listener without addresses", outside[0], nil)
	for name, ip := range addresses {
		p.provide(name+"-external", ip)
	}
	p.provide("orders-external", addresses["orders-0"])
	rp := p.await("the bootstrap address", func(rp *v1alpha1.ReplicatedPartition) bool {
		return len(rp.Status.Listeners) == 1 && rp.Status.Listeners[0].BootstrapServers != "" && len(rp.Status.Listeners[0].Replicas) == 3
	})
	for id := range int32(3) {
		told("the addresses outside", outside[id], outside)
		told("the addresses inside", inside[id], inside)
	}

	c, err := kgo.NewClient(kgo.SeedBrokers(rp.Status.Listeners[0].BootstrapServers), kgo.DefaultProduceTopic(p.key.Name), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.key.Name: {0: kgo.NewOffset().AtStart()}}),
		kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if _, port, err := net.SplitHostPort(address); err != nil || port != fmt.Sprint(outsidePort) {
				t.Errorf("a client outside is sent to %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	produce := func(value string) {
		t.Helper()
		if err := c.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce("one")
	to := int32(0)
	if rp.Status.Leader == "orders-0" {
		to = 1
	}
	patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d/%d"}}}`, v1alpha1.AnnotationPromote, rp.Status.LeaderEpoch, to))
	p.await("another leader", func(now *v1alpha1.ReplicatedPartition) bool { return now.Status.Leader == fmt.Sprintf("orders-%d", to) })
	produce("two")
	var got []string
	for len(got) < 2 {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("read %q: %v", got, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("read %q", got)
	}

	p.provide("orders-2-external", "192.0.2.1") // the cloud has made it anew
	outside[2] = net.JoinHostPort("192.0.2.1", fmt.Sprint(outsidePort))
	told("the address that changed", outside[0], outside)
	patch(`{"spec":{"listeners":null}}`)
	p.poll("the listener to be closed", func() bool {
		for id := range int32(2) {
			if nc, err := net.DialTimeout("tcp", outside[id], time.Second); err == nil {
				_ = nc.Close()
				return false
			}
		}
		return true
	})
	told("the addresses inside, still", inside[1], inside)
	if now := p.processes(); now != begun {
		t.Errorf("pods, and starts of their processes, were %s, and are %s", begun, now)
	}
}
