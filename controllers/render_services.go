package controllers

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// renderClientService is the bootstrap address of Kafka clients: any ready replica
// tells them who leads.
func renderClientService(rp *v1alpha1.ReplicatedPartition) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: owned(rp, rp.ServiceName()),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: podSelector(rp),
			Ports:    []corev1.ServicePort{servicePort("tcp-kafka", v1alpha1.PortKafka)},
		},
	}
}

// renderReplicasService gives each replica its DNS name, ready or not: replicas find
// each other before any of them can be ready.
func renderReplicasService(rp *v1alpha1.ReplicatedPartition) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: owned(rp, rp.ReplicasServiceName()),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 podSelector(rp),
			Ports: []corev1.ServicePort{
				servicePort("tcp-kafka", v1alpha1.PortKafka),
				servicePort("tcp-replication", v1alpha1.PortReplication),
				servicePort("http", v1alpha1.PortHTTP),
			},
		},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromString(name), Protocol: corev1.ProtocolTCP}
}

// renderBudget lets one replica at a time be evicted. One replica alone gets no
// budget: it would block every drain for ever.
func renderBudget(rp *v1alpha1.ReplicatedPartition, r epoch.Record) *policyv1.PodDisruptionBudget {
	n := len(r.Replicas)
	if n < 2 {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: owned(rp, rp.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(int32(n - 1))),
			Selector:     &metav1.LabelSelector{MatchLabels: podSelector(rp)},
		},
	}
}
