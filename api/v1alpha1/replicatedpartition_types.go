package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplicatedPartition is one replicated, ordered log that Kafka clients see as a
// topic with one partition.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rp,categories=tidemark
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.currentReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=".status.leader"
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=".status.leaderEpoch"
// +kubebuilder:printcolumn:name="ISR",type=string,JSONPath=".status.isr"
// +kubebuilder:printcolumn:name="HW",type=integer,JSONPath=".status.highWatermark"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="LEO",type=integer,priority=1,JSONPath=".status.logEndOffset"
// +kubebuilder:printcolumn:name="MinISR",type=integer,priority=1,JSONPath=".status.minInSyncReplicas"
// +kubebuilder:printcolumn:name="Topic",type=string,priority=1,JSONPath=".status.topic"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 52 characters that starts with a letter: services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.topic) ? self.spec.topic : self.metadata.name) == (has(oldSelf.spec.topic) ? oldSelf.spec.topic : oldSelf.metadata.name)",message="spec.topic is immutable: clients know the log by this name"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.listeners) || self.spec.listeners.all(l, self.metadata.name.size() + l.name.size() <= 60)",message="spec.listeners: the names of the partition and of a listener must not have more than 60 characters together: Services are named after both"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.spec.storage.size)).compareTo(quantity(string(oldSelf.spec.storage.size))) >= 0 || has(oldSelf.status) && has(oldSelf.status.storageCapacity) && quantity(string(self.spec.storage.size)).compareTo(quantity(string(oldSelf.status.storageCapacity))) >= 0",message="spec.storage.size must not shrink: a volume cannot be made smaller; it can be taken back only as far as status.storageCapacity",fieldPath=".spec.storage.size",reason=FieldValueInvalid
type ReplicatedPartition struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the log as it is wanted.
	// +optional
	// +kubebuilder:default={}
	Spec ReplicatedPartitionSpec `json:"spec,omitzero"`

	// status is a projection of the partition record and of the progress that the
	// leader reports.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status ReplicatedPartitionStatus `json:"status,omitzero"`
}

// ReplicatedPartitionList is a list of ReplicatedPartition.
//
// +kubebuilder:object:root=true
type ReplicatedPartitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReplicatedPartition `json:"items"`
}
