// Package history judges what a log did with the records that producers gave
// it. It knows nothing of clusters, clients or time.
//
// A test tells a [Log] of every record that a producer is about to send and of
// every answer that it gets, reads the topic afterwards, and asks
// [Log.Check]. These properties are checked:
//
//   - lost: a record that was acknowledged is not there at the end, or not at the offset that was acknowledged;
//   - doubled: a record is there twice, which an idempotent producer rules out;
//   - reordered: two records of one producer are in another order than they were sent in;
//   - foreign: a record is there that nobody sent, or with other bytes than were sent;
//   - unstable: a read during the test saw a record that the final read does not have at that offset, so somebody was
//     shown what was not committed;
//   - torn: offsets of one read do not follow each other without gaps (no compaction and no transactions here).
//
// A record that failed, or whose answer never came, may be there or not: its
// producer could not know. It may still not be there twice.
//
// The check costs memory and time in proportion to the number of records, so
// that it can follow a run of millions.
package history
