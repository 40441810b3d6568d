package controllers

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// troubles are the ways in which a write fails that the operator lives through.
var troubles = []variant{
	{"conflict", func(n int) (meddling, *crashed) { return once(n, false, http.StatusConflict) }},
	{"too many requests", func(n int) (meddling, *crashed) { return once(n, false, http.StatusTooManyRequests) }},
	{"internal error", func(n int) (meddling, *crashed) { return once(n, false, http.StatusInternalServerError) }},
	{"unavailable", func(n int) (meddling, *crashed) { return once(n, false, http.StatusServiceUnavailable) }},
}

// answerLost is that a write is done, and the operator is told that it may not be.
var answerLost = variant{"answer lost", func(n int) (meddling, *crashed) { return once(n, true, 0) }}

// Every write of every scenario fails once, in one of the ways that API servers have. The
// same operator goes on to the same end.
func TestAWriteThatFailsOnceIsMadeUpFor(t *testing.T) {
	b := needsBareCluster(t)
	var g errgroup.Group
	g.SetLimit(trialsAtOnce)
	for i, s := range scenarios {
		var writes int
		var end string
		t.Run(s.name, func(t *testing.T) { writes, end = s.run(t, b) })
		for n := 1; n <= writes; n++ {
			v := troubles[(n+i)%len(troubles)]
			g.Go(func() error {
				t.Run(fmt.Sprintf("%s/%s/%d", s.name, v.name, n), func(t *testing.T) { s.trial(t, b, n, v, end) })
				return nil
			})
		}
	}
	_ = g.Wait()
}

// Two operators that both think they are the only one, as without leader election, do
// nothing that one would not do.
func TestTwoOperatorsAtOnceComeToTheSameEnd(t *testing.T) {
	b := needsBareCluster(t)
	var g errgroup.Group
	g.SetLimit(trialsAtOnce)
	for _, s := range scenarios {
		g.Go(func() error {
			t.Run(s.name, func(t *testing.T) {
				_, end := s.run(t, b)
				w, _ := s.ready(t, b)
				defer w.forget()
				w.reads.off.Store(true)
				one, two := w.newOperator(), w.newOperator()
				for range 30 {
					w.step()
					var both sync.WaitGroup
					for _, o := range []*operator{one, two} {
						both.Go(func() { _, _ = o.look(t.Context(), w.request()) })
					}
					both.Wait()
					w.check()
				}
				if err := w.settle(one, nil, s.finished(w)); err != nil {
					t.Error(err)
				}
				if got := s.picture(w); got != end {
					t.Errorf("it ends as\n%s", difference(end, got))
				}
				if len(w.faults) > 0 {
					t.Error(w.faults)
				}
			})
			return nil
		})
	}
	_ = g.Wait()
}

// A call that hangs ends by itself, and the rest of the plan is not tried: the worker is free
// again after one deadline, not after one for each object.
func TestACallThatHangsEndsTheLook(t *testing.T) {
	b := needsBareCluster(t)
	w := newWorld(t, b, &fakeClock{at: time.Now()}, nil)
	defer w.forget()
	o := w.newOperator()
	o.Client = bounded{o.Client, 50 * time.Millisecond}
	o.wire.meddle = func(_ int, req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if strings.Contains(shortly(req), "PATCH") {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return send()
	}
	for range 5 {
		w.step()
		before := o.wire.written()
		res, err := o.look(t.Context(), w.request())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(w.progressing(), context.DeadlineExceeded.Error()) {
			continue
		}
		if res.RequeueAfter < firstHungRecheck {
			t.Errorf("it is tried again after %s", res.RequeueAfter)
		}
		// The one that hung, and the status that tells of it.
		if n := o.wire.written() - before; n > 2 {
			t.Errorf("%d writes were sent in a look whose first hung, want it and the status only", n)
		}
		return
	}
	t.Fatal("no look was told of")
}

// H71: partitions whose calls hang do not keep another from being served. The operator runs for real here, behind a wire that swallows all that is
// written in one namespace.
func TestPartitionsWhoseCallsHangHoldNoOneUp(t *testing.T) {
	b := needsBareCluster(t)
	stuck := newWorld(t, b, &fakeClock{at: time.Now()}, nil)
	defer stuck.forget()
	for i := range 20 {
		rp := &v1alpha1.ReplicatedPartition{}
		rp.Namespace, rp.Name = stuck.rp.Namespace, fmt.Sprintf("stuck-%d", i)
		stuck.must(stuck.api.Create(t.Context(), rp))
	}
	hung := &wire{meddle: func(n int, req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if n > 0 && strings.Contains(req.URL.Path, "/"+stuck.rp.Namespace+"/") {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return send()
	}}
	b.runManager(t, hung)
	well := newWorld(t, b, &fakeClock{at: time.Now()}, nil)
	defer well.forget()
	well.reads.off.Store(true)
	well.awaitServing()
}

// An API server that is away for a while, with every watch broken, is worked with again as
// soon as it is back, by the same process.
func TestAnOutageOfTheAPIServerIsOutlived(t *testing.T) {
	b := needsBareCluster(t)
	var away atomic.Bool
	line := &wire{meddle: func(_ int, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if away.Load() {
			return nil, errCut
		}
		resp, err := send()
		if err == nil {
			resp.Body = &cable{resp.Body, &away}
		}
		return resp, err
	}}
	b.runManager(t, line)
	w := newWorld(t, b, &fakeClock{at: time.Now()}, nil)
	defer w.forget()
	w.reads.off.Store(true)
	w.awaitServing()
	away.Store(true)
	before := line.tries()
	w.kill(w.seen.Leader)
	was := w.seen.LeaderEpoch
	await(t, "the operator to notice", func() string {
		if line.tries() < before+5 {
			return "it has tried nothing since"
		}
		return ""
	})
	away.Store(false)
	// The dead leader's process does not come back by itself in this world before this.
	await(t, "the election", func() string {
		w.check()
		if w.seen.LeaderEpoch == was {
			return fmt.Sprintf("replica %d leads in epoch %d", w.seen.Leader, w.seen.LeaderEpoch)
		}
		return ""
	})
	w.awaitServing()
}

// cable is a response's body that breaks when the API server goes away.
type cable struct {
	io.ReadCloser
	away *atomic.Bool
}

// Read implements io.Reader.
func (c *cable) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.away.Load() {
		return 0, errCut
	}
	return n, err
}

// awaitServing moves the world along until the partition serves, with an operator that runs by
// itself.
func (w *simWorld) awaitServing() {
	w.t.Helper()
	await(w.t, "the partition to serve", func() string {
		w.step()
		return w.serves()
	})
}

// H95: the operator never asks a pod, so that one that is cut off from them sees no less
// than another: nothing in it can open a connection but the clients of the API server.
func TestTheOperatorTalksToTheAPIServerOnly(t *testing.T) {
	// What a package can be used for without opening a connection of one's own.
	harmless := map[string][]string{
		"net":      {"JoinHostPort", "SplitHostPort", "ParseIP"},
		"net/http": {"RoundTripper", "Request", "Response", "MethodGet"},
	}
	for file, imports := range importsOf(t, ".", "../cmd/manager") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for pkg, allowed := range harmless {
			if !slices.Contains(imports, pkg) {
				continue
			}
			for _, m := range regexp.MustCompile(`(\*?)\b`+path.Base(pkg)+`\.([A-Z]\w*)`).FindAllStringSubmatch(string(text), -1) {
				// A client that was handed to us is the API server's.
				if !slices.Contains(allowed, m[2]) && m[1]+m[2] != "*Client" {
					t.Errorf("%s uses %s.%s", file, pkg, m[2])
				}
			}
		}
		for _, bad := range []string{"net/rpc", "crypto/tls", "github.com/twmb/franz-go/pkg/kgo", "google.golang.org/grpc"} {
			if slices.Contains(imports, bad) {
				t.Errorf("%s imports %s", file, bad)
			}
		}
	}
}

// importsOf holds what the Go files of some directories import, tests apart.
func importsOf(t *testing.T, dirs ...string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "selftest.go") {
				continue // the self-test is a client of its own
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				imported, _ := strconv.Unquote(i.Path.Value)
				out[name] = append(out[name], imported)
			}
		}
	}
	return out
}
