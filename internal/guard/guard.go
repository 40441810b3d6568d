// Package guard is the table of Tidemark's safety rules, each with what it protects
// from, and the switch by which tests take one away.
//
// A rule is worth what its absence would cost: the mutation gate (make mutants) takes
// every rule of the table away in turn, and a simulation, an exploration or a story has
// to show the harm. A rule that nothing misses is either not understood or not needed.
//
// At the place where a rule is enforced, the code asks [Off]. In a production build
// that is the constant false, and the compiler leaves nothing of it. Only with the
// build tag mutants can a rule be taken away, by [SwitchOff], for all of the process:
// mutated tests do not run in parallel.
//
// To add a rule: a constant and a row of the table here, the question at the place of
// the rule, and a row in the gate's table of what catches it.
package guard

// Guard is one safety rule.
type Guard int

// Rule says what a guard is good for.
type Rule struct {
	// Name is what the stories and the gate's report call it.
	Name string
	// Source is where the rule is from: a KIP, a KAFKA issue, or DESIGN.md's rule.
	Source string
	// Harm is what happens without it.
	Harm string
}

// String is the name of the rule.
func (g Guard) String() string { return Rules[g].Name }

// Parse finds a guard by its name.
func Parse(name string) (Guard, bool) {
	for g, r := range Rules {
		if r.Name == name {
			return Guard(g), true
		}
	}
	return 0, false
}
