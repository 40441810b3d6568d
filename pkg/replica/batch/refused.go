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

// judge looks at the records of one batch.
type judge struct {
	earliest, latest int64
	keys, times      bool // which of the two are looked at
	refused          *RecordsError
}

// judge begins with the bounds of the accepted times.
func (l Limits) judge() judge {
	j := judge{latest: math.MaxInt64, keys: l.RequireKeys, times: !l.AppendTime}
	if l.Now == 0 {
		return j
	}
	ahead := l.MaxAhead
	if ahead == 0 {
		ahead = DefaultMaxAhead
	}
	j.latest = l.Now + ahead.Milliseconds()
	if l.MaxBehind > 0 {
		j.earliest = max(0, l.Now-l.MaxBehind.Milliseconds())
	}
	return j
}

// look notes a record that may not be stored. Of one without a key that is all that is said,
// as in Kafka. A client that gives no time is not judged by it.
func (j *judge) look(place, timestamp int64, noKey bool) {
	switch {
	case noKey && j.keys:
		j.refuse(RefusedRecord{Place: int32(place), Timestamp: timestamp, NoKey: true})
	case j.times && timestamp != NoTimestamp && (timestamp < j.earliest || timestamp > j.latest):
		j.refuse(RefusedRecord{Place: int32(place), Timestamp: timestamp})
	}
}

func (j *judge) refuse(r RefusedRecord) {
	if j.refused == nil {
		j.refused = &RecordsError{Earliest: j.earliest, Latest: j.latest, cause: ErrInvalidRecord}
	}
	e := j.refused
	if !r.NoKey {
		e.cause = ErrInvalidTimestamp
	}
	e.Count++
	if len(e.Records) < maxRefusedRecords {
		e.Records = append(e.Records, r)
	}
}
