// Package volume keeps who a data directory is, and what that is worth.
//
// It owns everything on the volume but the log itself: the lock, the identity
// (meta.properties, in Kafka's form), the directories set aside, the newest record
// acted upon, and the three proofs of the directory promise: clean mark, witness and
// EveryBatch flag. It never reads or writes the log, and it never talks to a network.
//
// The promise: a directory id stands for "all that this replica ever acknowledged
// under this id is still here, unless a later leader had it truncated". A start keeps
// the id only with proof; [Judge] is the law, a pure function, and reads like it.
// Without proof [Volume.Prove] draws a new id, which the record's rules then treat as
// a new follower.
//
// The order of a start:
//
//	Open        lock; identity checked; what is not this partition's is set aside
//	LoadRecord  compare with the record read; a regression ends the start here
//	            (open the log, which recovers; MarkDamage before it cuts what was damaged)
//	Prove       judge, and draw a new id if the promise cannot be kept
//	            (sync the whole log and its directories)
//	Arm         clean mark of this start, then this start's witness
//	            (register)
//	PersistRecord  before acting on any record
//	BeginWriting   before the first change of the log: the mark goes, durably
//	Raise, Lower   with every append, and before every truncation a leader ordered
//	WriteCleanMark after the last flush of an orderly stop
//	Close
//
// What holds:
//
//   - One process at a time: Open takes a lock that ends with the process.
//   - A new directory id is durable before anything of the old one is replaced.
//   - Between Prove and BeginWriting a crash costs no proof: the mark that Arm writes
//     matches the record before and after the registration.
//   - [Volume.Raise] and [Volume.Lower] make no system call and allocate nothing, and
//     a kill in their middle leaves the state before or after.
//   - After [Volume.MarkError] no proof is left, whatever happens next.
//
// Raise, Lower, MarkError, BeginWriting and PersistRecord may be called from one
// goroutine each at a time; the witness has its own lock. File systems whose cache
// lives in another process (FUSE) can lose written data with that process while the
// witness survives: they need EveryBatch.
//
// File system, lock, witness memory and random ids are the machine's unless [Config]
// brings others, as simulations do.
//
// Start reading at judge.go, then volume.go.
package volume
