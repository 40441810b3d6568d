// Package e2e shows Tidemark's promises on a real Kubernetes with three nodes,
// through clients that nobody here wrote: kcat, franz-go and kafka-python.
//
// The tests need the local cluster, since they take power from its nodes and
// its API server away; `make e2e` starts everything and runs them. Each test has
// a ReplicatedPartition of its own and leaves the cluster as it found it. Every
// test of a failure writes all the while, and asks package history afterwards
// whether an acknowledged record was lost, doubled or moved.
//
// Durations are logged, never asserted; the benchmarks (`make bench-failover`)
// repeat the failures and report medians and maxima.
package e2e
