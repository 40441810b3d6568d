package processes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func threeReplicas() v1alpha1.ReplicatedPartitionSpec {
	return v1alpha1.ReplicatedPartitionSpec{
		Replicas: 3, MinInSyncReplicas: ptr.To[int32](2),
		Storage: v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")},
	}
}

// load is an idempotent producer with acks=all and a reader, checked at the end.
type load struct {
	p       *partition
	history *history.Log
	prober  *prober.Prober
	reader  *prober.Reader
}

func startLoad(p *partition) *load {
	p.t.Helper()
	l := &load{p: p, history: history.NewLog()}
	var err error
	if l.reader, err = prober.StartReader([]string{service}, p.key.Name, p.viaService()); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _, _ = l.reader.Stop() })
	cfg := prober.Config{Brokers: []string{service}, Topic: p.key.Name, History: l.history, Options: []kgo.Opt{p.viaService()}}
	if l.prober, err = prober.Start(cfg); err != nil {
		p.t.Fatal(err)
	}
	l.await(time.Now())
	return l
}

// await waits for the acknowledgement of a record sent after that moment.
func (l *load) await(after time.Time) {
	l.p.t.Helper()
	ctx, cancel := context.WithTimeout(l.p.t.Context(), 2*time.Minute)
	defer cancel()
	if err := l.prober.Await(ctx, after); err != nil {
		l.p.t.Fatal(err)
	}
}

// check stops the load and looks for lost, doubled and reordered records.
func (l *load) check() {
	l.p.t.Helper()
	ctx, cancel := context.WithTimeout(l.p.t.Context(), time.Minute)
	defer cancel()
	end, err := l.prober.Stop(ctx)
	if err != nil {
		l.p.t.Errorf("a producer that retries saw an error: %v", err)
	}
	if err := l.reader.Await(ctx, end); err != nil {
		l.p.t.Error(err)
	}
	seen, err := l.reader.Stop() // before the final read, which so has all that was shown
	if err != nil {
		l.p.t.Error(err)
	}
	final, err := prober.ReadAll(ctx, []string{service}, l.p.key.Name, end, l.p.viaService())
	if err != nil {
		l.p.t.Fatal(err)
	}
	verdict := l.history.Judge(final, history.Read{Name: "the consumer", Records: seen, Upto: end})
	l.p.t.Log(verdict)
	if err := verdict.Err(); err != nil {
		l.p.t.Error(err)
	}
}

// TestKillingLeadersLosesNothing kills the leader's process again and again, as soon as
// everybody is in sync again, under a producer with acks=all.
func TestKillingLeadersLosesNothing(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	const kills = 8
	for range kills {
		before := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
		killed := time.Now()
		if !p.kubelet.kill(before.Status.Leader) {
			t.Fatalf("leader %s does not run", before.Status.Leader)
		}
		after := p.await("a new epoch", func(rp *v1alpha1.ReplicatedPartition) bool { return rp.Status.LeaderEpoch > before.Status.LeaderEpoch })
		l.await(killed)
		t.Logf("leader %s killed: %s leads epoch %d", before.Status.Leader, after.Status.Leader, after.Status.LeaderEpoch)
	}
	p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 })
	l.check()
}

// TestKillingFollowersAndLeadersTogether kills two of three at once: what is left waits,
// and nothing is lost when they are back.
func TestKillingTwoOfThreeLosesNothing(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	for range 4 {
		rp := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
		killed := time.Now()
		p.kubelet.kill(rp.Status.Leader)
		for _, r := range rp.Status.Replicas {
			if r.Name != rp.Status.Leader {
				p.kubelet.kill(r.Name)
				break
			}
		}
		l.await(killed)
	}
	p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 })
	l.check()
}

// TestALeaderIsSucceededWithoutAnOperator kills the leader's process while no operator runs, and
// does not start it again: a follower sees by the closed and refused connection that it has ended.
func TestALeaderIsSucceededWithoutAnOperator(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	rp := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
	if err := env.operator.kill(); err != nil {
		t.Fatal(err)
	}
	start := sync.OnceFunc(func() {
		if err := env.operator.start(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(start)
	killed := time.Now()
	resume := p.kubelet.container(rp.Status.Leader).crash(nil)
	t.Cleanup(resume)
	l.await(killed)
	resume()
	start()
	after := p.await("every replica in sync again", func(now *v1alpha1.ReplicatedPartition) bool {
		return now.Status.LeaderEpoch > rp.Status.LeaderEpoch && len(now.Status.ISR) == 3
	})
	if after.Status.Leader == rp.Status.Leader {
		t.Errorf("%s still leads, in epoch %d", after.Status.Leader, after.Status.LeaderEpoch)
	}
	l.check()
}

// TestADeadFollowerIsNotWaitedFor kills a follower's process: the leader finds out by trying to
// connect, and says so.
func TestADeadFollowerIsNotWaitedFor(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	rp := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
	follower := "orders-0"
	if rp.Status.Leader == follower {
		follower = "orders-1"
	}
	killed := time.Now()
	resume := p.kubelet.container(follower).crash(nil)
	t.Cleanup(resume)
	p.poll("the leader's word that the process has ended", func() bool {
		for _, name := range p.logFiles() {
			b, _ := os.ReadFile(name)
			if strings.Contains(filepath.Base(name), rp.Status.Leader) && strings.Contains(string(b), "its machine refuses another one") {
				return true
			}
		}
		return false
	})
	l.await(killed)
	resume()
	p.await("every replica in sync again", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 })
	l.check()
}

// TestDeletingTheLeadersPodFailsNoRecord deletes the leader's pod: it hands over, and no
// producer sees an error.
func TestDeletingTheLeadersPodFailsNoRecord(t *testing.T) {
	p := newPartition(t, threeReplicas())
	l := startLoad(p)
	for range 3 {
		before := p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 && rp.Status.Leader != "" })
		deleted := time.Now()
		if err := env.clientset.CoreV1().Pods(p.key.Namespace).Delete(t.Context(), before.Status.Leader, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.await("another leader", func(rp *v1alpha1.ReplicatedPartition) bool {
			return rp.Status.LeaderEpoch > before.Status.LeaderEpoch && rp.Status.Leader != before.Status.Leader
		})
		l.await(deleted)
	}
	p.await("every replica in sync", func(rp *v1alpha1.ReplicatedPartition) bool { return len(rp.Status.ISR) == 3 })
	l.check()
}
