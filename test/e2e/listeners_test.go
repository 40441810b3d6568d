//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// podStarts names the pods of a partition, by UID, and how often their containers were started.
func (p partition) podStarts(t testing.TB) string {
	t.Helper()
	return kubectl(t, "get", "pods", "-l", v1alpha1.LabelPartition+"="+p.name,
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}`)
}

// This machine is outside of the cluster: a client of it begins with a node's address and port, is sent to nodes only, also
// to another leader, and no pod is restarted for the listener.
func TestClientsOutsideUseTheNodes(t *testing.T) {
	p := newPartition(t, "outside")
	before := p.podStarts(t)
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"listeners":[{"name":"external","type":"NodePort","port":9094}]}}`)
	s := p.await(t, "the addresses of the listener", func(s v1alpha1.ReplicatedPartitionStatus) bool {
		return len(s.Listeners) == 1 && s.Listeners[0].BootstrapServers != "" && len(s.Listeners[0].Replicas) == 3
	})
	l := s.Listeners[0]
	t.Logf("clients begin with %s, and are told %+v", l.BootstrapServers, l.Replicas)
	allowed := strings.Split(l.BootstrapServers, ",")
	for _, a := range l.Replicas {
		allowed = append(allowed, net.JoinHostPort(a.Host, fmt.Sprint(a.Port)))
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(l.BootstrapServers, ",")...), kgo.DefaultProduceTopic(p.name), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.name: {0: kgo.NewOffset().AtStart()}}),
		kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if !slices.Contains(allowed, address) {
				t.Errorf("a client outside is sent to %s, which is not among %q", address, allowed)
			}
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const each = 100
	produce := func(from int) {
		t.Helper()
		for i := range each {
			if err := c.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(from+i))).FirstErr(); err != nil {
				t.Fatalf("record %d: %v", from+i, err)
			}
		}
	}
	produce(0)
	now := p.awaitInSync(t)
	to := follower(now)
	kubectl(t, "annotate", "rp", p.name, fmt.Sprintf("%s=%d/%d", v1alpha1.AnnotationPromote, now.LeaderEpoch, to.ID))
	p.awaitLeader(t, to.Name)
	produce(each)
	next := 0
	for next < 2*each {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("read %d of %d records: %v", next, 2*each, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if got := string(r.Value); got != fmt.Sprint(next) {
				t.Errorf("offset %d holds record %s, want %d", r.Offset, got, next)
			}
			next++
		})
	}
	kubectl(t, "patch", "rp", p.name, "--type=merge", "-p", `{"spec":{"listeners":null}}`)
	eventually(t, time.Minute, "the end of the Services", func(context.Context) error {
		if out := kubectl(t, "get", "services", "-l", v1alpha1.LabelPartition+"="+p.name+","+v1alpha1.LabelListener, "-o", "name"); out != "" {
			return fmt.Errorf("still there:\n%s", out)
		}
		return nil
	})
	if after := p.podStarts(t); after != before {
		t.Errorf("pods were\n%s\nand are\n%s", before, after)
	}
}
