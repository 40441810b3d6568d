// Package checksum says what a replica's log holds in a few bytes, so that logs can be
// compared without being copied.
//
// It owns the rule by which batches fall into blocks, and the form in which GET /v1/checksum
// answers. It reads no file and decides nothing about a log.
//
// What holds:
//
//   - A block is made of whole batches, byte for byte as they stand in the log, leader epoch
//     and offsets included. Two replicas with the same history have the same batches, wherever
//     their segments begin, and so equal blocks.
//   - A batch is in the block that its last offset lies in: blocks may be cut at any offset,
//     and every batch is in exactly one.
//   - That does not hold for compacted logs: replicas compact for themselves, and what one has
//     removed another may still have. Their blocks say nothing, and are refused.
//
// Start reading at block.go.
package checksum
