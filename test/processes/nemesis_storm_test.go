package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/test/nemesis"
)

// storm is a round under way. Its faults are injected and healed by one goroutine.
type storm struct {
	t       *testing.T
	p       *partition
	plan    *nemesis.Round
	load    *nemesisLoad
	records *lease.Store
	second  *operator // made when it is first needed
	open    []wound   // in the order in which they are to be healed
	begun   time.Time
	counts  tally
	leader  string // the last one seen

	mu       sync.Mutex // for what is done while a container is down
	journal  strings.Builder
	losses   nemesis.Losses
	replicas int // the smaller one while it is not known whether a change has landed
	minISR   int
}

// wound is a fault that lasts.
type wound struct {
	fault nemesis.Fault
	on    string // what it struck
	due   time.Time
	heal  func() error
}

// errPassed says that a fault cannot strike now, which is no failure.
var errPassed = errors.New("passed")

func newStorm(t *testing.T, p *partition, plan *nemesis.Round) *storm {
	t.Helper()
	rp := &v1alpha1.ReplicatedPartition{}
	if err := env.api.Get(t.Context(), p.key, rp); err != nil {
		t.Fatal(err)
	}
	topicID, err := epoch.ParseUUID(string(rp.UID))
	if err != nil {
		t.Fatal(err)
	}
	client, err := lease.NewClient(env.config)
	if err != nil {
		t.Fatal(err)
	}
	records, err := lease.New(lease.Config{Client: client, Namespace: rp.Namespace, Name: rp.LeaseName(), TopicID: topicID, Timeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	r := &storm{t: t, p: p, plan: plan, records: records, begun: time.Now(), counts: tally{"rounds": 1}, replicas: plan.Shape.Replicas, minISR: plan.Shape.MinISR}
	// Also after a failure: the next test needs the API server.
	t.Cleanup(func() {
		for _, w := range r.open {
			_ = w.heal()
		}
		_ = env.operator.revive()
	})
	return r
}

func (r *storm) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.journal, "%9.3f  %s\n", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// strike lets faults happen for a while.
func (r *storm) strike(length time.Duration) {
	r.t.Helper()
	end, calm := r.begun.Add(length), r.begun.Add(calmEvery)
	for time.Now().Before(end) && !r.t.Failed() {
		if !r.struck(operatorFaults...) {
			r.reviveOperator()
		}
		f := r.plan.Next()
		r.wait(time.Now().Add(f.Pause))
		for f.Lasts > 0 && len(r.open) >= r.plan.Overlap {
			r.wait(r.open[0].due)
		}
		r.inject(f)
		if time.Now().After(calm) {
			r.healAll()
			r.calm("every replica in sync between faults")
			calm = time.Now().Add(calmEvery)
		}
	}
}

// wait waits, and heals meanwhile what is due.
func (r *storm) wait(until time.Time) {
	r.t.Helper()
	for {
		next := until
		if len(r.open) > 0 && r.open[0].due.Before(next) {
			next = r.open[0].due
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-r.t.Context().Done():
			r.t.Fatal("the test was broken off")
		}
		for len(r.open) > 0 && !r.open[0].due.After(time.Now()) {
			r.healFirst()
		}
		if !time.Now().Before(until) {
			return
		}
	}
}

func (r *storm) healFirst() {
	r.t.Helper()
	w := r.open[0]
	r.open = r.open[1:]
	r.note("heal   %s on %s", w.fault.Kind, w.on)
	if err := w.heal(); err != nil {
		r.t.Fatalf("heal %s on %s: %v", w.fault.Kind, w.on, err)
	}
}

func (r *storm) healAll() {
	r.t.Helper()
	for len(r.open) > 0 {
		r.healFirst()
	}
	r.reviveOperator()
}

// reviveOperator starts the operator again if it has ended by itself, as its kubelet would.
func (r *storm) reviveOperator() {
	r.t.Helper()
	if err := env.operator.revive(); err != nil {
		r.t.Fatal(err)
	}
}

// inject makes a fault happen, if it can.
func (r *storm) inject(f nemesis.Fault) {
	r.t.Helper()
	on, heal, err := r.carryOut(f)
	switch {
	case errors.Is(err, errPassed):
		r.counts["faults that could not strike"]++
		r.note("pass   %s: %v", f, err)
		return
	case err != nil:
		r.t.Fatalf("%s on %s: %v", f, on, err)
	}
	r.counts[faultPrefix+string(f.Kind)]++
	r.counts["faults in all"]++
	r.note("strike %s on %s", f, on)
	if heal == nil {
		return
	}
	r.endure(f, on, f.Lasts, heal)
}

// endure has a fault healed after a while.
func (r *storm) endure(f nemesis.Fault, on string, lasts time.Duration, heal func() error) {
	r.open = append(r.open, wound{fault: f, on: on, due: time.Now().Add(lasts), heal: heal})
	slices.SortStableFunc(r.open, func(a, b wound) int { return a.due.Compare(b.due) })
}

// struck tells whether a fault of one of those kinds lasts.
func (r *storm) struck(kinds ...nemesis.Kind) bool {
	return slices.ContainsFunc(r.open, func(w wound) bool { return slices.Contains(kinds, w.fault.Kind) })
}

// calm waits until all is well, and a record written afterwards is acknowledged.
func (r *storm) calm(what string) {
	r.t.Helper()
	r.note("calm")
	r.p.await(what, func(rp *v1alpha1.ReplicatedPartition) bool {
		r.reviveOperator() // it may have given up on an API server that was away
		n := int(rp.Spec.Replicas)
		return rp.Status.Leader != "" && len(rp.Status.ISR) == n && len(rp.Status.Replicas) == n && !slices.ContainsFunc(rp.Status.Replicas, func(s v1alpha1.ReplicaStatus) bool { return !s.InSync })
	})
	r.load.await(r.t, time.Now())
	r.counts["calms"]++
	r.note("calm: every replica in sync, records acknowledged")
}

// target chooses the container that a fault strikes.
func (r *storm) target(f nemesis.Fault) (*container, error) {
	all := r.p.kubelet.containers()
	if len(all) == 0 {
		return nil, fmt.Errorf("no container: %w", errPassed)
	}
	r.leader = r.leading(all)
	some := all
	if f.Target != nemesis.Anybody {
		some = slices.DeleteFunc(slices.Clone(all), func(c *container) bool { return (c.name == r.leader) != (f.Target == nemesis.Leader) })
	}
	if len(some) == 0 {
		some = all
	}
	return some[f.Pick%len(some)], nil
}

// leading is the replica that says so, in the highest epoch; else the last that did.
func (r *storm) leading(all []*container) string {
	best, name := epoch.LeaderEpoch(-1), r.leader
	for _, c := range all {
		if s, err := c.askStatus(300 * time.Millisecond); err == nil && s.Role == "Leader" && s.LeaderEpoch > best {
			best, name = s.LeaderEpoch, c.name
		}
	}
	return name
}

// replicaStatus is the part of a replica's /v1/status that the tests need.
type replicaStatus struct {
	Phase         string            `json:"phase"`
	Role          string            `json:"role"`
	LeaderEpoch   epoch.LeaderEpoch `json:"leaderEpoch"`
	HighWatermark int64             `json:"highWatermark"`
	LogEndOffset  int64             `json:"logEndOffset"`
}

func (c *container) askStatus(within time.Duration) (replicaStatus, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var s replicaStatus
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.ip+":8080/v1/status", nil)
	if err != nil {
		return s, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}
