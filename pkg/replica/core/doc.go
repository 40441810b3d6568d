// Package core is the replication protocol of one partition, seen from one
// replica: Kafka's high watermark, log end offset and leader epochs (KIP-101,
// KIP-279, KIP-320, KIP-497, KIP-841, KIP-903, KIP-966) over the partition record
// of package epoch.
//
// A [Core] is told what happened (a record was seen, batches were appended, a fetch
// came in, a write of the record ended, time passed) and says what is to be done
// as [Effect] values, to be taken with [Core.Take] after every call and carried out
// in order, each before the next; what must be durable before what is said on each
// effect. There is no goroutine, clock, network, disk or random source inside: the
// same code runs in production (package node), in stories, in the simulator and in the
// explorer (internal/story, internal/sim, internal/explore). One goroutine owns a Core.
//
// Time is a [time.Duration] on a monotonic clock of the caller's. Safety never
// depends on it (rule 1); it only decides when to ask for changes.
//
// Invariants:
//
//   - log start ≤ high watermark ≤ log end;
//   - a leader's high watermark never falls, and moves only when every member of
//     the maximal ISR is known, by fetches of its present session in this very
//     leader epoch, to hold the records (KIP-497, KIP-903);
//   - the maximal ISR is the union of the record's ISR and of every change that may
//     still be written (rule 4);
//   - a follower truncates only where a leader of its present epoch shows that the
//     histories part, never to its high watermark (KIP-101, KIP-279); or where a
//     recovery has set aside the history that it followed (rule 7);
//   - nothing is done on a record before it is persisted, and a record is followed only
//     if its history holds the change acted upon last (rule 7).
//
// "Rule n" is that of docs/rules.md, also cited as DESIGN.md rule n. The place of each rule asks guard.Off, which is false
// in what ships: internal/guard/table.go lists the rules with the harm that each
// prevents, and "make mutants" shows what misses each.
//
// Where to read, in this order:
//
//	core.go       a record comes in: which one counts, who leads, who follows
//	leader.go     taking over; what is known of the others; high watermark; who may join
//	fetch.go      a leader answers and counts a follower's fetch
//	follower.go   a follower asks, appends, truncates
//	write.go      reads and writes of the record: one at a time, undecided, settled
//	recovery.go   rule 7: a record that went backwards, and a history that was set aside
//	produce.go    acks, and rule 8: who may serve without the API server
//	stop.go       an orderly end; isolation.go: a leader that nobody fetches from
//	succession.go a follower takes the place of a leader whose process has ended
//	progress.go   what a heartbeat tells
//	effect.go, errors.go   what goes out;  state.go: for explorers
//
// The rules by which a record changes (elections, ISR changes, assignment, recovery)
// are in package epoch. testdata holds the protocol's known failures as stories.
package core
