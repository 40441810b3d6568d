package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplicatedPartitionStatus is a projection of the partition record and of the
// progress that the leader reports. Changes of state appear at once, offsets at
// most every few seconds; live numbers are in the metrics.
type ReplicatedPartitionStatus struct {
	// observedGeneration is the metadata.generation that this status was made from; -1
	// before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// topicID is the topic id, in Kafka's form, of the record that was made for this
	// object. Once it is set, a missing record is never made anew.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TopicID string `json:"topicID,omitempty"`

	// topic is the name by which Kafka clients know the log.
	// +optional
	// +kubebuilder:validation:MaxLength=249
	Topic string `json:"topic,omitempty"`

	// leader is the name of the replica that leads; empty if none does.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Leader string `json:"leader,omitempty"`

	// leaderEpoch counts the elections of this partition.
	// +optional
	LeaderEpoch int32 `json:"leaderEpoch,omitempty"`

	// partitionEpoch counts the changes of the partition record.
	// +optional
	PartitionEpoch int64 `json:"partitionEpoch,omitempty"`

	// highWatermark is the first offset that is not yet committed: consumers see
	// the records before it.
	// +optional
	HighWatermark *int64 `json:"highWatermark,omitempty"`

	// logStartOffset is the first offset that is still kept.
	// +optional
	LogStartOffset *int64 `json:"logStartOffset,omitempty"`

	// logEndOffset is the offset of the leader's next record.
	// +optional
	LogEndOffset *int64 `json:"logEndOffset,omitempty"`

	// minInSyncReplicas is the value in effect, from the partition record.
	// +optional
	MinInSyncReplicas int32 `json:"minInSyncReplicas,omitempty"`

	// flush is the flush policy in effect.
	// +optional
	Flush FlushPolicy `json:"flush,omitempty"`

	// isr holds the ids of the in-sync replicas: each has every committed record,
	// dead ones included.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ISR []int32 `json:"isr,omitempty"`

	// replicas holds the assigned replicas in ascending order of id.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=32
	Replicas []ReplicaStatus `json:"replicas,omitempty"`

	// listeners holds the addresses that clients outside of the cluster are told.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Listeners []ListenerStatus `json:"listeners,omitempty"`

	// currentReplicas is the number of assigned replicas, for the scale subresource.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// storageCapacity is what the smallest of the replicas' volumes holds. spec.storage.size
	// can be taken back to it after a growth that was refused.
	// +optional
	StorageCapacity *resource.Quantity `json:"storageCapacity,omitempty"`

	// selector selects the pods of the replicas, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`

	// lastElection says why the last election was held.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	LastElection string `json:"lastElection,omitempty"`

	// uncleanElection describes the last election from outside the ISR, if any.
	// +optional
	UncleanElection *UncleanElectionStatus `json:"uncleanElection,omitempty"`

	// conditions are Ready, Available, InSync and Progressing, and, while they are True,
	// Reconciling or Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReplicaRole is the part that a replica plays at present.
//
// +kubebuilder:validation:Enum=Leader;Follower;Joining;Leaving;Offline
type ReplicaRole string

const (
	// RoleLeader is the replica that the record names as leader.
	RoleLeader ReplicaRole = "Leader"
	// RoleFollower copies the leader's log.
	RoleFollower ReplicaRole = "Follower"
	// RoleJoining was added and has not been in the ISR yet.
	RoleJoining ReplicaRole = "Joining"
	// RoleLeaving is about to be removed from the assignment.
	RoleLeaving ReplicaRole = "Leaving"
	// RoleOffline has no running process that is registered in the record.
	RoleOffline ReplicaRole = "Offline"
)

// ReplicaStatus is one assigned replica.
type ReplicaStatus struct {
	// id is the stable number of the replica, Kafka's broker id.
	// +required
	// +kubebuilder:validation:Minimum=0
	ID int32 `json:"id"`

	// name is the name of the replica and of its pod.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is the part that the replica plays.
	// +optional
	Role ReplicaRole `json:"role,omitempty"`

	// inSync tells that the replica is a live member of the ISR.
	// +optional
	InSync bool `json:"inSync"`

	// logEndOffset is the offset of the replica's next record, as the leader knows it.
	// +optional
	LogEndOffset *int64 `json:"logEndOffset,omitempty"`

	// highWatermark is the replica's own high watermark, as the leader knows it.
	// +optional
	HighWatermark *int64 `json:"highWatermark,omitempty"`

	// leaderEpoch is the epoch of the last record in the replica's log.
	// +optional
	LeaderEpoch *int32 `json:"leaderEpoch,omitempty"`

	// lag is the number of records that the replica is behind the leader.
	// +optional
	Lag *int64 `json:"lag,omitempty"`

	// bytesBehind is about how many bytes of the leader's log a replica that is not in
	// sync has still to copy.
	// +optional
	BytesBehind *int64 `json:"bytesBehind,omitempty"`

	// node is the node on which the replica's pod runs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// directoryId names the volume's log directory, in Kafka's form.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DirectoryID string `json:"directoryId,omitempty"`

	// message tells of trouble that the replica reports itself, such as a full disk.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// UncleanElectionStatus describes an election that may have lost records.
type UncleanElectionStatus struct {
	// leaderEpoch is the epoch that the election began.
	// +required
	LeaderEpoch int32 `json:"leaderEpoch"`
	// leader is the name of the replica that was elected.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Leader string `json:"leader"`
	// highWatermark is the last one known before the election: committed records
	// from the new leader's first offset up to it are lost.
	// +optional
	HighWatermark *int64 `json:"highWatermark,omitempty"`
	// logEndOffset is the new leader's first offset; unset until it has taken over.
	// +optional
	LogEndOffset *int64 `json:"logEndOffset,omitempty"`
	// lostRecords is the number of committed offsets that were lost, from logEndOffset
	// up to highWatermark; unset while it is not known.
	// +optional
	LostRecords *int64 `json:"lostRecords,omitempty"`
}
