//go:build mutants

package guard

// Switchable says whether this build can take rules away.
const Switchable = true

var off [count]bool

// Off reports that a rule was taken away.
func Off(g Guard) bool { return off[g] }

// SwitchOff takes a rule away until restore is called.
func SwitchOff(g Guard) (restore func()) {
	off[g] = true
	return func() { off[g] = false }
}
