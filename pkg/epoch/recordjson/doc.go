// Package recordjson is the text form of the partition record.
//
// It owns one format, version 1: a JSON object that holds every field of
// [epoch.Record] that is part of the record's identity. The heartbeat is not part
// of it and the progress is a second, separate object, since the leader writes
// both without a change of state. The same text is kept in a Lease's annotation
// (package lease), in a file (package recordfile) and on the replica's own volume
// (package volume).
//
// What holds:
//
//   - [Unmarshal] of [Marshal] gives the same record, and [Marshal] refuses a record
//     that [Unmarshal] would refuse.
//   - Nothing is guessed. A text of another version, or one whose parts contradict
//     each other, is an error and not a record.
//   - Fields of version 1 that this program does not know (a newer program wrote
//     them without a change of version) survive, at the top and in each replica.
//
// Keys are matched exactly: encoding/json alone would also take "LEADER" for
// "leader", and let one text mean two things.
package recordjson
