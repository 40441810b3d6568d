// Package log is one partition's log on disk, in Kafka's format byte for byte.
//
// It owns a directory <dataDir>/<topic>-0 with segments (.log, .index,
// .timeindex), leader-epoch-checkpoint, partition.metadata and producer snapshots,
// and in <dataDir> this partition's lines of replication-offset-checkpoint,
// recovery-point-offset-checkpoint, log-start-offset-checkpoint and
// cleaner-offset-checkpoint. It never
// decides: not where to truncate, not what is committed, not whether the directory
// still keeps its promise. It does what the replication core orders, and [Open]
// tells what it found.
//
// # Who may call
//
// One goroutine, the appender, calls what changes the log: AssignEpoch, Append,
// AppendFetched, TruncateTo, TruncateFullyAndStartAt, SetStartOffset,
// ApplyRetention, PlanCompaction, SwapCompacted, Producers and Close. Everything else may be called from any
// goroutine at any time: reads, lookups, Flush, Checkpoint and the accessors. No
// lock is held over I/O that a reader or an append would wait for; only what itself
// writes a checkpoint waits for one being written.
//
// # Invariants
//
//   - Offsets have no gaps: a batch begins where the one before it ends, across
//     segments too. Where compaction has taken records out, the batch stays, or one
//     without records stands for a run of batches (compact.go).
//   - The leader-epoch checkpoint is durable before the first byte of an epoch is
//     written: it may be ahead of the log, never behind.
//   - Reads end at the log's end as of some moment during the call, and never
//     contain bytes that a truncation removed: what was read is thrown away if a
//     truncation, or a swap of compacted segments, ran meanwhile (KAFKA-18723).
//   - What this process did not write itself, into the segment that it still writes, is
//     read out only with the right checksum.
//   - The recovery point on disk is at or below what was synced. Whatever could
//     make it wrong (a truncation) lowers it first.
//   - A failed sync, or a failed write other than for want of space, ends the log:
//     every later change returns ErrFailed (KAFKA-10778, "fsyncgate"). A full disk
//     does not: the partial batch is cut off and ErrNoSpace returned.
//
// # Differences from Kafka, all on purpose
//
//   - A cache entry that begins exactly at the log's end survives a restart: it is
//     the epoch of a leader that has not written yet (KAFKA-7415). Only entries
//     behind the end are dropped.
//   - A broken leader-epoch checkpoint is rebuilt from the batches instead of
//     blocking the start.
//   - After a start, not only the last batch of every producer is known but its
//     last five, as far as they lie in the newest part of the log.
//   - The index of the segment being written is kept in memory and reaches its
//     file when the segment is rolled or the log closed.
//
// Start reading at log.go, then append.go, open.go and recover.go.
package log
