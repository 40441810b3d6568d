package batch

import (
	"fmt"
	"math"
)

// RecordsError says which records of a batch are why all of it is refused. It is
// ErrInvalidTimestamp if the time of any of them is out of range, else ErrInvalidRecord.
type RecordsError struct {
	// Count is how many there are, Records the first of them.
	Count   int
	Records []RefusedRecord
	// Earliest and Latest are the bounds of the accepted times, in milliseconds.
	Earliest, Latest int64

	cause error
}

// RefusedRecord is one record.
type RefusedRecord struct {
	// Place is its number in the batch, from 0.
	Place int32
	// Timestamp is its time, in milliseconds.
	Timestamp int64
	// NoKey says that it needs a key and has none. Otherwise its time is out of range.
	NoKey bool
}

// maxRefusedRecords bounds what a refusal lists.
const maxRefusedRecords = 100

// Error implements error.
func (e *RecordsError) Error() string {
	first := e.Records[0]
	if first.NoKey {
		return fmt.Sprintf("%v: %d records are refused, the first at place %d of the batch: it has no key", e.cause, e.Count, first.Place)
	}
	return fmt.Sprintf("%v: %d records are refused, the first at place %d of the batch: its time is %d ms, accepted are %d to %d",
		e.cause, e.Count, first.Place, first.Timestamp, e.Earliest, e.Latest)
}

// Unwrap implements errors.Unwrap.
func (e *RecordsError) Unwrap() error { return e.cause }

// records begins a check, with the bounds of the accepted times.
func (l Limits) records() RecordsError {
	e := RecordsError{Earliest: 0, Latest: math.MaxInt64, cause: ErrInvalidRecord}
	if l.Now == 0 {
		return e
	}
	ahead := l.MaxAhead
	if ahead == 0 {
		ahead = DefaultMaxAhead
	}
	e.Latest = l.Now + ahead.Milliseconds()
	if l.MaxBehind > 0 {
		e.Earliest = max(0, l.Now-l.MaxBehind.Milliseconds())
	}
	return e
}

// judge notes a record that may not be stored. Of one without a key that is all that is said,
// as in Kafka. A client that gives no time is not judged by it.
func (l Limits) judge(e *RecordsError, r RefusedRecord) {
	outside := !l.AppendTime && r.Timestamp != NoTimestamp && (r.Timestamp < e.Earliest || r.Timestamp > e.Latest)
	switch {
	case r.NoKey:
	case outside:
		e.cause = ErrInvalidTimestamp
	default:
		return
	}
	e.Count++
	if len(e.Records) < maxRefusedRecords {
		e.Records = append(e.Records, r)
	}
}
