package prober

import "time"

// Gap is a time in which nothing was acknowledged: it lies between two
// acknowledgements that followed each other.
type Gap struct{ From, To time.Time }

// Length returns the duration of the gap; zero if there was none.
func (g Gap) Length() time.Duration { return g.To.Sub(g.From) }

// longest finds the longest gap that ends after the given moment. Acknowledgements that were under way at that moment
// still arrive, so the first one after it does not end the outage that began there.
func longest(acks []time.Time, after time.Time) Gap {
	var best Gap
	for i := 1; i < len(acks); i++ {
		g := Gap{acks[i-1], acks[i]}
		if g.To.After(after) && g.Length() > best.Length() {
			best = g
		}
	}
	return best
}
