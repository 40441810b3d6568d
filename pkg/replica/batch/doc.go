// Package batch reads, checks and builds Kafka record batches of format 2 (magic
// 2), the unit in which records travel, are stored and are replicated.
//
// It owns the layout of a batch and nothing else: no file, no network, no clock,
// no producer state. A [Batch] is a view over bytes that somebody else holds;
// nothing is copied, and the setters write into those bytes.
//
//   - [Next] splits a run of batches by their size fields. It is what log and
//     follower use on bytes that may end in the middle of a batch.
//   - [Validate] is the gate for what a client produces: after it the batch can be
//     stored as it is. What Kafka would have to encode anew is refused instead.
//   - [Records] decodes the records, compressed or not.
//   - [Compact] removes records from a batch, and [Empty] stands for offsets that hold none
//     any more.
//   - [Builder] makes batches, for tests and tools.
//
// Invariants: a broker changes base offset and leader epoch only; both lie outside
// of the checksum, so leader and followers store the same bytes. The exceptions are a
// wrong maximum timestamp in a client's header, which [Validate] repairs before anything
// is stored, and compaction, which every replica does for itself.
//
// Nothing here panics on foreign bytes, provided that a Batch comes from [Next],
// [Validate] or [Builder.Build]: those guarantee that the header is complete.
//
// Start reading at batch.go.
package batch
