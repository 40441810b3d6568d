// Package recordfile keeps the partition record in a file, for one process without
// Kubernetes (`replica standalone`).
//
// It owns <dir>/partition-record.json: one JSON object with a version that counts the
// writes, the state and the progress (package recordjson) and the heartbeat. It has
// the methods of package lease's Store, with the same errors, so that nothing above it
// knows the difference.
//
// What holds:
//
//   - One process: [Open] takes a lock that ends with the process.
//   - A write is durable before it returns, and after a crash at any moment the file
//     holds the record before it or after it.
//   - Get reads the file, and Update compares with what the file holds, never with
//     memory. After a failed sync what is durable is not known: that write, and every
//     one after it, is undecided until the process starts anew.
//
// Start reading at store.go.
package recordfile
