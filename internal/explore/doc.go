// Package explore visits every state that a small partition can get into: breadth
// first, over the replication core and the record rules that ship.
//
// A state of the world is the partition record, what each replica holds (its log,
// its epoch cache, its process with the whole state of [core.Core]), what is on its
// way (fetches, answers, writes of the record) and, as ghosts, the records that were
// committed. What may happen next is in action.go: records are produced, fetches
// delivered, lost, late, doubled or out of order, writes land late, without an answer, after
// their writer has died, record changes are seen late, the operator elects whom it
// likes, processes crash and come back, machines crash and lose any tail that was not
// synced, and timers run out at any moment. After every step the invariants of
// check.go are judged. The first violation found is one of the fewest steps.
//
// # How it can be fast
//
// A [core.Core] is a function of its state and an event. So every distinct state of
// one replica is stored once (intern.go) and known by a number, and what an event
// makes of it is computed once and remembered (step.go). A world is a row of such
// numbers, a hundred bytes to copy and to hash; the core itself runs only for pairs
// of state and event that are new. A search keeps 64-bit hashes of the worlds that it
// has seen and, for the way back, eight bytes per world. With 10^8 worlds the chance
// that two of them shared a hash, so that one was missed, is below one in 3000.
//
// # What is abstracted, and why that is sound
//
// Time: all limits but the lease are either not reached or passed by far, as
// [core.Core.AppendState] explains; timers run out whenever a step of the search says
// so, for one follower or for all. The lease never expires: it decides about serving
// (rule 8) and about the operator's elections, which are free here. Instants that
// merely age, without anything following from it, are not told apart (action.go).
//
// The record: its list of changes is cut to the last, progress and heartbeat times are
// dropped. The list serves to notice that the record went backwards, which a store of
// this package never does; the rest is for status.
//
// Not here: two processes of one id, switchover, reassignment, retention, unclean
// elections, the directory promise in its details (a machine crash without EveryBatch
// always ends it). The simulator and the random walks of package core look there.
//
// Start reading at world.go, then action.go and apply.go.
package explore
