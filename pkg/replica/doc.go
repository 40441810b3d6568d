// Package replica runs one replica of a partition: it drives the process that package
// node makes of replication core, log, volume and record, with goroutines, clocks, the
// partition record's store, the Kafka server (package kafka) and the follower's fetch
// loop (package fetcher).
//
// The order in which effects reach disk and network is the node's; its package says
// what safety rests on. Here one goroutine, the partition's loop, owns the node
// (mailbox.run). Connections, timers, the record's watch and the fetch loop send it
// messages, and read what it publishes: an immutable view of role, epoch, high
// watermark and log end. Records are read from the log by the connections themselves,
// outside of the loop.
//
// The heartbeat is asked for by the same loop, so a write that hangs ends the
// leadership by itself.
//
// Start reading at replica.go (life of a process), then loop.go.
package replica
