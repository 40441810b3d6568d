package controllers

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func renderServiceAccount(rp *v1alpha1.ReplicatedPartition) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: owned(rp, rp.AccessName()),
	}
}

// renderRole allows a replica to keep the record, to see that its own pod is not a
// ghost, and to read its configuration: named objects only.
func renderRole(rp *v1alpha1.ReplicatedPartition, r epoch.Record) *rbacv1.Role {
	pods := make([]string, 0, len(r.Replicas))
	for _, p := range r.Replicas {
		pods = append(pods, rp.ReplicaName(int32(p.ID)))
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: owned(rp, rp.AccessName()),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{rp.LeaseName()},
				Verbs: []string{"get", "list", "watch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: pods, Verbs: []string{"get"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"replicatedpartitions"}, ResourceNames: []string{rp.Name},
				Verbs: []string{"get", "list", "watch"}},
		},
	}
}

func renderRoleBinding(rp *v1alpha1.ReplicatedPartition) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: owned(rp, rp.AccessName()),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: rp.AccessName()},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: rp.AccessName(), Namespace: rp.Namespace}},
	}
}
