package controllers

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// renderListeners makes the Services for clients outside of the cluster: of each listener one
// to begin with, and one for every assigned replica. Pods know nothing of them: a listener
// that comes or goes restarts nobody.
func renderListeners(rp *v1alpha1.ReplicatedPartition, r epoch.Record) []*corev1.Service {
	var all []*corev1.Service
	for i := range rp.Spec.Listeners {
		l := &rp.Spec.Listeners[i]
		all = append(all, renderBootstrapService(rp, l))
		for _, p := range r.Replicas {
			all = append(all, renderListenerService(rp, l, p.ID))
		}
	}
	return all
}

func renderBootstrapService(rp *v1alpha1.ReplicatedPartition, l *v1alpha1.ListenerSpec) *corev1.Service {
	var b v1alpha1.ListenerBootstrap
	if l.Bootstrap != nil {
		b = *l.Bootstrap
	}
	s := listenerService(rp, l, rp.ListenerServiceName(l.Name), b.NodePort, b.Annotations)
	s.Spec.Selector = podSelector(rp)
	return s
}

// renderListenerService leads to one replica, ready or not: a leader whose pod is not ready,
// or on its way out, is still the only one that clients can use, as inside of the cluster,
// where they have the pod's own address. What does not serve does not listen.
func renderListenerService(rp *v1alpha1.ReplicatedPartition, l *v1alpha1.ListenerSpec, id epoch.ReplicaID) *corev1.Service {
	own := replicaOf(l, id)
	s := listenerService(rp, l, rp.ReplicaListenerServiceName(int32(id), l.Name), own.NodePort, own.Annotations)
	s.Labels[v1alpha1.LabelReplica] = strconv.Itoa(int(id))
	s.Spec.Selector = podSelector(rp)
	s.Spec.Selector[v1alpha1.LabelReplica] = strconv.Itoa(int(id))
	s.Spec.PublishNotReadyAddresses = true
	return s
}

// replicaOf is what a listener says of one replica, the zero value if nothing.
func replicaOf(l *v1alpha1.ListenerSpec, id epoch.ReplicaID) v1alpha1.ListenerReplica {
	for _, r := range l.Replicas {
		if r.ID == int32(id) {
			return r
		}
	}
	return v1alpha1.ListenerReplica{ID: int32(id)}
}

// listenerService is what all Services of a listener have in common. What the user leaves open
// Kubernetes fills in: families of addresses, node ports.
func listenerService(rp *v1alpha1.ReplicatedPartition, l *v1alpha1.ListenerSpec, name string, nodePort *int32, annotations map[string]v1alpha1.AnnotationValue) *corev1.Service {
	meta := owned(rp, name)
	meta.Labels[v1alpha1.LabelListener] = l.Name
	for _, from := range []map[string]v1alpha1.AnnotationValue{l.Annotations, annotations} {
		for k, v := range from {
			metav1.SetMetaDataAnnotation(&meta, k, string(v))
		}
	}
	port := corev1.ServicePort{Name: "tcp-kafka", Port: l.Port, TargetPort: intstr.FromInt32(l.Port), Protocol: corev1.ProtocolTCP}
	if nodePort != nil {
		port.NodePort = *nodePort
	}
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceType(l.Type),
			Ports:                 []corev1.ServicePort{port},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicy(l.ExternalTrafficPolicy),
			LoadBalancerClass:     l.LoadBalancerClass,
		},
	}
	for _, r := range l.LoadBalancerSourceRanges {
		s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, string(r))
	}
	if l.IPFamilyPolicy != "" {
		policy := corev1.IPFamilyPolicy(l.IPFamilyPolicy)
		s.Spec.IPFamilyPolicy = &policy
	}
	for _, f := range l.IPFamilies {
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(f))
	}
	return s
}

// settleFamilies takes over what the API server has made of a wish for two families of which
// one was named: it adds the second where the cluster has it.
func settleFamilies(want, live *corev1.Service) {
	w, l := want.Spec.IPFamilies, live.Spec.IPFamilies
	dual := want.Spec.IPFamilyPolicy != nil && *want.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack
	if dual && len(w) > 0 && len(l) > 0 && w[0] == l[0] {
		want.Spec.IPFamilies = l
	}
}
