package explore

import (
	"fmt"
	"time"
)

// Fetching says what may become of fetches and their answers.
type Fetching int

// The ways of fetching, each with all that the ones before it can do.
const (
	// Prompt: an answer is applied at once, or lost.
	Prompt Fetching = iota
	// LateAnswers: an answer arrives at any later time; the next fetch replaces it.
	LateAnswers
	// Disordered: requests are late, too; two are on their way per follower and
	// overtake one another, and each may be delivered again.
	Disordered
)

func (f Fetching) String() string {
	return [...]string{"prompt", "late answers", "disordered"}[f]
}

// Limits of what a world can hold.
const (
	MaxReplicas = 3
	MaxRecords  = 4
	slots       = 2 // messages on their way, per follower
	maxOrphans  = 3 // writes whose writer waits no more
)

// Config bounds an exploration.
type Config struct {
	Replicas int
	MinISR   int
	// Records that are produced at most.
	Records int
	// Elections after the first, those by registration included.
	Elections int
	// Changes of the record after the start: elections, registrations, ISR changes.
	Changes int
	// Crashes of a process, which keep what was written.
	Crashes int
	// MachineCrashes keep any part of what was not synced, and the directory id only
	// with EveryBatch.
	MachineCrashes int
	EveryBatch     bool
	Fetching       Fetching
	// UndecidedWrites lets a writer of the record give up waiting for the answer,
	// while its write has landed, may yet land, or never does, and lets reads of the
	// record take their time.
	UndecidedWrites bool
	// SkipNothing lets followers see every version of the record, not only the newest.
	SkipNothing bool
	// StaleCheckpoint restarts processes with high watermark 0 instead of the last.
	StaleCheckpoint bool
	// OnlyElections leaves out ISR changes: no timer runs out.
	OnlyElections bool
	// Watch are the invariants judged; none means all.
	Watch []Invariant

	// MaxStates and MaxTime end a search early; 0 means never.
	MaxStates int
	MaxTime   time.Duration
}

// String tells the bounds in a line.
func (c Config) String() string {
	s := fmt.Sprintf("%d replicas, min ISR %d, %d records, %d elections, %d changes, %d crashes, %d machine crashes, %v", c.Replicas, c.MinISR, c.Records,
		c.Elections, c.Changes, c.Crashes, c.MachineCrashes, c.Fetching)
	for _, o := range []struct {
		on   bool
		name string
	}{{c.EveryBatch, "EveryBatch"}, {c.UndecidedWrites, "undecided writes"}, {c.SkipNothing, "every version seen"},
		{c.StaleCheckpoint, "checkpointed HW 0"}, {c.OnlyElections, "no timers"}} {
		if o.on {
			s += ", " + o.name
		}
	}
	return s
}

// validate says what is wrong with the bounds.
func (c Config) validate() error {
	switch {
	case c.Replicas < 1 || c.Replicas > MaxReplicas:
		return fmt.Errorf("%d replicas: an exploration takes 1 to %d", c.Replicas, MaxReplicas)
	case c.MinISR < 1 || c.MinISR > c.Replicas:
		return fmt.Errorf("min ISR %d: it must be between 1 and the number of replicas, %d", c.MinISR, c.Replicas)
	case c.Records < 0 || c.Records > MaxRecords:
		return fmt.Errorf("%d records: an exploration takes up to %d", c.Records, MaxRecords)
	case min(c.Elections, c.Changes, c.Crashes, c.MachineCrashes) < 0 || max(c.Elections, c.Changes, c.Crashes, c.MachineCrashes) > 60:
		return fmt.Errorf("bounds must be between 0 and 60: %v", c)
	}
	return nil
}
