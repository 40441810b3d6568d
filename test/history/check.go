package history

import (
	"fmt"
	"sort"
	"strings"
)

// Fault is one thing that must not have happened.
type Fault struct {
	// Kind is lost, doubled, reordered, foreign, unstable or torn.
	Kind string
	// Text names the records and offsets.
	Text string
}

func (f Fault) String() string { return f.Kind + ": " + f.Text }

// Verdict is the outcome of a check.
type Verdict struct {
	// Faults holds what went wrong, empty if nothing did.
	Faults []Fault
	// Sent, Acked and Failed count the records by what their producers were told.
	Sent, Acked, Failed int
	// Read is the number of records in the final read; Unasked of them were not
	// acknowledged, and so might as well be absent.
	Read, Unasked int
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
	return fmt.Sprintf("sent %d, acknowledged %d, failed %d; read %d, of which %d were never acknowledged; %d faults",
		v.Sent, v.Acked, v.Failed, v.Read, v.Unasked, len(v.Faults))
}

// Check compares the history with the final read of the whole log, from its
// start to its end after all producers had stopped. The other reads were made
// meanwhile, each from some offset on; they may have seen less.
func (l *Log) Check(final []Record, during ...[]Record) Verdict {
	var v Verdict
	v.Sent, v.Acked, v.Failed = l.Counts()
	v.Read = len(final)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := checker{log: l, at: make(map[string]int64, len(final)), verdict: &v}
	c.contiguous("the final read", final)
	c.place(final)
	c.order(final)
	c.acknowledged()
	for i, read := range during {
		c.stable(fmt.Sprintf("read %d", i+1), read, final)
	}
	return v
}

type checker struct {
	log     *Log
	at      map[string]int64 // where the final read has a value
	verdict *Verdict
}

func (c *checker) fault(kind, format string, args ...any) {
	c.verdict.Faults = append(c.verdict.Faults, Fault{kind, fmt.Sprintf(format, args...)})
}

func (c *checker) contiguous(what string, read []Record) {
	for i := 1; i < len(read); i++ {
		if read[i].Offset != read[i-1].Offset+1 {
			c.fault("torn", "%s has offset %d after %d", what, read[i].Offset, read[i-1].Offset)
		}
	}
}

// place finds every value's offset, and the values that should not be there.
func (c *checker) place(final []Record) {
	for _, r := range final {
		name, seq, ok := c.log.parse(r.Value)
		if !ok {
			c.fault("foreign", "nobody sent %q at offset %d", r.Value, r.Offset)
			continue
		}
		if !c.log.producers[name].outcomes[seq].acked {
			c.verdict.Unasked++
		}
		if first, twice := c.at[r.Value]; twice {
			c.fault("doubled", "%s is at offsets %d and %d", r.Value, first, r.Offset)
			continue
		}
		c.at[r.Value] = r.Offset
	}
}

// order checks that each producer's records stand in the order of their numbers.
func (c *checker) order(final []Record) {
	last := map[string]int{}
	for _, r := range final {
		name, seq, ok := c.log.parse(r.Value)
		if !ok || c.at[r.Value] != r.Offset {
			continue // reported already
		}
		if before, seen := last[name]; seen && seq < before {
			c.fault("reordered", "%s/%d stands before %s at offset %d", name, before, r.Value, r.Offset)
			continue
		}
		last[name] = seq
	}
}

// acknowledged checks that every acknowledged record is where its producer was told.
func (c *checker) acknowledged() {
	names := make([]string, 0, len(c.log.producers))
	for name := range c.log.producers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for seq, o := range c.log.producers[name].outcomes {
			if !o.acked {
				continue
			}
			value := fmt.Sprintf("%s/%d", name, seq)
			switch offset, there := c.at[value]; {
			case !there:
				c.fault("lost", "%s was acknowledged at offset %d and is not there", value, o.offset)
			case offset != o.offset:
				c.fault("lost", "%s was acknowledged at offset %d and is at %d", value, o.offset, offset)
			}
		}
	}
}

// stable checks that what a consumer was shown is in the final read, in the same place.
func (c *checker) stable(what string, read, final []Record) {
	c.contiguous(what, read)
	if len(final) == 0 && len(read) > 0 {
		c.fault("unstable", "%s saw %d records, and the log is empty", what, len(read))
		return
	}
	for _, r := range read {
		i := r.Offset - final[0].Offset
		if i < 0 {
			continue // below the log's start by now
		}
		if i >= int64(len(final)) {
			c.fault("unstable", "%s saw %q at offset %d, beyond the end", what, r.Value, r.Offset)
		} else if final[i] != r {
			c.fault("unstable", "%s saw %q at offset %d, where %q is now", what, r.Value, r.Offset, final[i].Value)
		}
	}
}
