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
// same code runs in production, in scenarios and in simulation. One goroutine owns
// a Core.
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
//     histories part, never to its high watermark (KIP-101, KIP-279);
//   - nothing is done on a record before it is persisted, and a record is followed only
//     if its history holds the change acted upon last (rule 7, recovery.go).
//
// Start reading at core.go; leader.go and follower.go hold the two roles.
package core
