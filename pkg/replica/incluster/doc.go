// Package incluster makes the configuration of a replica that runs in a Kubernetes
// pod: from the pod's environment, the ReplicatedPartition and the API server.
//
// It owns the replica's view of Kubernetes outside of the Lease: reading the spec,
// and checking that this process's own pod still is the one that stands in the
// cluster. It never writes.
package incluster
