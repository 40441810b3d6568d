// Package history judges what a log did with the records that producers gave
// it. It knows nothing of clusters, clients or time.
//
// A test tells a [Log] of every record that a producer is about to send and of
// every answer that it gets, reads the topic afterwards, and asks [Log.Check] or,
// with more to say about the reads, [Log.Judge]. Every [Fault] is of one class;
// most are Jepsen's, of its workload for Kafka:
//
//   - lost-write: a record that was acknowledged with acks=all is not there at the end;
//   - duplicate: a record is there twice, which an idempotent producer rules out;
//   - nonmonotonic-send: two records of one idempotent producer are in another order than they were sent in;
//   - inconsistent-offset: an offset had two values: that of an acknowledgement or of a read, and another one in the final read;
//   - vanished-read: a read during the test saw a record beyond the end of the final read, so somebody was shown what was not committed;
//   - phantom: a record is there that nobody sent, or with other bytes than were sent;
//   - aborted-read: a record is there whose producer was told that it was never appended;
//   - nonmonotonic-poll: one consumer's offsets went back, or an offset came twice;
//   - skipped-poll: one consumer's offsets left some out (no compaction and no transactions here);
//   - unseen: a consumer never saw the last records, although it had the time.
//
// A record that failed, or whose answer never came, may be there or not: its
// producer could not know. It may still not be there twice.
//
// What a producer may expect depends on its [Promise]. Acknowledgements of acks=1
// and 0 are promises of less: such records may be lost, and are counted apart.
// What a consumer was shown must stay, whoever wrote it.
//
// The check costs memory and time in proportion to the number of records, so
// that it can follow a run of millions.
package history
