package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Config is the shape of one run: a partition, and what befalls it. Everything is
// drawn from the seed, and may be set otherwise.
type Config struct {
	Seed         uint64
	Replicas     int // assigned at first, 1 to 5
	MinISR       int
	EveryBatch   bool
	SegmentBytes int64
	LagTime      time.Duration
	Lease        time.Duration
	// Faults that a run may have at all. Which of them it has, and how often, the
	// weights of its moves say.
	Faults Faults

	weights []int // of the moves, by index
}

// Faults are kinds of trouble that change what may be asked of a run.
type Faults struct {
	Disk      bool // I/O errors, failed syncs, full volumes
	Volumes   bool // volumes emptied, restored from an older image
	Machines  bool // power cuts
	Zombies   bool // two processes of one replica
	Record    bool // the record restored to an older state, or made anew
	Wire      bool // bytes damaged on the way
	Midway    bool // processes killed, or machines cut off, in the middle of what they do
	Toggle    bool // EveryBatch switched on and off
	Assign    bool // reassignment
	Retain    bool // retention and deleted records
	Unclean   bool // unclean elections on request
	Strangers bool // fetches of whom the record does not know
	Rot       bool // damage of what was synced, which the next start sees
}

func (c Config) String() string {
	return fmt.Sprintf("seed %d: %d replicas, min ISR %d, every batch %t, segments of %d bytes, lag time %s, lease %s, faults %+v",
		c.Seed, c.Replicas, c.MinISR, c.EveryBatch, c.SegmentBytes, c.LagTime, c.Lease, c.Faults)
}

// maxReplicas bounds the replica ids of a run, reassignments included.
const maxReplicas = 5

// Draw draws the shape of a run.
func Draw(seed uint64) Config { return draw(seed, nil) }

// draw lets lean change the shape before the frequencies of the moves are drawn, for who
// looks for a rare situation.
func draw(seed uint64, lean func(*Config)) Config {
	r := rand.New(rand.NewPCG(seed, 2))
	of := func(percent int) bool { return r.IntN(100) < percent }
	c := Config{
		Seed: seed, Replicas: 1 + r.IntN(5), MinISR: 1 + r.IntN(3), EveryBatch: of(40),
		SegmentBytes: []int64{160, 400, 1 << 20}[r.IntN(3)],
		LagTime:      []time.Duration{2 * time.Second, 10 * time.Second}[r.IntN(2)],
		Lease:        []time.Duration{3 * time.Second, 10 * time.Second}[r.IntN(2)],
		Faults: Faults{Disk: of(25), Volumes: of(20), Machines: of(60), Zombies: of(30), Record: of(15), Assign: of(35), Retain: of(30),
			Unclean: of(20), Wire: of(10), Midway: of(30), Toggle: of(15)},
	}
	late := rand.New(rand.NewPCG(seed, 6)) // kinds that came later draw for themselves, so that the others stay
	c.Faults.Strangers, c.Faults.Rot = late.IntN(100) < 15, late.IntN(100) < 10
	if c.Replicas > 3 && of(50) {
		c.Replicas = 3
	}
	if lean != nil {
		lean(&c)
	}
	c.weights = drawWeights(r, c.Faults)
	return c
}

// drawWeights gives a run a character of its own: calm, so that it gets far, or wild,
// with some moves frequent, some rare, and some that do not happen.
func drawWeights(r *rand.Rand, f Faults) []int {
	calm := r.IntN(100) < 45
	weights := make([]int, len(moves))
	for i, m := range moves {
		factor := []int{0, 1, 2, 2, 4, 8}[r.IntN(6)]
		switch {
		case m.needs != nil && !m.needs(f):
		case calm:
			weights[i] = m.calm * 2
		default:
			weights[i] = m.wild * factor
		}
	}
	weights[0]++ // there is always something to do
	return weights
}

// Step is one move of a run. What it does follows from its kind, its seed and the
// state before it: a run can be replayed from its steps, and steps can be left out.
type Step struct {
	Move uint8
	Seed uint64
}

// String is the form in which regression files keep a step.
func (s Step) String() string { return fmt.Sprintf("%s %d", moves[s.Move].name, s.Seed) }

// plan draws the steps of a run.
type plan struct {
	rng     *rand.Rand
	weights []int
	total   int
}

func newPlan(c Config) *plan {
	p := &plan{rng: rand.New(rand.NewPCG(c.Seed, 3)), weights: c.weights}
	for _, w := range c.weights {
		p.total += w
	}
	return p
}

func (p *plan) next() Step {
	n := p.rng.IntN(p.total)
	for i, w := range p.weights {
		if n -= w; n < 0 {
			return Step{Move: uint8(i), Seed: p.rng.Uint64()}
		}
	}
	return Step{}
}
