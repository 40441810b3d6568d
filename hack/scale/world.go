package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/controllers"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

const (
	namespace = "default"
	replicas  = 3
	container = "replica"
)

// world plays every kubelet and every replica.
type world struct {
	api    client.Client
	leases rest.Interface
	term   time.Duration // of a lease

	mu       sync.Mutex
	parts    map[string]*partition
	renewals []time.Duration // how long heartbeats took
	wait     sync.WaitGroup
}

// partition is what the simulation knows of one, from its watches.
type partition struct {
	name string
	uid  string
	// wake tells that something was seen.
	wake chan struct{}

	mu    sync.Mutex
	pods  map[string]*corev1.Pod
	lease *coordinationv1.Lease
	// led is told of each leader epoch that is seen.
	led func(epoch.LeaderEpoch)
}

func newWorld(ctx context.Context, cfg *rest.Config, term time.Duration) (*world, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	scheme, err := controllers.NewScheme()
	if err != nil {
		return nil, err
	}
	w := &world{term: term, parts: map[string]*partition{}}
	if w.api, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if w.leases, err = lease.NewClient(cfg); err != nil {
		return nil, err
	}
	c, err := cache.New(cfg, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &coordinationv1.Lease{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		see := func(obj any) { w.see(obj) }
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
			return nil, err
		}
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the watches of the simulation did not start")
	}
	return w, nil
}

func (w *world) see(obj any) {
	o, ok := obj.(client.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	p := w.parts[o.GetLabels()[v1alpha1.LabelPartition]]
	w.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	switch o := o.(type) {
	case *corev1.Pod:
		p.pods[o.Name] = o
	case *coordinationv1.Lease:
		p.lease = o
		if p.led != nil && o.Spec.LeaseTransitions != nil {
			p.led(epoch.LeaderEpoch(*o.Spec.LeaseTransitions))
		}
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// create makes n partitions, sixteen at a time, and lets their replicas live until ctx ends.
func (w *world) create(ctx context.Context, n int) error {
	var g sync.WaitGroup
	slots := make(chan struct{}, 16)
	errs := make(chan error, n)
	for i := range n {
		g.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			name := fmt.Sprintf("p%05d", i)
			p := &partition{name: name, wake: make(chan struct{}, 1), pods: map[string]*corev1.Pod{}}
			w.mu.Lock()
			w.parts[name] = p
			w.mu.Unlock()
			rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			rp.Spec.LeaderElection.LeaseDurationSeconds = int32(w.term / time.Second)
			if err := w.api.Create(ctx, rp); err != nil {
				errs <- err
				return
			}
			p.uid = string(rp.UID)
			w.wait.Go(func() { w.live(ctx, p) })
		})
	}
	g.Wait()
	close(errs)
	return <-errs
}

// live is a partition's life: its pods are started, its replicas registered, its lease renewed.
func (w *world) live(ctx context.Context, p *partition) {
	for len(p.running()) < replicas {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			w.start(ctx, p)
		}
	}
	w.retry(ctx, func() error { return w.write(ctx, p, w.register(p)) })
	every := w.term / 3
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			w.retry(ctx, func() error {
				began := time.Now()
				err := w.write(ctx, p, w.renew)
				w.renewed(time.Since(began))
				return err
			})
			// Not in step with the others.
			timer.Reset(every - every/10 + time.Duration(mathrand.Int64N(int64(every/5))))
		}
	}
}

// renewed takes note of how long the API server took for a heartbeat.
func (w *world) renewed(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewals = append(w.renewals, d)
}

// takeRenewals returns those since the last call, in order of length.
func (w *world) takeRenewals() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.renewals
	w.renewals = nil
	slices.Sort(out)
	return out
}

func (w *world) retry(ctx context.Context, do func() error) {
	for ctx.Err() == nil {
		if do() == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *partition) running() []*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*corev1.Pod
	for _, pod := range p.pods {
		if pod.Status.Phase == corev1.PodRunning {
			out = append(out, pod)
		}
	}
	return out
}

// start says of new pods that they run.
func (w *world) start(ctx context.Context, p *partition) {
	p.mu.Lock()
	var fresh []*corev1.Pod
	for _, pod := range p.pods {
		if pod.Status.Phase != corev1.PodRunning {
			fresh = append(fresh, pod.DeepCopy())
		}
	}
	p.mu.Unlock()
	for _, pod := range fresh {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_ = w.api.Status().Update(ctx, pod) // a lost race is seen as the next event
	}
}

// write changes the record as last seen, and waits to see the change.
func (w *world) write(ctx context.Context, p *partition, change func(epoch.Record) (epoch.Record, error)) error {
	p.mu.Lock()
	l := p.lease
	p.mu.Unlock()
	if l == nil {
		return fmt.Errorf("no lease yet")
	}
	topic, err := epoch.ParseUUID(p.uid)
	if err != nil {
		return err
	}
	s, err := lease.New(lease.Config{Client: w.leases, Namespace: namespace, Name: p.name, TopicID: topic})
	if err != nil {
		return err
	}
	record, err := lease.Decode(l, topic)
	if err != nil {
		return err
	}
	next, err := change(record)
	if err != nil {
		return err
	}
	_, err = s.Update(ctx, epoch.Snapshot{Version: l.ResourceVersion, Record: record, Object: l}, next)
	return err
}

// register lets all replicas register, in one write to spare the API server: they do it by
// themselves in life.
func (w *world) register(p *partition) func(epoch.Record) (epoch.Record, error) {
	return func(r epoch.Record) (epoch.Record, error) {
		for _, pod := range p.running() {
			var id int32
			if _, err := fmt.Sscan(pod.Labels[v1alpha1.LabelReplica], &id); err != nil {
				return r, err
			}
			var dir epoch.UUID
			sum := sha256.Sum256([]byte(pod.UID))
			copy(dir[:], sum[:])
			next, err := epoch.Register(r, epoch.Registration{
				ID: epoch.ReplicaID(id), DirectoryID: dir, VolumeID: dir, StartID: epoch.StartID(changeID()), PodUID: string(pod.UID),
				LastEpoch: epoch.NoEpoch, Change: changeID(), Now: time.Now(),
			})
			if err != nil {
				return r, err
			}
			r = next
		}
		return r, nil
	}
}

func changeID() epoch.ChangeID {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return epoch.ChangeID(hex.EncodeToString(b[:]))
}

// renew is a heartbeat of a partition to which nobody writes.
func (w *world) renew(r epoch.Record) (epoch.Record, error) {
	progress := epoch.Progress{HighWatermark: 1000, TookOver: r.LeaderEpoch}
	for _, q := range r.Replicas {
		if !q.Gone {
			progress.Replicas = append(progress.Replicas, epoch.ReplicaProgress{ID: q.ID, LogEndOffset: 1000, HighWatermark: 1000, LeaderEpoch: r.LeaderEpoch, Live: true})
		}
	}
	return epoch.Renew(r, time.Now(), w.term, progress), nil
}

// kill ends the leader's process of one partition, and returns how long after the kubelet's
// word another leads.
func (w *world) kill(ctx context.Context, name string) (time.Duration, error) {
	w.mu.Lock()
	p := w.parts[name]
	w.mu.Unlock()
	elected := make(chan time.Time, 1)
	p.mu.Lock()
	was := epoch.LeaderEpoch(*p.lease.Spec.LeaseTransitions)
	pod := p.pods[*p.lease.Spec.HolderIdentity].DeepCopy()
	p.led = func(e epoch.LeaderEpoch) {
		if e > was {
			select {
			case elected <- time.Now():
			default:
			}
		}
	}
	p.mu.Unlock()
	pod.Status.ContainerStatuses[0].Ready = false
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	told := time.Now()
	if err := w.api.Status().Update(ctx, pod); err != nil {
		return 0, err
	}
	select {
	case at := <-elected:
		return at.Sub(told), nil
	case <-time.After(w.term + 30*time.Second):
		return 0, fmt.Errorf("nobody was elected in place of %s", pod.Name)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
