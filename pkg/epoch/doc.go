// Package epoch holds what decides who may commit: the partition record, the
// rules by which it changes, and the leader-epoch cache.
//
// It owns three things.
//
//   - [Record]: the one object, changed only by compare-and-swap, that names the
//     leader, its session, the in-sync replicas (ISR), the assignment and both
//     epochs. Adapters keep it in a Kubernetes Lease (package lease) or, for
//     `replica standalone`, in a file.
//   - The rules: [Elect], [Register], [ChangeISR], [Assign], [ElectUnclean], [Recover]
//     and their like. Each is a pure function from a record to the next one, or to a
//     refusal that says why. Everybody who writes the record (the leader, a starting
//     replica, the operator) computes the change here, and nowhere else.
//   - [Cache]: the map from leader epoch to the offset at which it began, by which
//     replicas find where two histories part (KIP-101, KIP-279).
//
// Invariants, whoever calls in whatever order, as long as every change is
// written by compare-and-swap on the record that it was computed from:
//
//   - the partition epoch grows by one with every change, the leader epoch by one
//     with every election, both by [RecoveryMargin] and more with a recovery, and
//     neither ever goes back;
//   - the leader is a member of the ISR, and its session is that of a registered
//     process; a leader epoch has one leader;
//   - a replica that registers with another directory id is struck from the ISR,
//     and from leadership, by that same change;
//   - the leader never takes the ISR below the effective min ISR.
//
// Two of the rules lose records that were acknowledged, or may, and are called only
// when a user asks: [ElectUnclean] (unclean.go) and [Recover] (recovery.go). The second
// is why histories, and not only counters, are compared: see [Record.Sees] and
// [Record.SetAside].
//
// The package imports the standard library and the table of guards only: no clock, no
// random source, no network. Start reading at record.go, then elect.go.
package epoch
