package v1alpha1

// Labels and annotations of the objects that Tidemark makes. Those of the Lease's
// state belong to package pkg/epoch/lease.
const (
	// LabelName is the recommended label for the application; its value is AppName.
	LabelName = "app.kubernetes.io/name"
	// LabelManagedBy is the recommended label for the manager; its value is ManagerName.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelInstance is the recommended label for the instance: the partition's name.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelPartition names the ReplicatedPartition. The operator's caches hold only
	// objects that carry it.
	LabelPartition = "tidemark.io/partition"
	// LabelReplica is the replica id, on pods and volume claims.
	LabelReplica = "tidemark.io/replica"
	// LabelListener names the listener, on the Services for clients outside of the cluster.
	LabelListener = "tidemark.io/listener"
	// AnnotationTemplateHash is on pods: the hash of what they were made from. A pod
	// of another hash is replaced.
	AnnotationTemplateHash = "tidemark.io/template-hash"
	// AnnotationAppliedHash is on the other children: the hash of what was applied.
	AnnotationAppliedHash = "tidemark.io/applied-hash"
	// AnnotationReleased is on a volume claim whose replica is being removed under
	// whenScaled: Delete; the value is the topic id. Only such a claim is ever
	// deleted.
	AnnotationReleased = "tidemark.io/released"

	// AnnotationTopicID is on a volume claim: the topic id of the log on the volume, by
	// which a later ReplicatedPartition of the same name knows it for an earlier one's.
	AnnotationTopicID = "tidemark.io/topic-id"

	// AppName is the value of LabelName.
	AppName = "tidemark"
	// ManagerName is the value of LabelManagedBy, and the operator's field owner.
	ManagerName = "tidemark-operator"
)

// The ports of a replica.
const (
	// PortKafka serves Kafka clients.
	PortKafka = 9092
	// PortReplication serves the other replicas.
	PortReplication = 9093
	// PortHTTP serves /healthz, /readyz, /metrics and /v1/status.
	PortHTTP = 8080
)
