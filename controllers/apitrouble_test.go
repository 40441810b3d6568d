package controllers

import (
	"fmt"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
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

// H95: the operator never asks a pod, so that one that is cut off from them sees no less
// than another: nothing in it can open a connection but the clients of the API server.
func TestTheOperatorTalksToTheAPIServerOnly(t *testing.T) {
	for file, imports := range importsOf(t, ".", "../cmd/manager") {
		for _, bad := range []string{"net", "net/http", "net/rpc", "crypto/tls", "github.com/twmb/franz-go/pkg/kgo", "google.golang.org/grpc"} {
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
				path, _ := strconv.Unquote(i.Path.Value)
				out[name] = append(out[name], path)
			}
		}
	}
	return out
}
