package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ReplicatedPartitionSpec says what log is wanted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minInSyncReplicas) || self.minInSyncReplicas <= self.replicas",message="minInSyncReplicas must not be greater than replicas: no write with acks=all could ever succeed",fieldPath=".minInSyncReplicas",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.leaderElection) || !has(self.leaderElection.preferredLeader) || self.leaderElection.preferredLeader < self.replicas",message="leaderElection.preferredLeader must be the id of a replica: 0 to replicas-1",fieldPath=".leaderElection.preferredLeader",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.listeners) || self.listeners.all(a, self.listeners.exists_one(b, b.port == a.port))",message="listeners must not share a port",fieldPath=".listeners",reason=FieldValueInvalid
type ReplicatedPartitionSpec struct {
	// replicas is the number of copies of the log. Three survive the loss of any one
	// node without refusing a write.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Replicas int32 `json:"replicas,omitempty"`

	// minInSyncReplicas is how many live in-sync replicas a write with acks=all
	// needs (Kafka's min.insync.replicas). When unset it is 2, or 1 if replicas is
	// 1; status.minInSyncReplicas shows the value in effect.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	MinInSyncReplicas *int32 `json:"minInSyncReplicas,omitempty"`

	// topic is the name by which Kafka clients know the log; metadata.name when
	// unset. It cannot be changed. Of several partitions of one topic in a namespace only
	// the first is started.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=249
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9._-]+$') && self != '.' && self != '..'",message="topic may hold letters, digits, '.', '_' and '-' only, and must not be '.' or '..'"
	// +kubebuilder:validation:XValidation:rule="self != '__cluster_metadata'",message="topic must not be __cluster_metadata: Kafka clients treat that name specially"
	Topic string `json:"topic,omitempty"`

	// storage describes the volume of each replica.
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitzero"`

	// log says how the log is cut into segments, kept and flushed.
	// +optional
	// +kubebuilder:default={}
	Log LogSpec `json:"log,omitzero"`

	// replication tunes how followers copy the log from the leader.
	// +optional
	// +kubebuilder:default={}
	Replication ReplicationSpec `json:"replication,omitzero"`

	// leaderElection says when a silent leader is replaced, and by whom.
	// +optional
	// +kubebuilder:default={}
	LeaderElection LeaderElectionSpec `json:"leaderElection,omitzero"`

	// replacement says when a replica that is lost with its node is made anew elsewhere.
	// +optional
	// +kubebuilder:default={}
	Replacement ReplacementSpec `json:"replacement,omitzero"`

	// persistentVolumeClaimRetentionPolicy says what happens to the volumes of
	// replicas that go away.
	// +optional
	// +kubebuilder:default={}
	PersistentVolumeClaimRetentionPolicy RetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitzero"`

	// resources are the requests and limits of a replica's container. Go's memory
	// limit (GOMEMLIMIT) follows limits.memory.
	// +optional
	// +kubebuilder:default={requests: {cpu: "100m", memory: "128Mi"}, limits: {memory: "512Mi"}}
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// scheduling says on which nodes replicas may run.
	// +optional
	// +kubebuilder:default={}
	Scheduling SchedulingSpec `json:"scheduling,omitzero"`

	// listeners are for Kafka clients outside of the cluster, beside the one of clients inside. They
	// are opened and closed while replicas run, and are plain text without authentication, as that
	// one is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Listeners []ListenerSpec `json:"listeners,omitempty"`

	// suspend ends all pods and keeps the volumes, as long as it is true: the log cannot
	// be written or read meanwhile. Then it goes on from where it was, in a new epoch.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// image is the container image of the replicas; the operator's own default
	// when unset, so that an upgrade of the operator upgrades the replicas.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`
}

// StorageSpec describes the volume of each replica.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storage.storageClassName is immutable: a volume cannot change its class"
type StorageSpec struct {
	// size of the volume. It can grow where the storage class allows it, and never shrinks;
	// a growth that was refused can be taken back, to status.storageCapacity at least.
	// +optional
	// +kubebuilder:default="10Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="storage.size must be at least 64Mi"
	Size resource.Quantity `json:"size,omitzero"`

	// storageClassName of the volumes; the cluster's default class when unset. It
	// cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// FlushPolicy says when appended batches are synced to the disk.
//
// +kubebuilder:validation:Enum=Never;EveryBatch
type FlushPolicy string

const (
	// FlushNever leaves the sync to the operating system: a record is safe because
	// min ISR machines hold it, as in Kafka.
	FlushNever FlushPolicy = "Never"
	// FlushEveryBatch syncs each batch before it counts as replicated.
	FlushEveryBatch FlushPolicy = "EveryBatch"
)

// CleanupPolicy says what becomes of old records (Kafka's cleanup.policy).
//
// +kubebuilder:validation:Enum=Delete;Compact;CompactAndDelete
type CleanupPolicy string

const (
	// CleanupDelete deletes the oldest segments, by retentionSeconds and retentionBytes.
	CleanupDelete CleanupPolicy = "Delete"
	// CleanupCompact keeps the last record of every key for ever.
	CleanupCompact CleanupPolicy = "Compact"
	// CleanupCompactAndDelete does both.
	CleanupCompactAndDelete CleanupPolicy = "CompactAndDelete"
)

// TimestampType says whose time a record has (Kafka's message.timestamp.type).
//
// +kubebuilder:validation:Enum=CreateTime;LogAppendTime
type TimestampType string

const (
	// TimestampCreateTime is the time that the client gave.
	TimestampCreateTime TimestampType = "CreateTime"
	// TimestampLogAppendTime is the time at which the leader appended the record.
	TimestampLogAppendTime TimestampType = "LogAppendTime"
)

// LogSpec says how the log is cut into segments, kept and flushed.
//
// +kubebuilder:validation:XValidation:rule="has(self.cleanupPolicy) && self.cleanupPolicy != 'Delete' || !has(self.minCompactionLagSeconds) && !has(self.deleteRetentionSeconds) && !has(self.minDirtyRatioPercent)",message="log.minCompactionLagSeconds, log.deleteRetentionSeconds and log.minDirtyRatioPercent need the log.cleanupPolicy Compact or CompactAndDelete"
// +kubebuilder:validation:XValidation:rule="!has(self.messageTimestampType) || self.messageTimestampType == 'CreateTime' || !has(self.messageTimestampBeforeMaxSeconds) && !has(self.messageTimestampAfterMaxSeconds)",message="log.messageTimestampBeforeMaxSeconds and log.messageTimestampAfterMaxSeconds need the log.messageTimestampType CreateTime: with LogAppendTime the client's time does not count"
// +kubebuilder:validation:XValidation:rule="!has(self.maxMessageBytes) || !has(self.segmentBytes) || self.maxMessageBytes <= self.segmentBytes",message="log.maxMessageBytes must not be greater than log.segmentBytes: a batch has to fit into one segment"
type LogSpec struct {
	// segmentBytes is the size at which a segment is closed and the next begun
	// (Kafka's segment.bytes). The newest segment is never deleted by retention.
	// +optional
	// +kubebuilder:default=268435456
	// +kubebuilder:validation:Minimum=1048576
	// +kubebuilder:validation:Maximum=2147483647
	SegmentBytes int64 `json:"segmentBytes,omitempty"`

	// segmentSeconds is by how much a record may be newer than the first of its segment, by
	// their timestamps: else the next segment is begun (Kafka's segment.ms). Segments are
	// deleted, and compacted, as a whole.
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3153600000
	SegmentSeconds int64 `json:"segmentSeconds,omitempty"`

	// cleanupPolicy says what becomes of old records. With Compact and CompactAndDelete the
	// last record of every key is kept, and records without a key are refused; what has no
	// key already is removed. The newest segment is not compacted.
	// +optional
	// +kubebuilder:default=Delete
	CleanupPolicy CleanupPolicy `json:"cleanupPolicy,omitempty"`

	// minCompactionLagSeconds is how long a record is not compacted at least (Kafka's
	// min.compaction.lag.ms); 0 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3153600000
	MinCompactionLagSeconds *int64 `json:"minCompactionLagSeconds,omitempty"`

	// deleteRetentionSeconds is how long a tombstone, a record without value, is kept after
	// it was compacted first (Kafka's delete.retention.ms); a day when unset. A consumer that
	// reads from the start within that time sees every deletion.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3153600000
	DeleteRetentionSeconds *int64 `json:"deleteRetentionSeconds,omitempty"`

	// minDirtyRatioPercent is how much of the log must have been appended since the last
	// compaction before the next (Kafka's min.cleanable.dirty.ratio); 50 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinDirtyRatioPercent *int32 `json:"minDirtyRatioPercent,omitempty"`

	// retentionBytes bounds the log: its oldest segments are deleted beyond it. -1
	// is no bound. The cleanupPolicy Compact ignores it.
	// +optional
	// +kubebuilder:default=-1
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:XValidation:rule="self == -1 || self >= 1048576",message="log.retentionBytes must be -1 (no bound) or at least 1048576"
	RetentionBytes int64 `json:"retentionBytes,omitempty"`

	// retentionSeconds is how long a record is kept at least; -1 is for ever. The
	// cleanupPolicy Compact ignores it.
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=3153600000
	// +kubebuilder:validation:XValidation:rule="self == -1 || self >= 1",message="log.retentionSeconds must be -1 (for ever) or at least 1"
	RetentionSeconds int64 `json:"retentionSeconds,omitempty"`

	// maxMessageBytes is the largest record batch that is accepted (Kafka's
	// max.message.bytes).
	// +optional
	// +kubebuilder:default=1048588
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=104857600
	MaxMessageBytes int32 `json:"maxMessageBytes,omitempty"`

	// messageTimestampType says whose time a record has. With LogAppendTime it is the
	// leader's, in the place of the client's.
	// +optional
	// +kubebuilder:default=CreateTime
	MessageTimestampType TimestampType `json:"messageTimestampType,omitempty"`

	// messageTimestampBeforeMaxSeconds is how far a record's timestamp may lie behind the
	// leader's clock (Kafka's message.timestamp.before.max.ms); any when unset. An older
	// one is refused with INVALID_TIMESTAMP.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3153600000
	MessageTimestampBeforeMaxSeconds *int64 `json:"messageTimestampBeforeMaxSeconds,omitempty"`

	// messageTimestampAfterMaxSeconds is how far a record's timestamp may lie ahead of the
	// leader's clock (Kafka's message.timestamp.after.max.ms); an hour when unset. A record
	// from the future keeps its segment from growing too old for as long.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3153600000
	MessageTimestampAfterMaxSeconds *int64 `json:"messageTimestampAfterMaxSeconds,omitempty"`

	// producerIdExpirationSeconds is after how long without a batch an idempotent producer
	// is forgotten (Kafka's producer.id.expiration.ms): what it sends again later is
	// appended again. It must be longer than producers try, their delivery.timeout.ms.
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	ProducerIDExpirationSeconds int64 `json:"producerIdExpirationSeconds,omitempty"`

	// flush says when batches are synced to disk. When unset it is EveryBatch if
	// replicas or minInSyncReplicas is 1, where no other machine holds the records,
	// else Never; status.flush shows the value in effect.
	// +optional
	Flush FlushPolicy `json:"flush,omitempty"`
}

// ReplicationSpec tunes how followers copy the log from the leader.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fetchMaxWaitMilliseconds) || !has(self.lagTimeMaxSeconds) || self.fetchMaxWaitMilliseconds < self.lagTimeMaxSeconds * 1000",message="replication.fetchMaxWaitMilliseconds must be less than replication.lagTimeMaxSeconds: a waiting follower would count as lagging"
type ReplicationSpec struct {
	// lagTimeMaxSeconds is how long a follower may be silent, or behind, and still
	// be in sync (Kafka's replica.lag.time.max.ms).
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	LagTimeMaxSeconds int32 `json:"lagTimeMaxSeconds,omitempty"`

	// fetchMaxWaitMilliseconds is how long the leader holds a follower's fetch when
	// there is nothing new (Kafka's replica.fetch.wait.max.ms).
	// +optional
	// +kubebuilder:default=500
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=30000
	FetchMaxWaitMilliseconds int32 `json:"fetchMaxWaitMilliseconds,omitempty"`

	// fetchMaxBytes bounds one response to a follower. A single larger batch is
	// still sent, so that replication cannot stop.
	// +optional
	// +kubebuilder:default=10485760
	// +kubebuilder:validation:Minimum=65536
	// +kubebuilder:validation:Maximum=104857600
	FetchMaxBytes int32 `json:"fetchMaxBytes,omitempty"`
}

// UncleanElection says whether a replica outside the ISR may ever lead without
// being asked by a user.
//
// +kubebuilder:validation:Enum=Never;LastKnownLeader
type UncleanElection string

const (
	// UncleanNever keeps the partition without a leader until an ISR member is back.
	UncleanNever UncleanElection = "Never"
	// UncleanLastKnownLeader lets the last leader lead again from an empty ISR when
	// it came back on its own volume (KIP-966's last known leader). It may lose
	// records; the status then says so.
	UncleanLastKnownLeader UncleanElection = "LastKnownLeader"
)

// LeaderElectionSpec says when a silent leader is replaced, and by whom.
type LeaderElectionSpec struct {
	// leaseDurationSeconds is how long a leader may fail to renew its lease before
	// another in-sync replica is elected. Only a leader that vanished with its node
	// is waited for; a dead process or a deleted pod is replaced at once.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=300
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// preferredLeader is the id of the replica that is to lead whenever it is fit to: it
	// gets the leadership when it has been live and in sync for ten seconds, without a
	// failed write. Any replica may lead when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	PreferredLeader *int32 `json:"preferredLeader,omitempty"`

	// unclean says whether a replica outside the ISR may be elected automatically.
	// +optional
	// +kubebuilder:default=Never
	Unclean UncleanElection `json:"unclean,omitempty"`
}

// ReplacementSpec says when a replica whose volume cannot leave a lost node is made anew
// on another one. Its copy is given up only while it is out of the in-sync set, and enough
// others are in sync for writes to go on. A volume that can be attached to another node is
// not concerned: Kubernetes moves it.
type ReplacementSpec struct {
	// afterSeconds is for how long the node may be unreachable. When unset the replica
	// is made anew only if its node was deleted, or has the taint
	// node.kubernetes.io/out-of-service.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`
}

// RetentionPolicyType says whether a volume is kept.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicyType string

const (
	// RetainVolume keeps the volume claim and its data.
	RetainVolume RetentionPolicyType = "Retain"
	// DeleteVolume deletes the volume claim.
	DeleteVolume RetentionPolicyType = "Delete"
)

// RetentionPolicy says what happens to the volumes of replicas that go away. It is
// named as in a StatefulSet.
type RetentionPolicy struct {
	// whenDeleted applies when the ReplicatedPartition is deleted.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted RetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled applies when a replica is removed by scaling down.
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled RetentionPolicyType `json:"whenScaled,omitempty"`
}

// SchedulingSpec says on which nodes replicas may run.
type SchedulingSpec struct {
	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints of the pods. When unset replicas are spread over
	// nodes and zones as far as that is possible. A constraint without a
	// labelSelector gets one that selects the replicas of this partition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}
