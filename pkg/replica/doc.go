// Package replica runs one replica of a partition: it binds the replication core
// (package core), the log (package log), the volume's identity and promise (package
// volume), the partition record's store, the Kafka server (package kafka) and the
// follower's fetch loop (package fetcher), and owns the order in which effects
// reach the disk and the network.
//
// One goroutine, the partition's loop, owns core and log ([node]). Connections,
// timers, the record's watch and the fetch loop send it messages, and read what it
// publishes: an immutable view of role, epoch, high watermark and log end. Records
// are read from the log by the connections themselves, outside of the loop.
//
// Order, which safety rests on:
//
//   - the record is persisted before anything is done because of it (rule 7);
//   - a new leader's epoch start is durable before its first append;
//   - the clean mark is gone before the log changes;
//   - after write(2) returned, the witness is raised, and only then does the new log
//     end count: for the high watermark on a leader, in the next fetch on a follower;
//   - before a truncation the witness is lowered;
//   - a failed write or fsync marks the witness and ends the process: leadership and
//     promise are gone before any restart (rule 10).
//
// The heartbeat is asked for by the same loop, so a write that hangs ends the
// leadership by itself.
//
// Start reading at replica.go (life of a process), then node.go (the loop's state).
package replica
