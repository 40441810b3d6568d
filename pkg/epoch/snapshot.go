package epoch

import "errors"

// Snapshot is the record as it was read, with what a compare-and-swap needs.
type Snapshot struct {
	Record Record
	// Version is the store's token of this state, such as a resourceVersion. Two
	// snapshots are of the same write exactly if their versions are equal; versions
	// have no order.
	Version string
	// Object is the store's own form of the record. The store edits a copy of it, so
	// that what it does not understand survives.
	Object any
}

// Errors of a record store. Any other error of a write leaves it undecided: it may
// have been applied, and may still be, until a read shows that the version has
// moved.
var (
	// ErrConflict says that the object had moved on: nothing was written.
	ErrConflict = errors.New("the partition record has changed since it was read")
	// ErrNotFound says that there is no record.
	ErrNotFound = errors.New("the partition record does not exist")
	// ErrForeign says that the object is not this partition's record: it is never
	// adopted.
	ErrForeign = errors.New("the object is not this partition's record")
	// ErrRejected says that the store refused the call for good (validation,
	// permission): nothing was written or read.
	ErrRejected = errors.New("the partition record's store refused the call")
)
