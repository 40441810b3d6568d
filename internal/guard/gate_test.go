//go:build mutants

package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestGate takes every rule of the table away, and wants each to be missed. Scripts of
// the simulator count by being there.
func TestGate(t *testing.T) {
	root := filepath.Join("..", "..")
	binaries := map[string]string{}
	for g := range Rules {
		g := Guard(g)
		misses := missed[g]
		if _, err := os.Stat(filepath.Join(root, "internal/sim/testdata/mutants", g.String()+".txt")); err == nil {
			misses = append([]miss{simulated(g)}, misses...)
		}
		t.Run(g.String(), func(t *testing.T) {
			if len(misses) == 0 {
				t.Fatal("nothing misses it: sharpen the simulator, or explain why it is not needed and drop it")
			}
			var by []string
			for _, m := range misses {
				if binaries[m.in] == "" {
					binaries[m.in] = build(t, root, m.in)
				}
				by = append(by, m.check(t, g, filepath.Join(root, m.in), binaries[m.in]))
			}
			t.Logf("%s\n%s\n  %s", Rules[g].Source, Rules[g].Harm, strings.Join(by, "\n  "))
		})
	}
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

var after = regexp.MustCompile(`after (\d+) steps: ([^\n]*)|: violated after (\d+) steps`)

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
