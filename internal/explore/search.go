package explore

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Explorer is one exploration. It is not safe for concurrent use.
type Explorer struct {
	Config
	watched   [invariants]bool
	tables    *interned
	outcomes  map[event]uint32
	known     []outcome
	elections map[election]elected

	firstChange, firstEpoch int // of the first world's record

	acked  uint8 // by the step under way
	flawed uint32
}

type election struct {
	record uint32
	winner int
}

type elected struct{ record, flaw uint32 }

// Result is what a search has found.
type Result struct {
	// States visited, and steps made between them.
	States, Steps int
	// Depth is the number of steps up to which every state was visited.
	Depth int
	// Exhausted says that there is no other state within the bounds.
	Exhausted bool
	Time      time.Duration
	// Replicas, Records and Events are the distinct states of one replica, the
	// distinct records, and the distinct events at one replica: how often the core ran.
	Replicas, Records, Events int
	// Broken is the first invariant found not to hold, if Trace is not empty.
	Broken Invariant
	// Violation says in words what does not hold; empty if nothing was found.
	Violation string
	// Trace is a shortest way to the violation, as a table.
	Trace string
	// Length of the trace in steps.
	Length int
}

// String gives the figures in a line.
func (r Result) String() string {
	end := "bound of states or time reached"
	if r.Exhausted {
		end = "exhausted"
	}
	if r.Violation != "" {
		end = fmt.Sprintf("%v broken after %d steps: %s", r.Broken, r.Length, r.Violation)
	}
	return fmt.Sprintf("%d states, %d steps, complete to depth %d, %.1fs, %.0f states/s, %d replica states, %d records, core ran %d times; %s", r.States, r.Steps,
		r.Depth, r.Time.Seconds(), float64(r.States)/max(r.Time.Seconds(), 1e-3), r.Replicas, r.Records, r.Events, end)
}

// Explore searches all worlds within the bounds, or up to the first that breaks an
// invariant. An error says that the bounds cannot be explored.
func Explore(c Config) (Result, error) {
	if err := c.validate(); err != nil {
		return Result{}, err
	}
	x := newExplorer(c)
	first, err := x.first()
	if err != nil {
		return Result{}, err
	}
	return x.search(first), nil
}

func newExplorer(c Config) *Explorer {
	x := &Explorer{Config: c, tables: newInterned(c.EveryBatch), outcomes: map[event]uint32{}, elections: map[election]elected{}}
	for i := range x.watched {
		x.watched[i] = len(c.Watch) == 0
	}
	for _, i := range c.Watch {
		x.watched[i] = true
	}
	return x
}

// first is the world in which every search begins: all replicas are registered and up
// and have seen the record; the first leads epoch 1.
func (x *Explorer) first() (world, error) {
	var w world
	var ids []epoch.ReplicaID
	for i := range x.Replicas {
		id := epoch.ReplicaID(i)
		ids = append(ids, id)
		w.replicas[i] = x.tables.replica(&replica{id: id, directory: 1, log: &memoryLog{}})
	}
	w.record = x.tables.record(0, epoch.New(epoch.UUID{9}, ids, x.MinISR, ""))
	x.firstChange, x.firstEpoch = 100, 100
	steps := make([]action, 0, 2*x.Replicas)
	for i := range x.Replicas {
		steps = append(steps, act(start, i, 0))
	}
	for i := range x.Replicas - 1 {
		steps = append(steps, act(see, i, 0))
	}
	for _, a := range steps {
		if ok, f := x.apply(&w, a); !ok || f != nil {
			return w, fmt.Errorf("the first world cannot be made: %v: possible %t, flaw %v", a, ok, f)
		}
	}
	rec := x.tables.records.things[w.record]
	x.firstChange, x.firstEpoch = int(rec.change), int(rec.epoch)
	w.older = [older]uint32{}
	return w, nil
}

// search goes breadth first: the worlds of one depth are kept whole, of all others
// only the hash and the way. A world's number is its place in the order of discovery.
func (x *Explorer) search(first world) Result {
	begin := time.Now()
	var r Result
	known, ways := newSeen(), &path{}
	known.add(first.hash())
	ways.add(link{})
	frontier, number := []world{first}, uint32(0)
	r.States = 1
	var next []world
	var acts []action
	for len(frontier) > 0 {
		next = next[:0]
		for k := range frontier {
			acts = x.possible(&frontier[k], acts[:0])
			for _, a := range acts {
				w := frontier[k]
				ok, f := x.apply(&w, a)
				if !ok {
					continue
				}
				r.Steps++
				if f != nil {
					x.found(&r, f, first, append(ways.to(number+uint32(k)), a))
					return x.finish(r, begin)
				}
				if known.add(w.hash()) {
					ways.add(link{number + uint32(k), a})
					next = append(next, w)
				}
			}
			if r.States = known.n; x.spent(r.States, k, begin) {
				return x.finish(r, begin)
			}
		}
		number += uint32(len(frontier))
		frontier, next = next, frontier
		r.Depth++
	}
	r.Exhausted = true
	return x.finish(r, begin)
}

func (x *Explorer) spent(states, k int, begin time.Time) bool {
	if x.MaxStates > 0 && states >= x.MaxStates {
		return true
	}
	return x.MaxTime > 0 && k%1024 == 0 && time.Since(begin) > x.MaxTime
}

func (x *Explorer) finish(r Result, begin time.Time) Result {
	r.Time = time.Since(begin)
	r.Replicas, r.Records, r.Events = len(x.tables.replicas.things)-1, len(x.tables.records.things)-1, len(x.known)
	return r
}

func (x *Explorer) found(r *Result, f *flaw, first world, way []action) {
	r.Broken, r.Violation, r.Length = f.breaks, f.what, len(way)
	r.Trace = x.trace(first, way)
}
