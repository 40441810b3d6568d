package history

import (
	"fmt"
	"maps"
	"slices"
)

// Read is what one consumer was shown.
type Read struct {
	// Name of the consumer, for faults.
	Name string
	// Records in the order in which they came, whatever their offsets.
	Records []Record
	// Upto is the offset below which it had the time to see everything; 0 if it was broken off at any moment. It may lie
	// before the end of the final read: what a client gave up long ago may still arrive.
	Upto int64
}

// Check is [Log.Judge] for reads that were broken off at any moment.
func (l *Log) Check(final []Record, during ...[]Record) Verdict {
	reads := make([]Read, len(during))
	for i, records := range during {
		reads[i] = Read{Name: fmt.Sprintf("read %d", i+1), Records: records}
	}
	return l.Judge(final, reads...)
}

// Judge compares the history with the final read of the whole log, from its
// start to its end after all producers had stopped. The other reads were made
// meanwhile, each from some offset on; they may have seen less.
func (l *Log) Judge(final []Record, reads ...Read) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := checker{log: l, at: make(map[string]int64, len(final)), verdict: Verdict{Read: len(final), Levels: map[Acks]Level{}}}
	c.polls("the final read", final)
	c.place(final)
	c.order(final)
	c.answers(final)
	for _, r := range reads {
		c.verdict.Shown += len(r.Records)
		c.polls(r.Name, r.Records)
		c.shown(r, final)
	}
	return c.verdict
}

type checker struct {
	log     *Log
	at      map[string]int64 // where the final read has a value first
	verdict Verdict
}

func (c *checker) fault(kind Kind, format string, args ...any) {
	c.verdict.Faults = append(c.verdict.Faults, Fault{kind, fmt.Sprintf(format, args...)})
}

// polls checks that a consumer's offsets follow each other.
func (c *checker) polls(who string, read []Record) {
	for i := 1; i < len(read); i++ {
		before, now := read[i-1].Offset, read[i].Offset
		switch {
		case now <= before:
			c.fault(NonmonotonicPoll, "%s has offset %d after %d", who, now, before)
		case now > before+1:
			c.fault(SkippedPoll, "%s has offset %d after %d", who, now, before)
		}
	}
}

// place finds every value's offset, and the values that should not be there.
func (c *checker) place(final []Record) {
	for _, r := range final {
		name, seq, ok := c.log.parse(r.Value)
		if !ok {
			c.fault(Phantom, "nobody sent %q at offset %d", r.Value, r.Offset)
			continue
		}
		p := c.log.producers[name]
		if first, twice := c.at[r.Value]; twice {
			if p.promise.Plain {
				c.verdict.Repeated++
			} else {
				c.fault(Duplicate, "%s is at offsets %d and %d", r.Value, first, r.Offset)
			}
			continue
		}
		c.at[r.Value] = r.Offset
		switch p.outcomes[seq].answer {
		case acked:
		case rejected:
			c.fault(AbortedRead, "%s is at offset %d, and its producer was told that it was not appended", r.Value, r.Offset)
		default:
			c.verdict.Unasked++
		}
	}
}

// order checks that each idempotent producer's records stand in the order of their numbers.
func (c *checker) order(final []Record) {
	last := map[string]int{}
	for _, r := range final {
		name, seq, ok := c.log.parse(r.Value)
		if !ok || c.at[r.Value] != r.Offset || c.log.producers[name].promise.Plain {
			continue // reported already, or no fault
		}
		if before, seen := last[name]; seen && seq < before {
			c.fault(NonmonotonicSend, "%s stands before %s at offset %d", valueOf(name, before), r.Value, r.Offset)
			continue
		}
		last[name] = seq
	}
}

// answers counts them, and checks that every record acknowledged with acks=all is where its producer was told.
func (c *checker) answers(final []Record) {
	for _, name := range slices.Sorted(maps.Keys(c.log.producers)) {
		p := c.log.producers[name]
		n := c.verdict.Levels[p.promise.Acks]
		for seq, o := range p.outcomes {
			n.Sent++
			switch o.answer {
			case acked:
				n.Acked++
				n.Lost += c.acknowledged(valueOf(name, seq), o.offset, p.promise, final)
			case failed:
				n.Failed++
			case rejected:
				n.Rejected++
			}
		}
		c.verdict.Levels[p.promise.Acks] = n
	}
}

// acknowledged returns 1 if the record is lost.
func (c *checker) acknowledged(value string, offset int64, p Promise, final []Record) int {
	first, there := c.at[value]
	if p.Acks != AcksAll {
		if there {
			return 0
		}
		return 1
	}
	if !there {
		c.fault(LostWrite, "%s was acknowledged at offset %d and is not there", value, offset)
		return 1
	}
	if got, known := recordAt(final, offset); first != offset && (!known || got != value) {
		c.fault(InconsistentOffset, "%s was acknowledged at offset %d and is at %d", value, offset, first)
	}
	return 0
}

// recordAt is the value that a read without gaps has at an offset.
func recordAt(read []Record, offset int64) (value string, ok bool) {
	if len(read) == 0 || offset < read[0].Offset || offset-read[0].Offset >= int64(len(read)) {
		return "", false
	}
	return read[offset-read[0].Offset].Value, true
}

// shown checks that what a consumer was shown is in the final read, in the same place, and whether it saw the end.
func (c *checker) shown(read Read, final []Record) {
	if len(final) == 0 {
		if len(read.Records) > 0 {
			c.fault(VanishedRead, "%s saw %d records, and the log is empty", read.Name, len(read.Records))
		}
		return
	}
	next := final[0].Offset
	for _, r := range read.Records {
		next = max(next, r.Offset+1)
		if r.Offset < final[0].Offset {
			continue // below the log's start by now
		}
		if now, there := recordAt(final, r.Offset); !there {
			c.fault(VanishedRead, "%s saw %q at offset %d, beyond the end", read.Name, r.Value, r.Offset)
		} else if now != r.Value {
			c.fault(InconsistentOffset, "%s saw %q at offset %d, where %q is now", read.Name, r.Value, r.Offset, now)
		}
	}
	if next < read.Upto {
		c.fault(Unseen, "%s saw the records below offset %d only, and had the time to see those below %d", read.Name, next, read.Upto)
	}
}
