//go:build mutants

package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// miss is what misses a rule: a test that shows the harm of its absence.
type miss struct {
	// in is the package, test the test.
	in, test string
	// alone says that the test itself takes the rule away and passes if it sees the harm
	// (a story, an exploration, a script of the simulator). Other tests are run with the
	// rule taken away, and must fail.
	alone bool
}

func simulated(g Guard) miss { return miss{"internal/sim", "TestMutants/" + g.String(), true} }
func story(name string) miss { return miss{"pkg/replica/core", "TestScenarios/" + name, true} }
func explored(name string) miss {
	return miss{"internal/explore", "TestWithoutARuleItsFailureIsFound/" + name, true}
}
func walked(name string) miss {
	return miss{"pkg/replica/core", "TestRandomWalksMissEveryGuard/" + name, true}
}
func fails(in, test string) miss { return miss{"pkg/" + in, test, false} }

// kind says which tool a miss belongs to.
func (m miss) kind() string {
	switch m.in {
	case "internal/sim":
		return simulator
	case "internal/explore":
		return explorer
	}
	if strings.HasPrefix(m.test, "TestScenarios/") && m.alone {
		return aStory
	}
	if strings.HasPrefix(m.test, "TestRandomWalks") {
		return aWalk
	}
	return unitTest
}

const (
	simulator = "the simulator"
	explorer  = "the explorer"
	aStory    = "a story"
	aWalk     = "a random walk over the core"
	unitTest  = "a unit test"
)

// shown reports that one of the misses is more than a unit test: it shows the harm, and
// after how many steps it comes.
func shown(misses []miss) bool {
	return slices.ContainsFunc(misses, func(m miss) bool { return m.kind() != unitTest })
}

// misses lists what misses a rule. Scripts of the simulator count by being there.
func (g Guard) misses(root string) []miss {
	if _, err := os.Stat(filepath.Join(root, "internal/sim/testdata/mutants", g.String()+".txt")); err == nil {
		return append([]miss{simulated(g)}, missed[g]...)
	}
	return missed[g]
}

// TestGate takes every rule of the table away, and wants each to be missed.
func TestGate(t *testing.T) {
	root := filepath.Join("..", "..")
	binaries := map[string]string{}
	for g := range Rules {
		g := Guard(g)
		misses := g.misses(root)
		t.Run(g.String(), func(t *testing.T) {
			why, told := onlyUnit[g]
			switch {
			case len(misses) == 0:
				t.Fatal("nothing misses it: sharpen the simulator, or explain why it is not needed and drop it")
			case !shown(misses) && !told:
				t.Error("only a unit test misses it: sharpen the simulator, or tell in onlyUnit why it cannot see the harm")
			case shown(misses) && told:
				t.Error("more than a unit test misses it, and onlyUnit tells why none could")
			}
			var by []string
			for _, m := range misses {
				if binaries[m.in] == "" {
					binaries[m.in] = build(t, root, m.in)
				}
				by = append(by, m.check(t, g, filepath.Join(root, m.in), binaries[m.in]))
			}
			if told {
				by = append(by, "by a unit test only: "+why)
			}
			t.Logf("%s\n%s\n  %s", Rules[g].Source, Rules[g].Harm, strings.Join(by, "\n  "))
		})
	}
	t.Log(counts(root))
}

// counts tells how many rules each tool misses.
func counts(root string) string {
	n := map[string]int{}
	for g := range Rules {
		kinds := map[string]bool{}
		for _, m := range Guard(g).misses(root) {
			kinds[m.kind()] = true
		}
		for k := range kinds {
			if k != unitTest || len(kinds) == 1 {
				n[k]++
			}
		}
	}
	out := fmt.Sprintf("of %d rules", len(Rules))
	for _, k := range []string{simulator, explorer, aStory, aWalk} {
		out += fmt.Sprintf(", %d are missed by %s", n[k], k)
	}
	return fmt.Sprintf("%s, and %d by %s only", out, n[unitTest], unitTest)
}

var directory string

func TestMain(m *testing.M) {
	var err error
	if directory, err = os.MkdirTemp("", "tidemark-gate-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func build(t *testing.T, root, in string) string {
	t.Helper()
	binary := filepath.Join(directory, strings.ReplaceAll(in, "/", "-")+".test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "mutants", "-c", "-o", binary, "./"+in)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", in, err, out)
	}
	return binary
}

var after = regexp.MustCompile(`after (\d+) steps[^:\n]*: ([^\n]*)|: violated after (\d+) steps|step (\d+), \d+ steps in all: ([^\n]*)`)

// check runs the test, and says in a line what missed the rule.
func (m miss) check(t *testing.T, g Guard, dir, binary string) string {
	t.Helper()
	binary, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	var pattern []string
	for part := range strings.SplitSeq(m.test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", strings.Join(pattern, "/"))
	cmd.Dir = dir
	if !m.alone {
		cmd.Env = append(os.Environ(), Without+"="+g.String())
	}
	out, err := cmd.CombinedOutput()
	text := string(out)
	if !strings.Contains(text, "=== RUN   "+m.test) || strings.Contains(text, "--- SKIP: "+m.test) {
		t.Errorf("%s of %s does not run any more:\n%s", m.test, m.in, text)
	}
	if failed := err != nil; failed == m.alone {
		t.Errorf("%s of %s does not miss it:\n%.2000s", m.test, m.in, text)
	}
	line := m.in + " " + m.test
	if found := after.FindString(text); found != "" {
		line += ": " + found
	}
	return line
}
