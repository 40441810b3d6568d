package history

import (
	"fmt"
	"strings"
)

// Kind is a class of faults. The package's documentation says what each means.
type Kind string

// The classes of faults.
const (
	LostWrite          Kind = "lost-write"
	Duplicate          Kind = "duplicate"
	NonmonotonicSend   Kind = "nonmonotonic-send"
	InconsistentOffset Kind = "inconsistent-offset"
	VanishedRead       Kind = "vanished-read"
	Phantom            Kind = "phantom"
	AbortedRead        Kind = "aborted-read"
	NonmonotonicPoll   Kind = "nonmonotonic-poll"
	SkippedPoll        Kind = "skipped-poll"
	Unseen             Kind = "unseen"
)

// Fault is one thing that must not have happened.
type Fault struct {
	Kind Kind
	// Text names the records and offsets.
	Text string
}

func (f Fault) String() string { return string(f.Kind) + ": " + f.Text }

// Level counts the records of the producers that wrote with the same acks.
type Level struct {
	// Sent of them; Acked, Failed (given up, so that they may be there or not) and Rejected (certainly not there) were
	// the answers. The rest has none.
	Sent, Acked, Failed, Rejected int
	// Lost were acknowledged and are not in the log: a fault with acks=all, allowed below.
	Lost int
}

// Verdict is the outcome of a check.
type Verdict struct {
	// Faults holds what went wrong, empty if nothing did.
	Faults []Fault
	// Levels counts records by what their producers asked for.
	Levels map[Acks]Level
	// Read is the number of records in the final read; Unasked of them were not
	// acknowledged, and so might as well be absent. Repeated is how many more copies there are of records of producers
	// that are not idempotent.
	Read, Unasked, Repeated int
	// Shown is the number of records that consumers were shown while the producers were at work.
	Shown int
}

// Err returns an error that names the first faults, or nil if there are none.
func (v Verdict) Err() error {
	if len(v.Faults) == 0 {
		return nil
	}
	const most = 10
	var lines []string
	for i, f := range v.Faults {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(v.Faults)-most))
			break
		}
		lines = append(lines, f.String())
	}
	return fmt.Errorf("%s\n%s", v, strings.Join(lines, "\n"))
}

func (v Verdict) String() string {
	var b strings.Builder
	for _, a := range []Acks{AcksAll, AcksLeader, AcksNone} {
		if n := v.Levels[a]; n.Sent > 0 {
			fmt.Fprintf(&b, "acks=%s: sent %d, acknowledged %d, failed %d, refused %d, acknowledged and lost %d; ", a, n.Sent, n.Acked, n.Failed, n.Rejected, n.Lost)
		}
	}
	fmt.Fprintf(&b, "final read %d, of which %d were never acknowledged and %d are repeats; shown to consumers %d; %d faults", v.Read, v.Unasked, v.Repeated, v.Shown, len(v.Faults))
	return b.String()
}
