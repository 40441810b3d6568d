//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// outageLength is how long the API server is away: longer than the leader's lease, and than every wait of ten seconds that
// something may have, or what TIDEMARK_OUTAGE says.
func outageLength(t testing.TB) time.Duration {
	t.Helper()
	s := os.Getenv("TIDEMARK_OUTAGE")
	if s == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("TIDEMARK_OUTAGE: %v", err)
	}
	return d
}

// outages are the two ways in which an API server can be away.
var outages = []struct{ name, down, up string }{
	{name: "refused", down: "stop-api", up: "start-api"},
	{name: "hanging", down: "pause-api", up: "resume-api"},
}

// outage is a time without an API server.
type outage struct {
	began time.Time
	up    string
	over  bool
}

// beginOutage takes the API server away, until end, or until the test has ended.
func beginOutage(t testing.TB, down, up string) *outage {
	t.Helper()
	o := &outage{up: up}
	t.Cleanup(func() {
		if !o.over {
			t.Log(output(labScript, up))
		}
	})
	o.began = time.Now()
	lab(t, down)
	return o
}

// end brings the API server back, and returns when it answered again.
func (o *outage) end(t testing.TB) time.Time {
	t.Helper()
	lab(t, o.up)
	o.over = true
	return time.Now()
}

// processes are the first processes of the partition's containers. A container that was started again has another one.
func (p partition) processes(t testing.TB) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for name := range p.podsByName(t) {
		pid, err := strconv.Atoi(lab(t, "pod-pid", namespace, name, "replica"))
		if err != nil {
			t.Fatal(err)
		}
		pids[name] = pid
	}
	return pids
}

// checkReady asks every replica what its kubelet asks.
func checkReady(t testing.TB, pods map[string]corev1.Pod) {
	t.Helper()
	c := http.Client{Timeout: 5 * time.Second}
	for name, pod := range pods {
		r, err := c.Get(fmt.Sprintf("http://%s:%d/readyz", pod.Status.PodIP, v1alpha1.PortHTTP))
		if err != nil {
			t.Error(err)
			continue
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s is not ready without the API server: %s", name, r.Status)
		}
	}
}

// DESIGN.md rule 8: an outage of the API server stops nothing that was working, however long it lasts.
func TestOutageOfTheAPIServerStopsNoWrites(t *testing.T) {
	length := outageLength(t)
	for _, tc := range outages {
		t.Run(tc.name, func(t *testing.T) {
			p := newPartition(t, "outage-"+tc.name)
			l := startLoad(t, p)
			before, pods, processes, starts := p.awaitInSync(t), p.podsByName(t), p.processes(t), operatorRestarts(t)
			o := beginOutage(t, tc.down, tc.up)
			// records sent long after the leader's lease would have expired are acknowledged, the API server still being away
			l.await(t, o.began.Add(length))
			checkReady(t, pods)
			l.report(t, fmt.Sprintf("API server %s for %s", tc.name, length), o.began)
			back := o.end(t)

			// Nobody but the operator hears this request.
			to := follower(before)
			kubectl(t, "annotate", "rp", p.name, fmt.Sprintf("%s=%d/%d", v1alpha1.AnnotationPromote, before.LeaderEpoch, to.ID))
			p.await(t, to.Name+" to lead", func(s v1alpha1.ReplicatedPartitionStatus) bool { return s.Leader == to.Name })
			acted := time.Since(back)
			l.await(t, time.Now())
			l.report(t, fmt.Sprintf("API server back; %s leads on request %.1f s later", to.Name, acted.Seconds()), back)
			after := p.awaitInSync(t)
			if after.LeaderEpoch != before.LeaderEpoch+1 {
				t.Errorf("leader epoch %d after %d, want one hand-over, the one that was asked for", after.LeaderEpoch, before.LeaderEpoch)
			}
			p.awaitPodsReady(t)
			if now := p.processes(t); !maps.Equal(now, processes) {
				t.Errorf("processes were started anew: %v, before %v", now, processes)
			}
			for name, n := range operatorRestarts(t) {
				// the one that leads ends when it cannot renew its Lease, and then waits for the API server
				if n > starts[name]+1 {
					t.Errorf("the operator %s was started anew %d times", name, n-starts[name])
				}
			}
			killed := killPod(t, namespace, after.Leader, "replica")
			l.await(t, killed.Add(500*time.Millisecond))
			last := p.awaitEpochAfter(t, after.LeaderEpoch)
			l.report(t, fmt.Sprintf("then kill -9 of %s, %s leads in epoch %d", after.Leader, last.Leader, last.LeaderEpoch), killed)
			p.awaitInSync(t)
			l.finish(t)
		})
	}
}

// operatorRestarts are how often the operator's containers were started anew.
func operatorRestarts(t testing.TB) map[string]int32 {
	t.Helper()
	n := map[string]int32{}
	for name := range operators(t) {
		var pod corev1.Pod
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: name}, &pod); err != nil {
			t.Fatal(err)
		}
		for _, c := range pod.Status.ContainerStatuses {
			n[name] += c.RestartCount
		}
	}
	return n
}

// awaitPodsReady waits until the kubelets have said so.
func (p partition) awaitPodsReady(t testing.TB) {
	t.Helper()
	eventually(t, time.Minute, "all pods to be ready", func(context.Context) error {
		for name, pod := range p.podsByName(t) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
					return fmt.Errorf("%s is not: %s", name, c.Message)
				}
			}
		}
		return nil
	})
}

// Without an API server nobody can be elected. Writes wait until it is back, and then go on with nothing lost.
func TestALeaderThatDiesInAnOutageIsReplacedAfterIt(t *testing.T) {
	length := outageLength(t)
	for _, tc := range outages {
		t.Run(tc.name, func(t *testing.T) {
			p := newPartition(t, "headless-"+tc.name)
			l := startLoad(t, p)
			before := p.awaitInSync(t)
			leader := p.processes(t)[before.Leader]
			o := beginOutage(t, tc.down, tc.up)
			l.await(t, o.began.Add(5*time.Second))
			if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			died := time.Now()
			<-time.After(time.Until(o.began.Add(length)))
			back := o.end(t)
			l.await(t, back)
			gap := l.prober.Longest(died)
			after := p.awaitEpochAfter(t, before.LeaderEpoch)
			l.report(t, fmt.Sprintf("API server %s for %s, in which the leader is killed; %s leads in epoch %d, %.1f s after the API server is back",
				tc.name, length, after.Leader, after.LeaderEpoch, gap.To.Sub(back).Seconds()), died)
			p.awaitInSync(t)
			l.finish(t)
		})
	}
}

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
