package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// operate plays the operator as far as promotions need it: it asks the leader to hand over,
// and projects the record.
func (p *partition) operate() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := p.operateOnce(ctx); err != nil && ctx.Err() == nil {
				p.t.Errorf("the operator: %v", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
}

func (p *partition) operateOnce(ctx context.Context) error {
	rp := &v1alpha1.ReplicatedPartition{}
	if err := lab.api.Get(ctx, client.ObjectKeyFromObject(p.rp), rp); err != nil {
		return err
	}
	s, err := p.store.Get(ctx)
	if err != nil {
		return err
	}
	q, asked, err := rp.PromoteRequest()
	if err != nil {
		return err
	}
	if asked && q.LeaderEpoch == int32(s.Record.LeaderEpoch) {
		err = p.change(ctx, func(r epoch.Record) (epoch.Record, error) {
			return epoch.RequestSwitchover(r, epoch.SwitchoverRequest{To: epoch.ReplicaID(q.Replica), Reason: "Promote", Change: p.changeID()})
		})
		if err != nil {
			return err
		}
	}
	if int64(s.Record.PartitionEpoch) == rp.Status.PartitionEpoch {
		return nil
	}
	return p.tryStatus(ctx, p.project(s.Record))
}

// request is the annotation, "" if there is none.
func (p *partition) request() string {
	p.t.Helper()
	return p.read().Annotations[v1alpha1.AnnotationPromote]
}

func TestPromoteHandsOverWithoutALostRecord(t *testing.T) {
	p := newPartition(t, 3)
	p.operate()
	before := p.record()
	await(t, "a status", func() error {
		if s := p.read().Status; s.Leader == "" || len(s.Replicas) != 3 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	mustRun(t, p.rp.Namespace, "one\ntwo\n", "produce", "orders")
	to := (before.Leader + 1) % 3
	out := mustRun(t, p.rp.Namespace, "", "promote", "orders", fmt.Sprint(to))
	after := p.record()
	if after.Leader != to || after.LeaderEpoch <= before.LeaderEpoch || !strings.Contains(out, fmt.Sprintf("orders-%d leads in epoch %d", to, after.LeaderEpoch)) {
		t.Errorf("%s; the record says replica %d in epoch %d, want replica %d", out, after.Leader, after.LeaderEpoch, to)
	}
	if got := p.request(); got != "" {
		t.Errorf("the annotation is still there: %s", got)
	}
	mustRun(t, p.rp.Namespace, "three\n", "produce", "orders")
	if got := mustRun(t, p.rp.Namespace, "", "consume", "orders"); got != "one\ntwo\nthree\n" {
		t.Errorf("the log holds %q", got)
	}
	if out := mustRun(t, p.rp.Namespace, "", "promote", "orders", fmt.Sprintf("orders-%d", to)); !strings.Contains(out, "leads already") {
		t.Errorf("once more: %s", out)
	}
}

// withStatus is a partition of three that replica 0 leads in epoch 7, and replica 2 is not in
// sync, by its status alone.
func withStatus(t *testing.T) *partition {
	t.Helper()
	p := newObject(t, nil)
	p.setStatus(func(s *v1alpha1.ReplicatedPartitionStatus) {
		lag := int64(12)
		s.Leader, s.LeaderEpoch, s.TopicID = "orders-0", 7, "AQIDAAAAAAAAAAAAAAAAAA"
		s.Replicas = []v1alpha1.ReplicaStatus{
			{ID: 0, Name: "orders-0", Role: v1alpha1.RoleLeader, InSync: true}, {ID: 1, Name: "orders-1", Role: v1alpha1.RoleFollower, InSync: true},
			{ID: 2, Name: "orders-2", Role: v1alpha1.RoleFollower, Lag: &lag}}
	})
	return p
}

func TestPromoteRefusesWhatStatusShowsToBeImpossible(t *testing.T) {
	p := withStatus(t)
	ns := p.rp.Namespace
	mustFail(t, ns, "orders-2 is not in sync (Follower, lag 12)", "promote", "orders", "2")
	mustFail(t, ns, `no replica "9"; it has [orders-0 orders-1 orders-2]`, "promote", "orders", "9")
	mustFail(t, ns, "there is no such partition", "promote", "other", "1")
	mustFail(t, ns, "name a partition and the replica", "promote", "orders")
	other := "7/0"
	p.annotate(&other)
	mustFail(t, ns, "somebody has asked for replica 0", "promote", "orders", "1")
	if got := p.request(); got != other {
		t.Errorf("somebody else's request is now %q", got)
	}
	p.annotate(nil)
	p.setStatus(func(s *v1alpha1.ReplicatedPartitionStatus) { s.Leader = "" })
	mustFail(t, ns, "nobody leads orders", "promote", "orders", "1")
	if got := p.request(); got != "" {
		t.Errorf("a request was made: %q", got)
	}
}

func (p *partition) annotate(value *string) {
	p.t.Helper()
	c := &cluster{api: lab.api, namespace: p.rp.Namespace}
	if err := c.annotate(p.t.Context(), p.rp.Name, v1alpha1.AnnotationPromote, value); err != nil {
		p.t.Fatal(err)
	}
}

// progressing waits for the request, and then says what the operator says of it.
func (p *partition) progressing(status metav1.ConditionStatus, reason, message string) {
	p.t.Helper()
	await(p.t, "the request", func() error {
		if got := p.request(); got != "7/1" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	p.setStatus(func(s *v1alpha1.ReplicatedPartitionStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message})
	})
}

func (p *partition) endsWith(i *invocation, want string) {
	p.t.Helper()
	select {
	case <-i.done:
	case <-time.After(time.Minute):
		p.t.Fatalf("it does not end: %s%s", i.out.String(), i.err.String())
	}
	if i.code != 1 || !strings.Contains(i.err.String(), want) {
		p.t.Errorf("exit status %d: %s; want status 1 and %q", i.code, i.err.String(), want)
	}
	if got := p.request(); got != "" {
		p.t.Errorf("the annotation is still there: %s", got)
	}
}

func TestPromoteTellsWhyTheOperatorRefuses(t *testing.T) {
	p := withStatus(t)
	i := begin(t, p.rp.Namespace, "", "promote", "orders", "orders-1")
	p.progressing(metav1.ConditionFalse, v1alpha1.ReasonSwitchoverRefused, "orders-1 cannot lead now: replica 1 is not at work")
	p.endsWith(i, "refused: orders-1 cannot lead now: replica 1 is not at work")
}

func TestPromoteGivesUpInTimeAndSaysWhatTheOperatorDoes(t *testing.T) {
	p := withStatus(t)
	i := begin(t, p.rp.Namespace, "", "promote", "orders", "1", "--timeout", "3s")
	p.progressing(metav1.ConditionTrue, v1alpha1.ReasonSwitchingOver, "orders-0 hands over to orders-1")
	p.endsWith(i, "orders-1 does not lead after 3s; Progressing is True (SwitchingOver): orders-0 hands over to orders-1")
}

func TestPromoteTellsThatAnotherWasElected(t *testing.T) {
	p := withStatus(t)
	i := begin(t, p.rp.Namespace, "", "promote", "orders", "1")
	p.progressing(metav1.ConditionTrue, v1alpha1.ReasonSwitchingOver, "orders-0 hands over to orders-1")
	p.setStatus(func(s *v1alpha1.ReplicatedPartitionStatus) {
		s.Leader, s.LeaderEpoch, s.LastElection = "orders-2", 8, "ProcessDied"
	})
	p.endsWith(i, "orders-2 was elected instead, in epoch 8 (ProcessDied)")
}

func TestPromoteTakesItsRequestBackWhenInterrupted(t *testing.T) {
	p := withStatus(t)
	i := begin(t, p.rp.Namespace, "", "promote", "orders", "1")
	p.progressing(metav1.ConditionTrue, v1alpha1.ReasonSwitchingOver, "orders-0 hands over to orders-1")
	i.stop()
	p.endsWith(i, "interrupted")
}
