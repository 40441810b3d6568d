package plugin

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
	"github.com/twmb/franz-go/pkg/kgo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/replica"
)

// partition is a ReplicatedPartition with real replicas, which run in this process and keep
// their record in the lab's Lease. There is no operator: tests play what they need of it.
type partition struct {
	t       *testing.T
	rp      *v1alpha1.ReplicatedPartition
	store   *lease.Store
	members []*member
}

type member struct {
	cfg    replica.Config
	cancel context.CancelFunc
	done   chan error
}

// newObject makes a partition without replicas. change edits it first.
func newObject(t *testing.T, change func(*v1alpha1.ReplicatedPartition)) *partition {
	t.Helper()
	needsLab(t)
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "orders"}}
	if change != nil {
		change(rp)
	}
	if err := lab.api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	return &partition{t: t, rp: rp}
}

// newPartition makes one and starts its replicas.
func newPartition(t *testing.T, replicas int) *partition {
	t.Helper()
	p := newObject(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Replicas = int32(replicas) })
	topicID, err := epoch.ParseUUID(string(p.rp.UID))
	if err != nil {
		t.Fatal(err)
	}
	if p.store, err = lease.New(lease.Config{Client: lab.leases, Namespace: p.rp.Namespace, Name: p.rp.LeaseName(), TopicID: topicID}); err != nil {
		t.Fatal(err)
	}
	var ids []epoch.ReplicaID
	for i := range replicas {
		ids = append(ids, epoch.ReplicaID(i))
	}
	if _, err := p.store.Create(t.Context(), epoch.New(topicID, ids, min(2, replicas), p.changeID()), metav1.ObjectMeta{}); err != nil {
		t.Fatal(err)
	}
	_ = t.TempDir() // whose removal comes after what is registered behind it: the replicas' end
	t.Cleanup(func() {
		for id := range p.members {
			p.stop(id)
		}
	})
	for _, id := range ids {
		p.members = append(p.members, p.newMember(id, topicID))
		p.makePod(int(id))
		p.start(int(id))
	}
	p.awaitInSync()
	return p
}

var changes struct {
	sync.Mutex
	n int
}

func (p *partition) changeID() epoch.ChangeID {
	changes.Lock()
	defer changes.Unlock()
	changes.n++
	return epoch.ChangeID(fmt.Sprintf("%032x", changes.n))
}

func (p *partition) newMember(id epoch.ReplicaID, topicID epoch.UUID) *member {
	witness, err := os.MkdirTemp("/dev/shm", "tidemark-test-")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = os.RemoveAll(witness) })
	ports := freePorts(p.t, 3)
	at := func(host string, i int) string { return net.JoinHostPort(host, strconv.Itoa(ports[i])) }
	const loopback = "127.0.0.1"
	settings := replica.DefaultSettings()
	settings.LeaseDuration, settings.LagTimeMax = 2*time.Second, 2*time.Second
	return &member{cfg: replica.Config{
		ID: id, Topic: "orders", TopicID: topicID, DataDir: filepath.Join(p.t.TempDir(), "volume"), WitnessDir: witness,
		Address:      epoch.Address{Host: host(id), ClientPort: int32(ports[0]), ReplicationPort: int32(ports[1])},
		ClientListen: at(loopback, 0), ReplicationListen: at(host(id), 1), HTTPListen: at(loopback, 2),
		BootID: "boot", PodUID: fmt.Sprint("pod", id), StopTimeout: 5 * time.Second, Records: p.store, Settings: settings, Log: logr.Discard(),
	}}
}

// host is the address that the record tells clients and replicas. Replicas listen for each
// other there, and for clients on the loopback address alone, where pods' ports are forwarded
// to: who connects to a broker's address itself is refused.
func host(id epoch.ReplicaID) string { return fmt.Sprintf("127.0.0.%d", 10+id) }

// freePorts are ports that nobody listens on; the system does not give one twice while the
// others are held.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// makePod makes the object that stands for a replica's process.
func (p *partition) makePod(id int) {
	p.t.Helper()
	name := p.rp.ReplicaName(int32(id))
	port := func(name, address string) corev1.ContainerPort {
		_, text, _ := net.SplitHostPort(address)
		n, _ := strconv.Atoi(text)
		return corev1.ContainerPort{Name: name, ContainerPort: int32(n)}
	}
	m := p.members[id]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.rp.Namespace, Name: name,
			Labels:      map[string]string{v1alpha1.LabelName: v1alpha1.AppName, v1alpha1.LabelPartition: p.rp.Name},
			Annotations: map[string]string{"example.test/token": "hunter2", v1alpha1.AnnotationTemplateHash: "abcdef"}},
		Spec: corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{
			Name: "replica", Image: "example.test/tidemark:1", Args: []string{"run", "--replica-id", strconv.Itoa(id)},
			Env:   []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}},
			Ports: []corev1.ContainerPort{port("kafka", m.cfg.ClientListen), port("http", m.cfg.HTTPListen)},
		}}},
	}
	if err := lab.api.Create(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "replica", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if err := lab.api.Status().Update(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
}

func (p *partition) start(id int) {
	m := p.members[id]
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.done = cancel, make(chan error, 1)
	go func() { m.done <- replica.Run(ctx, m.cfg) }()
}

// stop ends a replica in good order.
func (p *partition) stop(id int) {
	p.t.Helper()
	m := p.members[id]
	if m.cancel == nil {
		return
	}
	m.cancel()
	if err := <-m.done; err != nil {
		p.t.Errorf("replica %d ended with: %v", id, err)
	}
	m.cancel = nil
}

func (p *partition) record() epoch.Record {
	p.t.Helper()
	s, err := p.store.Get(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Record
}

func (p *partition) awaitInSync() epoch.Record {
	p.t.Helper()
	return p.await("all replicas in sync", func(r epoch.Record) bool {
		if len(r.ISR) != len(r.Replicas) || r.Progress == nil || r.Progress.TookOver != r.LeaderEpoch || len(r.Progress.Replicas) != len(r.Replicas) {
			return false
		}
		for _, q := range r.Progress.Replicas {
			if !q.Live {
				return false
			}
		}
		return true
	})
}

// awaitCommitted waits until every replica knows that all below an offset is committed.
func (p *partition) awaitCommitted(hw epoch.Offset) {
	p.t.Helper()
	p.await(fmt.Sprintf("high watermark %d everywhere", hw), func(r epoch.Record) bool {
		for _, q := range r.Progress.Replicas {
			if q.HighWatermark != hw {
				return false
			}
		}
		return len(r.Progress.Replicas) == len(r.Replicas)
	})
}

func (p *partition) await(what string, ok func(epoch.Record) bool) (r epoch.Record) {
	p.t.Helper()
	await(p.t, what, func() error {
		if r = p.record(); !ok(r) {
			return fmt.Errorf("the record is %+v, progress %+v", r, r.Progress)
		}
		return nil
	})
	return r
}

// change writes the record as an operator does.
func (p *partition) change(ctx context.Context, next func(epoch.Record) (epoch.Record, error)) error {
	for {
		base, err := p.store.Get(ctx)
		if err != nil {
			return err
		}
		r, err := next(base.Record)
		if errors.Is(err, epoch.ErrNoChange) {
			return nil
		}
		if err == nil {
			_, err = p.store.Update(ctx, base, r)
		}
		if !errors.Is(err, epoch.ErrConflict) {
			return err
		}
	}
}

func (p *partition) read() *v1alpha1.ReplicatedPartition {
	p.t.Helper()
	rp := &v1alpha1.ReplicatedPartition{}
	if err := lab.api.Get(p.t.Context(), client.ObjectKeyFromObject(p.rp), rp); err != nil {
		p.t.Fatal(err)
	}
	return rp
}

// client is a Kafka client that reaches the replicas as the plugin does.
func (p *partition) client(options ...kgo.Opt) *kgo.Client {
	p.t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &lab.kubeconfig, &p.rp.Namespace
	c, err := (&base{flags: flags}).connect()
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := newNetwork(p.t.Context(), c, p.rp.Name)
	if err != nil {
		p.t.Fatal(err)
	}
	client, err := n.kafka(append(options, kgo.DefaultProduceTopic("orders"))...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(client.Close)
	return client
}

// setStatus writes the status as an operator does.
func (p *partition) setStatus(change func(*v1alpha1.ReplicatedPartitionStatus)) {
	p.t.Helper()
	if err := p.tryStatus(p.t.Context(), change); err != nil {
		p.t.Fatal(err)
	}
}

func (p *partition) tryStatus(ctx context.Context, change func(*v1alpha1.ReplicatedPartitionStatus)) error {
	for {
		rp := &v1alpha1.ReplicatedPartition{}
		if err := lab.api.Get(ctx, client.ObjectKeyFromObject(p.rp), rp); err != nil {
			return err
		}
		rp.Status.ObservedGeneration = rp.Generation
		change(&rp.Status)
		if err := lab.api.Status().Update(ctx, rp); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// project makes the status from the record, as far as the plugin looks at it.
func (p *partition) project(r epoch.Record) func(*v1alpha1.ReplicatedPartitionStatus) {
	return func(s *v1alpha1.ReplicatedPartitionStatus) {
		s.TopicID, s.Leader = r.TopicID.String(), ""
		if r.Leader != epoch.NoReplica {
			s.Leader = p.rp.ReplicaName(int32(r.Leader))
		}
		s.LeaderEpoch, s.PartitionEpoch, s.MinInSyncReplicas = int32(r.LeaderEpoch), int64(r.PartitionEpoch), int32(r.MinISR)
		s.LastElection, s.Replicas = string(r.ElectionReason), nil
		for _, q := range r.Replicas {
			role := v1alpha1.RoleFollower
			if q.ID == r.Leader {
				role = v1alpha1.RoleLeader
			}
			s.Replicas = append(s.Replicas, v1alpha1.ReplicaStatus{ID: int32(q.ID), Name: p.rp.ReplicaName(int32(q.ID)), Role: role, InSync: r.InSync(q.ID), Node: nodeName})
		}
	}
}
