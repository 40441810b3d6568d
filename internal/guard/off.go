//go:build !mutants

package guard

// Switchable says whether this build can take rules away.
const Switchable = false

// Off reports that a rule was taken away: never, in this build.
func Off(Guard) bool { return false }

// SwitchOff takes a rule away until restore is called. This build cannot: it panics.
func SwitchOff(Guard) (restore func()) {
	panic("guard: rules can be taken away only in a build with the tag mutants")
}
