package sim

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	seed   = flag.Uint64("sim.seed", 0, "the one seed to run")
	first  = flag.Uint64("sim.first", 1, "the first seed")
	seeds  = flag.Int("sim.seeds", 150, "how many seeds to run")
	steps  = flag.Int("sim.steps", 600, "how many steps a run has, at most")
	script = flag.String("sim.script", "", "the file into which the script of a failed run is written, or the one to be told step by step with -sim.tell")
	tell   = flag.Bool("sim.tell", false, "tell the run of -sim.script step by step")
)

// TestSimulation runs seeds until one breaks an invariant. make sim runs more of them.
func TestSimulation(t *testing.T) {
	if *tell {
		tellScript(t)
		return
	}
	from, n := *first, *seeds
	if *seed != 0 {
		from, n = *seed, 1
	}
	begun := time.Now()
	made, hopeless, idle := 0, 0, 0
	for s := from; s < from+uint64(n); s++ {
		r := Run(Draw(s), *steps)
		made += r.Made
		if r.Hopeless {
			hopeless++
		}
		if r.Committed == 0 {
			idle++
		}
		if done := s - from + 1; r.Failure == nil {
			if done%5000 == 0 {
				t.Logf("%d seeds, %d steps, no violation", done, made)
			}
			continue
		}
		budget := 3000
		if r.Failure.Invariant == "liveness" {
			budget = 400 // each try is long
		}
		story, kept := Explain(Draw(s), r.Made, *r.Failure, budget)
		if *script != "" {
			if err := os.WriteFile(*script, []byte(kept), 0o600); err != nil {
				t.Error(err)
			}
		}
		t.Fatalf("commit %s, seed %d, step %d: %s\n\ngo test ./internal/sim -run Simulation -sim.seed %d -sim.steps %d\n\n%s\n%s", commit(t), s, r.Made, r.Failure, s, *steps, story, kept)
	}
	t.Logf("%d seeds, %d steps, %.0f steps per second; %d seeds ended with nobody left who might lead, %d committed nothing",
		n, made, float64(made)/time.Since(begun).Seconds(), hopeless, idle)
}

// commit names what was run.
func commit(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func tellScript(t *testing.T) {
	c, list := readScript(t, *script)
	r := Replay(c, list, true)
	t.Logf("%s\n%s", strings.Join(r.Trace, "\n"), orOK(r.err()))
}

func (r Result) err() error {
	if r.Failure == nil {
		return nil
	}
	return r.Failure
}

func readScript(t *testing.T, file string) (Config, []Step) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, list, err := ParseScript(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c, list
}

// TestRegressions runs what once broke an invariant.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob("testdata/regressions/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no regressions found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			c, list := readScript(t, file)
			if r := Replay(c, list, false); r.Failure != nil {
				t.Errorf("%s; tell it with: go test ./internal/sim -run Simulation -v -sim.tell -sim.script %s", r.Failure, file)
			}
		})
	}
}

func TestScriptsAreReadAsTheyWereWritten(t *testing.T) {
	c := Draw(7)
	want := Steps(c, 50)
	text, err := Script(c, want, "what it shows\nin two lines")
	if err != nil {
		t.Fatal(err)
	}
	got, list, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Script(got, list, "what it shows\nin two lines"); err != nil || again != text {
		t.Errorf("read and written again it is\n%s\nwant\n%s (%v)", again, text, err)
	}
	for _, broken := range []string{"{", "{}\nno such move 1", "{}\nask", "{}\nask x"} {
		if _, _, err := ParseScript(broken); err == nil {
			t.Errorf("%q was read as a script", broken)
		}
	}
}

// The same seed is the same run, to the letter.
func TestRunsAreDeterministic(t *testing.T) {
	for s := uint64(1); s <= 20; s++ {
		c := Draw(s)
		a, b := Replay(c, Steps(c, 300), true), Replay(c, Steps(c, 300), true)
		for i := range min(len(a.Trace), len(b.Trace)) {
			if a.Trace[i] != b.Trace[i] {
				t.Fatalf("seed %d ran twice, and line %d was\n%s\nand\n%s\nafter\n%s", s, i, a.Trace[i], b.Trace[i], strings.Join(a.Trace[max(0, i-5):i], "\n"))
			}
		}
	}
}
