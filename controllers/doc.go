// Package controllers is Tidemark's operator: it brings what the cluster holds in
// line with each ReplicatedPartition, and holds the elections that need an
// onlooker.
//
// One reconcile is four steps, each in its own file:
//
//   - observe.go reads, mostly from caches, into an [Observation];
//   - plan*.go, pure, turns it into a [Plan]: named actions, each with its reason;
//   - apply*.go carries them out, elections first;
//   - status*.go, pure but for the one write at the end, projects the record.
//
// What it owns: the pods, volume claims, two Services, disruption budget,
// ServiceAccount, Role and RoleBinding of a partition, and the making of the
// partition's record. What it never does: touch an object that is not its own; make
// a record a second time; decide by its own probes; delete a volume that holds data
// of a replica which nobody asked to remove; take part in replication, which goes
// on without it.
//
// Invariants:
//
//   - Caches are hints. A change of the record is computed by the rules of package
//     epoch from an uncached read, and written by compare-and-swap on that read; a
//     pod or volume is deleted with the UID that was judged, after the policy chain
//     of policy.go has allowed it on the record as just read.
//   - Order for a new partition: Lease, then status, then the first pod. A missing
//     Lease is made only if no status ever showed one.
//   - What may lose acknowledged records is done only on a user's request that names the
//     epoch it applies to (plan_recovery.go, plan_unclean.go).
//   - A converged partition causes no write at all.
//   - Time is only ever a reason to look again. A lease expires on this process's
//     own monotonic clock, and only time in which the API could be read counts.
//
// Start reading at reconciler.go.
package controllers
