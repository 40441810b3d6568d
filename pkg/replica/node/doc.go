// Package node is a replica process without its goroutines: it binds the replication
// core (package core), the log (package log) and the volume's identity and promise
// (package volume), and owns the order in which effects reach disk, record and
// network. Everything in it is synchronous, and clock, random ids, file system and
// network are brought along, so that production and simulation run the same code: a
// goroutine, a timer or a socket is the owner's business.
//
// The life of a process, with the owner's part in brackets:
//
//	Open     lock the volume, recover the log
//	         [read the record]
//	Compare  refuse a record older than the volume has acted upon  [swap in the mark]
//	         [look at the own pod]
//	Begin    judge the promise of the directory id, sync, make own proofs
//	         [swap the record; on any failure begin again by reading it]
//	Serve    a Node, by the record that the swap returned
//	Start    act on that record
//	         [tell it what happens; Tick; until Err, or a wish to stop]
//	Stop     hand over  [go on until Released, or long enough]
//	End      answer who still waits
//	Finish   flush, checkpoint, close, clean mark;  after an Err: Close
//
// Between any two of these steps, and at any operation of the file system within one,
// the process may be killed: it is then dropped as it is, and the next Open starts from
// what disk and witness hold.
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
//     promise are gone before any restart (rule 10);
//   - the view is published before anything is answered on the strength of it.
//
// Start reading at starting.go, then node.go and effects.go.
package node
