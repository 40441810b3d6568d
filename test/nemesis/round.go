package nemesis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/test/network"
)

// Shape is a partition and what its operators set.
type Shape struct {
	Replicas, MinISR int
	// EveryBatch syncs every batch; else the default for the number of replicas and min ISR holds.
	EveryBatch bool
	// LeaseSeconds and LagSeconds are shorter than anybody would set them, so that a run sees many of each expire.
	LeaseSeconds, LagSeconds int
	SegmentBytes             int64
}

func (s Shape) String() string {
	return fmt.Sprintf("replicas=%d minISR=%d everyBatch=%v lease=%ds lag=%ds segment=%dMiB", s.Replicas, s.MinISR, s.EveryBatch, s.LeaseSeconds, s.LagSeconds, s.SegmentBytes>>20)
}

// Target says whom a fault is meant for.
type Target int8

// Targets. The names say what they hold at the moment of the fault.
const (
	Anybody Target = iota
	Leader
	Follower
)

func (t Target) String() string { return [...]string{"anybody", "leader", "follower"}[t] }

// Fault is one thing that goes wrong.
type Fault struct {
	Kind Kind
	// Pause is the time before it, Lasts that until it is healed; zero where there is nothing to heal.
	Pause, Lasts time.Duration
	Target       Target
	// Pick chooses among equals, modulo their number; Other a second one.
	Pick, Other int
	// Direction of what is cut.
	Direction network.Direction
	// Percent of lost packets, Kilobits per second of a slow link, and the Number of replicas or of min ISR.
	Percent, Kilobits, Number int
}

func (f Fault) String() string {
	s := fmt.Sprintf("%s target=%s", f.Kind, f.Target)
	if f.Lasts > 0 {
		s += fmt.Sprintf(" lasts=%s", f.Lasts)
	}
	switch f.Kind {
	case CutAPI, CutPeers, CutClients, CutPair, CutOperator:
		s += " " + f.Direction.String()
	case Lossy:
		s += fmt.Sprintf(" %s percent=%d", f.Direction, f.Percent)
	case Slow:
		s += fmt.Sprintf(" kilobits=%d", f.Kilobits)
	case Scale, MinISR:
		s += fmt.Sprintf(" to=%d", f.Number)
	}
	return s
}

// Round is the life of one partition. It is used by one goroutine.
type Round struct {
	Shape Shape
	// Kinds are those that may strike in this round.
	Kinds []Kind
	// Overlap is how many lasting faults there may be at once.
	Overlap int
	rng     *rand.Rand
	weights []int // of the rows of the table; 0 for what is not of this round
	total   int
}

// NewRound draws the round of that number in the run of that seed. Kinds that are given are the only ones.
func NewRound(seed, number uint64, only ...Kind) *Round {
	r := &Round{rng: rand.New(rand.NewPCG(seed, number))}
	r.Shape = r.shape()
	r.Overlap = 1 + r.rng.IntN(5)
	few := 8 + r.rng.IntN(len(table)-8+1)
	if len(only) > 0 {
		few = len(table)
	}
	order := r.rng.Perm(len(table))[:few]
	slices.Sort(order)
	r.weights = make([]int, len(table))
	for _, i := range order {
		if !r.possible(table[i].kind) {
			continue
		}
		if len(only) > 0 && !slices.Contains(only, table[i].kind) {
			continue
		}
		r.Kinds = append(r.Kinds, table[i].kind)
		r.weights[i] = table[i].weight
		r.total += table[i].weight
	}
	if r.total == 0 { // nothing that was drawn can happen to this shape
		r.Kinds, r.weights[0], r.total = []Kind{table[0].kind}, 1, 1
	}
	return r
}

func (r *Round) String() string {
	names := make([]string, len(r.Kinds))
	for i, k := range r.Kinds {
		names[i] = string(k)
	}
	return fmt.Sprintf("%s overlap=%d kinds=%s", r.Shape, r.Overlap, strings.Join(names, ","))
}

func (r *Round) shape() Shape {
	s := Shape{
		Replicas: []int{3, 3, 3, 3, 3, 3, 5, 5, 2, 1}[r.rng.IntN(10)], MinISR: 2,
		LeaseSeconds: 3 + r.rng.IntN(4), LagSeconds: 2 + r.rng.IntN(6),
		SegmentBytes: int64(1+r.rng.IntN(4)) << 20,
	}
	switch n := r.rng.IntN(10); {
	case s.Replicas == 1:
		s.MinISR = 1
	case n == 0:
		s.MinISR = 1
	case n < 5 && s.Replicas == 5:
		s.MinISR = 3
	}
	s.EveryBatch = r.rng.IntN(5) == 0
	return s
}

// possible tells whether a kind makes sense for the shape.
func (r *Round) possible(k Kind) bool {
	switch k {
	case CutPeers, CutPair:
		return r.Shape.Replicas > 1
	case Scale:
		return r.Shape.Replicas >= 3
	case MinISR:
		return r.Shape.Replicas > 1
	}
	return true
}

// Next draws the next fault.
func (r *Round) Next() Fault {
	row := table[r.draw()]
	f := Fault{
		Kind: row.kind, Pause: r.between(100, 2000), Target: []Target{Leader, Leader, Leader, Follower, Follower, Anybody}[r.rng.IntN(6)],
		Pick: r.rng.IntN(1 << 16), Other: r.rng.IntN(1 << 16), Percent: 5 + r.rng.IntN(40), Kilobits: 100 << r.rng.IntN(4),
	}
	// now and then one fault right upon the other
	if r.rng.IntN(4) == 0 {
		f.Pause = r.between(0, 50)
	}
	if row.lasts.to > 0 {
		f.Lasts = r.between(row.lasts.from, row.lasts.to) + time.Duration(row.lasts.beyondLease*r.Shape.LeaseSeconds)*time.Second
	}
	if row.oneWay {
		f.Direction = []network.Direction{network.Both, network.Inbound, network.Outbound}[r.rng.IntN(3)]
	}
	switch row.kind {
	case Scale:
		f.Number = []int{3, 5, 4}[r.rng.IntN(3)]
	case MinISR:
		f.Number = 1 + r.rng.IntN(min(3, r.Shape.Replicas))
	}
	return f
}

// draw picks a row of the table.
func (r *Round) draw() int {
	n := r.rng.IntN(r.total)
	for i, w := range r.weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0 // not reached: the weights sum up to the total
}

func (r *Round) between(from, to int) time.Duration {
	return time.Duration(from+r.rng.IntN(to-from+1)) * time.Millisecond
}
