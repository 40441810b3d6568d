package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// network is a partition's replicas as a Kafka client in the cluster would see them: a broker
// has the address that the record tells clients, and each such address leads to its pod.
type network struct {
	cluster   *cluster
	partition *v1alpha1.ReplicatedPartition

	mu   sync.Mutex
	pods map[string]brokerPod // by "host:port"
}

type brokerPod struct {
	name string
	port int
}

// newNetwork reads where the replicas are.
func newNetwork(ctx context.Context, c *cluster, name string) (*network, error) {
	rp, err := c.partition(ctx, name)
	if err != nil {
		return nil, err
	}
	n := &network{cluster: c, partition: rp}
	if err := n.read(ctx); err != nil {
		return nil, err
	}
	if len(n.pods) == 0 {
		return nil, fmt.Errorf("no replica of %s has registered yet: kubectl tidemark status %s says why", name, name)
	}
	return n, nil
}

// read takes the addresses from the record.
func (n *network) read(ctx context.Context) error {
	l, err := n.cluster.lease(ctx, n.partition)
	if err != nil {
		return err
	}
	r, err := decodeRecord(l, n.partition)
	if err != nil {
		return err
	}
	pods := map[string]brokerPod{}
	for _, p := range r.Replicas {
		if p.Address.Host != "" {
			at := net.JoinHostPort(p.Address.Host, strconv.Itoa(int(p.Address.ClientPort)))
			pods[at] = brokerPod{n.partition.ReplicaName(int32(p.ID)), int(p.Address.ClientPort)}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = pods
	return nil
}

func decodeRecord(l *coordinationv1.Lease, rp *v1alpha1.ReplicatedPartition) (epoch.Record, error) {
	id, err := epoch.ParseUUID(rp.EffectiveTopicID())
	if err != nil {
		return epoch.Record{}, err
	}
	return lease.Decode(l, id)
}

func (n *network) pod(address string) (brokerPod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, ok := n.pods[address]
	return p, ok
}

// dial connects to the pod that a broker's address stands for. A pod that was made anew has
// another one, which only the newest record tells.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	p, ok := n.pod(address)
	if !ok {
		if err := n.read(ctx); err != nil {
			return nil, err
		}
		if p, ok = n.pod(address); !ok {
			return nil, fmt.Errorf("no replica of %s has the address %s", n.partition.Name, address)
		}
	}
	c, err := n.cluster.dialer().Dial(ctx, n.cluster.namespace, p.name, p.port)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dialTimeout bounds one connection: through the API server it may take a while, and a pod on
// a lost node never answers.
const dialTimeout = 10 * time.Second

// kafka is a client of the partition. The names of its options say the rest.
func (n *network) kafka(more ...kgo.Opt) (*kgo.Client, error) {
	n.mu.Lock()
	var seeds []string
	for at := range n.pods {
		seeds = append(seeds, at)
	}
	n.mu.Unlock()
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ClientID("kubectl-tidemark"),
		kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return n.dial(ctx, network, address)
		}),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
	}, more...)...)
}

// errUnreached is what a client reports that has got no further until its time was up.
func errUnreached(ctx context.Context, name string, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("no replica of %s could do it in time: %w; kubectl tidemark status %s says how the partition is", name, last, name)
}
