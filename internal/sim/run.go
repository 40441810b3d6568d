package sim

import (
	"fmt"
	"strings"
)

// Result is what became of a run.
type Result struct {
	Config Config
	Steps  []Step
	// Made is how many steps were made.
	Made int
	// Failure is nil if every invariant held.
	Failure *Failure
	// Committed is how many records were, Unclean that the run ended with nobody left
	// who might lead.
	Committed int
	Hopeless  bool
	Trace     []string
}

// Run makes a run of at most steps steps, heals and judges.
func Run(c Config, steps int) Result {
	w := newWorld(c, false)
	p := newPlan(c)
	for w.failure == nil && w.steps < steps && !w.hopeless() {
		w.do(p.next())
	}
	return w.end()
}

// Replay makes the steps given.
func Replay(c Config, steps []Step, tracing bool) Result {
	w := newWorld(c, tracing)
	for _, s := range steps {
		if w.failure != nil || w.hopeless() {
			break
		}
		w.do(s)
	}
	r := w.end()
	r.Steps = steps
	return r
}

func (w *world) end() Result {
	made := w.steps
	hopeless := w.hopeless()
	if w.failure == nil {
		w.heal()
	}
	return Result{Config: w.cfg, Made: made, Failure: w.failure, Committed: len(w.oracle.committed), Hopeless: hopeless, Trace: w.trace}
}

// Steps draws the first n steps of a run.
func Steps(c Config, n int) []Step {
	p := newPlan(c)
	out := make([]Step, n)
	for i := range out {
		out[i] = p.next()
	}
	return out
}

// Shrink looks for a shorter run that breaks the same invariant, by leaving out steps:
// first large pieces, then ever smaller ones, until no single step can be spared.
// It tries at most budget runs.
func Shrink(c Config, steps []Step, f Failure, budget int) []Step {
	fails := func(s []Step) bool {
		r := Replay(c, s, false)
		return r.Failure != nil && r.Failure.Invariant == f.Invariant
	}
	for size := len(steps) / 2; size >= 1 && budget > 0; {
		shorter := false
		for at := 0; at < len(steps) && budget > 0; {
			tried := append(append([]Step{}, steps[:at]...), steps[min(at+size, len(steps)):]...)
			budget--
			if fails(tried) {
				steps, shorter = tried, true
			} else {
				at += size
			}
		}
		if size > 1 || !shorter {
			size /= 2
		}
	}
	return steps
}

// Explain runs a failed seed again, shrinks it, and tells the story of the shortest run
// found, and its Script.
func Explain(c Config, made int, f Failure, budget int) (story, script string) {
	steps := Shrink(c, Steps(c, made), f, budget)
	r := Replay(c, steps, true)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%d of %d steps are needed:\n", r.Failure, c, len(steps), made)
	for _, line := range r.Trace {
		b.WriteString(line + "\n")
	}
	script, err := Script(c, steps, fmt.Sprintf("%s\nFound as seed %d.", r.Failure, c.Seed))
	if err != nil {
		script = err.Error()
	}
	return b.String(), script
}
