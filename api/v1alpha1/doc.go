// Package v1alpha1 is the contract with the user: the ReplicatedPartition kind of
// the API group tidemark.io.
//
// One ReplicatedPartition is one replicated log, which Kafka clients see as one
// topic with one partition. The spec says what the user wants. The status is a
// projection of the partition record, which lives in the Lease of the same name
// (package pkg/epoch): it can be deleted and is then rebuilt, with one exception.
// [ReplicatedPartitionStatus.TopicID] shows that a record was once made; while it
// is set, a missing record is a fault to be looked at and never a new partition.
//
// The package holds types, markers and constants only. Everything that can be
// refused is refused by the API server itself (schema and CEL in the generated
// CRD), so there is no webhook to run. Defaults that depend on another field
// cannot be written as markers; they are the methods in effective.go, and status
// shows their outcome.
//
// Start reading at replicatedpartition_types.go; conditions.go lists every
// condition type, and reason, that can appear.
//
// +kubebuilder:object:generate=true
// +groupName=tidemark.io
package v1alpha1
