package v1alpha1

// ListenerType says how clients outside of the cluster reach a listener.
//
// +kubebuilder:validation:Enum=NodePort;LoadBalancer
type ListenerType string

const (
	// ListenerNodePort opens a port on every node for each replica.
	ListenerNodePort ListenerType = "NodePort"
	// ListenerLoadBalancer asks the cloud for a load balancer for each replica.
	ListenerLoadBalancer ListenerType = "LoadBalancer"
)

// ListenerSpec is one way for clients outside of the cluster. Every replica gets a Service of
// its own, since a client has to reach the one that leads, and all together one to begin with.
//
// +kubebuilder:validation:XValidation:rule="!(self.port in [8080, 9092, 9093])",message="port must not be 9092, 9093 or 8080: the replica itself uses those",fieldPath=".port",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="self.type == 'NodePort' || (!has(self.bootstrap) || !has(self.bootstrap.nodePort)) && (!has(self.replicas) || self.replicas.all(r, !has(r.nodePort)))",message="nodePort needs the listener type NodePort"
// +kubebuilder:validation:XValidation:rule="self.type == 'LoadBalancer' || !has(self.loadBalancerClass)",message="loadBalancerClass needs the listener type LoadBalancer",fieldPath=".loadBalancerClass",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="self.type == 'LoadBalancer' || !has(self.loadBalancerSourceRanges)",message="loadBalancerSourceRanges needs the listener type LoadBalancer",fieldPath=".loadBalancerSourceRanges",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || has(self.loadBalancerClass) == has(oldSelf.loadBalancerClass) && (!has(self.loadBalancerClass) || self.loadBalancerClass == oldSelf.loadBalancerClass)",message="loadBalancerClass is immutable: remove the listener and add one of another name",fieldPath=".loadBalancerClass",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas.all(a, !has(a.advertisedHost) || self.replicas.exists_one(b, has(b.advertisedHost) && b.advertisedHost == a.advertisedHost && (has(b.advertisedPort) ? b.advertisedPort : self.type == 'LoadBalancer' ? self.port : has(b.nodePort) ? b.nodePort : -1 - b.id) == (has(a.advertisedPort) ? a.advertisedPort : self.type == 'LoadBalancer' ? self.port : has(a.nodePort) ? a.nodePort : -1 - a.id)))",message="two replicas must not have the same advertisedHost and port: clients would take one for the other",fieldPath=".replicas",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas.all(a, !has(a.nodePort) || self.replicas.exists_one(b, has(b.nodePort) && b.nodePort == a.nodePort)) && (!has(self.bootstrap) || !has(self.bootstrap.nodePort) || self.replicas.all(r, !has(r.nodePort) || r.nodePort != self.bootstrap.nodePort))",message="a nodePort must not be given twice"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilyPolicy) || self.ipFamilyPolicy != 'SingleStack' || !has(self.ipFamilies) || self.ipFamilies.size() <= 1",message="two ipFamilies need the ipFamilyPolicy PreferDualStack or RequireDualStack",fieldPath=".ipFamilies",reason=FieldValueInvalid
type ListenerSpec struct {
	// name of the listener; its Services are named after it: `orders-external` to begin with, and
	// `orders-0-external` of replica 0.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a listener's name must be a DNS label that starts with a letter"
	// +kubebuilder:validation:XValidation:rule="!(self in ['replicas', 'clients', 'replication', 'internal'])",message="a listener's name must not be replicas, clients, replication or internal"
	Name string `json:"name"`

	// type says how clients reach it.
	// +required
	Type ListenerType `json:"type"`

	// port is where replicas listen inside of their pods, and the port of the Services.
	// +required
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// replicas says for single replicas what clients are told, or how their Service is. A
	// replica that is not named gets what Kubernetes assigns.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=9
	Replicas []ListenerReplica `json:"replicas,omitempty"`

	// bootstrap says how the Service is that clients begin with.
	// +optional
	Bootstrap *ListenerBootstrap `json:"bootstrap,omitempty"`

	// annotations of all its Services, such as those that a cloud's load balancers ask for.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('tidemark.io/'))",message="annotations must not begin with tidemark.io/"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// externalTrafficPolicy of the Services: Local keeps the client's address, and lets only the
	// node of a replica answer for it. Kubernetes' default is Cluster.
	// +optional
	ExternalTrafficPolicy ExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// loadBalancerClass of the Services; the cluster's default when unset. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// loadBalancerSourceRanges are the addresses, as CIDR, that load balancers let in; all when
	// unset.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerSourceRanges []SourceRange `json:"loadBalancerSourceRanges,omitempty"`

	// ipFamilyPolicy of the Services; the cluster's default when unset.
	// +optional
	IPFamilyPolicy IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// ipFamilies of the Services, the one that clients are told first. The first cannot be changed
	// once the Services are there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self[0] != self[1]",message="ipFamilies must not hold a family twice"
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// ListenerReplica is what is special about one replica on a listener.
//
// +kubebuilder:validation:XValidation:rule="!has(self.advertisedPort) || has(self.advertisedHost)",message="advertisedPort needs an advertisedHost: on a node, or on a load balancer, nothing answers there",fieldPath=".advertisedPort",reason=FieldValueInvalid
type ListenerReplica struct {
	// id of the replica.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	ID int32 `json:"id"`

	// advertisedHost is the name or address that clients are told for this replica. It must lead
	// to this replica and to no other. When unset it is what the load balancer got, or the address
	// of the node on which the replica runs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip.isCanonical(self) : self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !self.matches('^[0-9.]+$')",message="advertisedHost must be a DNS name in lower case, or an IP address in its usual form and without brackets, such as 2001:db8::1"
	AdvertisedHost string `json:"advertisedHost,omitempty"`

	// advertisedPort is the port that clients are told. When unset it is the nodePort, or the
	// listener's port of a load balancer.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	AdvertisedPort *int32 `json:"advertisedPort,omitempty"`

	// nodePort of this replica's Service; Kubernetes chooses one when unset.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`

	// annotations of this replica's Service, beside the listener's.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('tidemark.io/'))",message="annotations must not begin with tidemark.io/"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// ListenerBootstrap is the Service of a listener that leads to any ready replica.
type ListenerBootstrap struct {
	// nodePort of this Service; Kubernetes chooses one when unset.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort *int32 `json:"nodePort,omitempty"`

	// annotations of this Service, beside the listener's.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('tidemark.io/'))",message="annotations must not begin with tidemark.io/"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// SourceRange is a range of addresses, as CIDR.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="loadBalancerSourceRanges must hold CIDRs, such as 192.0.2.0/24 or 2001:db8::/32"
type SourceRange string

// ExternalTrafficPolicy says which nodes take connections from outside.
//
// +kubebuilder:validation:Enum=Cluster;Local
type ExternalTrafficPolicy string

// IPFamilyPolicy says of how many families a Service has addresses.
//
// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
type IPFamilyPolicy string

// IPFamily is a family of addresses.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// ListenerStatus is what clients of a listener are told.
type ListenerStatus struct {
	// name of the listener.
	// +required
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name"`

	// bootstrapServers is what clients begin with, as host:port separated by commas (Kafka's
	// bootstrap.servers); empty until an address is known.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	BootstrapServers string `json:"bootstrapServers,omitempty"`

	// replicas holds the address of each replica whose address is known, in ascending order of id.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=32
	Replicas []ListenerAddress `json:"replicas,omitempty"`
}

// ListenerAddress is where clients of a listener reach one replica.
type ListenerAddress struct {
	// id of the replica.
	// +required
	// +kubebuilder:validation:Minimum=0
	ID int32 `json:"id"`

	// host is a name or an address, without brackets.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// port at that host.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
