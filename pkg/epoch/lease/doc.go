// Package lease keeps the partition record in a Kubernetes Lease.
//
// It owns the mapping between [epoch.Record] and the object ([Encode], [Decode])
// and the four ways to reach it ([Store]): quorum read, create, compare-and-swap,
// watch. It decides nothing about the record, and it holds no copy of it.
//
// Where things are in the object:
//
//	spec.holderIdentity               the leader, "<lease name>-<replica id>", or empty
//	spec.leaseTransitions             the leader epoch
//	spec.renewTime, acquireTime,
//	spec.leaseDurationSeconds         the heartbeat
//	tidemark.io/partition-epoch       the partition epoch, decimal
//	tidemark.io/state                 everything else (package recordjson), and the three above again
//	tidemark.io/progress              the leader's progress (package recordjson)
//
// What is told twice is told twice on purpose: the spec and the epoch annotation
// are what kubectl prints and what an admission policy compares, the state is what
// Tidemark reads, and a difference between them means that somebody edited the
// object by hand. Such an object is an error, never a record.
//
// What holds:
//
//   - A Lease without our state, or with another topic id, is never written:
//     [epoch.ErrForeign].
//   - An update edits a copy of the object that was read, so labels, finalizers,
//     owners and foreign annotations survive. It carries resourceVersion and uid of
//     that object: an API server creates a missing Lease from a PUT, and only the uid
//     keeps a deleted record from being written back to life.
//   - A write is sent once. Neither this package nor client-go below it sends it
//     again: the first could land after the second was refused. Any error but the
//     named ones of package epoch leaves the write undecided.
//   - What Watch delivers may be older than what Get returned.
//
// The client is a plain REST client for coordination.k8s.io/v1: the typed clientset
// would link every API group of Kubernetes into the replica.
//
// Start reading at store.go.
package lease
