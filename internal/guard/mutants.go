//go:build mutants

package guard

import (
	"fmt"
	"os"
)

// Switchable says whether this build can take rules away.
const Switchable = true

// Without names an environment variable: the rule that it holds is taken away for the
// whole life of the process, so that any test can be asked whether it misses it.
const Without = "TIDEMARK_WITHOUT_RULE"

var off [count]bool

func init() {
	name := os.Getenv(Without)
	if name == "" {
		return
	}
	g, ok := Parse(name)
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: there is no rule %q\n", Without, name)
		os.Exit(2)
	}
	off[g] = true
}

// Off reports that a rule was taken away.
func Off(g Guard) bool { return off[g] }

// SwitchOff takes a rule away until restore is called.
func SwitchOff(g Guard) (restore func()) {
	off[g] = true
	return func() { off[g] = false }
}
