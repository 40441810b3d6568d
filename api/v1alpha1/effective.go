package v1alpha1

import (
	"fmt"
	"time"
)

// The defaults that the API server's schema also sets. The methods below apply
// them again, so that an object read before defaulting, as in a test, behaves.
const (
	defaultReplicas     = 3
	defaultMinISR       = 2
	defaultLeaseSeconds = 10
)

// EffectiveReplicas is the number of wanted replicas, at least 1.
func (p *ReplicatedPartition) EffectiveReplicas() int {
	if p.Spec.Replicas <= 0 {
		return defaultReplicas
	}
	return int(p.Spec.Replicas)
}

// EffectiveMinInSyncReplicas is the wanted min ISR: as set, else 2, and never more
// than replicas. The value in force is the record's, which follows step by step.
func (p *ReplicatedPartition) EffectiveMinInSyncReplicas() int {
	want := defaultMinISR
	if p.Spec.MinInSyncReplicas != nil {
		want = int(*p.Spec.MinInSyncReplicas)
	}
	return max(1, min(want, p.EffectiveReplicas()))
}

// EffectiveTopicID is the topic id by which replicas and clients know the log: as the
// status shows it, which differs from the object's UID for an adopted log; the UID before
// there is a status.
func (p *ReplicatedPartition) EffectiveTopicID() string {
	if p.Status.TopicID != "" {
		return p.Status.TopicID
	}
	return string(p.UID)
}

// EffectiveTopic is the name by which Kafka clients know the log.
func (p *ReplicatedPartition) EffectiveTopic() string {
	if p.Spec.Topic != "" {
		return p.Spec.Topic
	}
	return p.Name
}

// EffectiveFlush is the flush policy: as set, else EveryBatch where an
// acknowledged record may be on one machine only, else Never.
func (p *ReplicatedPartition) EffectiveFlush() FlushPolicy {
	if p.Spec.Log.Flush != "" {
		return p.Spec.Log.Flush
	}
	if p.EffectiveReplicas() == 1 || p.EffectiveMinInSyncReplicas() == 1 {
		return FlushEveryBatch
	}
	return FlushNever
}

// EffectiveLeaseDuration is how long a silent leader is waited for.
func (p *ReplicatedPartition) EffectiveLeaseDuration() time.Duration {
	if p.Spec.LeaderElection.LeaseDurationSeconds <= 0 {
		return defaultLeaseSeconds * time.Second
	}
	return time.Duration(p.Spec.LeaderElection.LeaseDurationSeconds) * time.Second
}

// ReplicaName is the name of a replica, of its pod, and the holder identity in the
// Lease while it leads.
func (p *ReplicatedPartition) ReplicaName(id int32) string {
	return fmt.Sprintf("%s-%d", p.Name, id)
}

// VolumeClaimName is the name of a replica's PersistentVolumeClaim.
func (p *ReplicatedPartition) VolumeClaimName(id int32) string {
	return fmt.Sprintf("data-%s-%d", p.Name, id)
}

// LeaseName is the name of the Lease that holds the partition record.
func (p *ReplicatedPartition) LeaseName() string { return p.Name }

// ServiceName is the name of the Service for clients.
func (p *ReplicatedPartition) ServiceName() string { return p.Name }

// ReplicasServiceName is the name of the headless Service of the replicas.
func (p *ReplicatedPartition) ReplicasServiceName() string { return p.Name + "-replicas" }

// AccessName is the name of the replicas' ServiceAccount, Role and RoleBinding.
func (p *ReplicatedPartition) AccessName() string { return p.Name + "-replica" }

// ListenerServiceName is the name of the Service that clients of a listener begin with.
func (p *ReplicatedPartition) ListenerServiceName(listener string) string {
	return p.Name + "-" + listener
}

// ReplicaListenerServiceName is the name of the Service by which clients of a listener reach
// one replica.
func (p *ReplicatedPartition) ReplicaListenerServiceName(id int32, listener string) string {
	return p.ReplicaName(id) + "-" + listener
}
