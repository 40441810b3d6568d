// Package logtool is what administrators do with a log directory, Tidemark's or Kafka's,
// without a running replica: `replica log dump`, `verify` and `import`.
//
// It owns no format. Package log reads and judges the files, which it does without
// writing, locking or repairing; this package finds the directory, prints, and makes a
// Tidemark data directory of a log that was found sound.
//
// What holds:
//
//   - Dump and Verify work on a directory in use and on a damaged one, and hold no more
//     of it in memory than one batch.
//   - Import changes nothing of its source, and what it makes counts as a data directory
//     only once everything in it is durable.
//   - The kinds and fields of the JSON lines (entries.go, docs/log.md) are stable: fields
//     may be added.
//
// Start reading at find.go, then dump.go and import.go.
package logtool
