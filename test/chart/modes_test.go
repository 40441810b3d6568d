package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// groupOfOthers are API groups whose kinds a cluster need not have.
const groupOfOthers = "monitoring.coreos.com/"

func TestDefaultsNeedNoKindOfOthers(t *testing.T) {
	for k, o := range render(t, chartDir) {
		if strings.HasPrefix(o.GetAPIVersion(), groupOfOthers) || o.GetKind() == "NetworkPolicy" {
			t.Errorf("%s is there by default", k)
		}
	}
}

func TestEveryOptionMakesItsObjects(t *testing.T) {
	all := render(t, chartDir, everything...)
	for _, want := range []string{
		"ServiceMonitor tidemark-system/tidemark-operator", "PodMonitor tidemark-system/tidemark-replicas",
		"PrometheusRule tidemark-system/tidemark", "ConfigMap tidemark-system/tidemark-dashboard",
		"NetworkPolicy tidemark-system/tidemark-operator", "NetworkPolicy tidemark-system/tidemark-replicas",
	} {
		all.must(t, want)
	}
}

// Replicas' pods do not name the ports of listeners, and a policy that names none closes them.
func TestPolicyOpensThePortsOfListeners(t *testing.T) {
	const name = "NetworkPolicy tidemark-system/tidemark-replicas"
	ports := func(args ...string) (opened []string) {
		rules, _, err := unstructured.NestedSlice(render(t, chartDir, append(args, "networkPolicy.enabled=true")...).must(t, name).Object, "spec", "ingress")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			for _, p := range r.(map[string]any)["ports"].([]any) {
				opened = append(opened, fmt.Sprint(p.(map[string]any)["port"], " from ", r.(map[string]any)["from"]))
			}
		}
		return opened
	}
	if got := ports(); len(got) != 3 {
		t.Errorf("open by default: %q", got)
	}
	got := ports("networkPolicy.listenerPorts={9094,9095}", "networkPolicy.listenersFrom[0].ipBlock.cidr=192.0.2.0/24")
	for _, want := range []string{"9094 from [map[ipBlock:map[cidr:192.0.2.0/24]]]", "9095 from [map[ipBlock:map[cidr:192.0.2.0/24]]]", "tcp-kafka from <nil>"} {
		if !slices.Contains(got, want) {
			t.Errorf("not open: %s; but %q", want, got)
		}
	}
}

func TestNamespacedModeHasNothingOfTheCluster(t *testing.T) {
	all := render(t, chartDir, append([]string{"watchNamespaces={shop,mail}", "crd.enabled=false"}, everything...)...)
	for k, o := range all {
		if o.GetNamespace() == "" {
			t.Errorf("%s belongs to no namespace", k)
		}
	}
	for _, ns := range []string{"shop", "mail"} {
		all.must(t, "Role "+ns+"/tidemark-operator")
		all.must(t, "RoleBinding "+ns+"/tidemark-operator")
		all.must(t, "NetworkPolicy "+ns+"/tidemark-replicas")
	}
	args := podTemplate(t, all.must(t, "Deployment "+namespace+"/tidemark-operator")).Spec.Containers[0].Args
	if !slices.Contains(args, "--watch-namespaces=shop,mail") {
		t.Errorf("the operator is not told its namespaces: %q", args)
	}
	names, _, err := unstructured.NestedStringSlice(all.must(t, "PodMonitor "+namespace+"/tidemark-replicas").Object, "spec", "namespaceSelector", "matchNames")
	if err != nil || !slices.Equal(names, []string{"shop", "mail"}) {
		t.Errorf("the PodMonitor looks into %q, %v", names, err)
	}
	all.must(t, "Role shop/tidemark-operator-test") // where the operator works
}

// makeNamespaces makes those that are not there yet.
func makeNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := api.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// may asks the API server's own authorizer.
func may(t *testing.T, account, verb, group, resource, name, in string) bool {
	t.Helper()
	review, err := api.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + account, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Name: name, Namespace: in}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// grants are the permissions of a rendering, applied to the API server.
func grants(t *testing.T, in string, set ...string) {
	t.Helper()
	args := []string{"template", "t", chartDir, "--namespace", in, "--set", "crd.enabled=false,fullnameOverride=" + in}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	var rules strings.Builder
	for _, o := range parse(t, mustRun(t, "", "helm", args...)) {
		if strings.Contains(o.GetKind(), "Role") {
			b, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&rules, "---\n%s\n", b)
		}
	}
	mustRun(t, rules.String(), "kubectl", "apply", "-f", "-")
}

func TestNamespacedOperatorMayWorkInItsNamespacesOnly(t *testing.T) {
	if api == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	makeNamespaces(t, "narrow", "mine", "mine-too", "other")
	grants(t, "narrow", "watchNamespaces={mine,mine-too}")
	const operator, tester = "narrow:narrow-operator", "narrow:narrow-operator-test"
	for _, tc := range []struct {
		account, verb, group, resource, name, in string
		want                                     bool
	}{
		{operator, "list", "tidemark.io", "replicatedpartitions", "", "mine", true},
		{operator, "watch", "tidemark.io", "replicatedpartitions", "", "mine-too", true},
		{operator, "create", "", "pods", "", "mine", true},
		{operator, "update", "coordination.k8s.io", "leases", "", "mine", true},
		{operator, "update", "coordination.k8s.io", "leases", "tidemark-operator", "narrow", true},
		{operator, "update", "coordination.k8s.io", "leases", "another", "narrow", false},
		{operator, "list", "tidemark.io", "replicatedpartitions", "", "other", false},
		{operator, "list", "tidemark.io", "replicatedpartitions", "", "", false},
		{operator, "create", "", "pods", "", "other", false},
		{operator, "get", "", "secrets", "", "mine", false},
		{tester, "create", "tidemark.io", "replicatedpartitions", "", "mine", true},
		{tester, "delete", "tidemark.io", "replicatedpartitions", "tidemark-test", "mine", true},
		{tester, "delete", "tidemark.io", "replicatedpartitions", "orders", "mine", false},
		{tester, "create", "tidemark.io", "replicatedpartitions", "", "other", false},
	} {
		if got := may(t, tc.account, tc.verb, tc.group, tc.resource, tc.name, tc.in); got != tc.want {
			t.Errorf("%s may %s %s/%s %s in %q: %v, want %v", tc.account, tc.verb, tc.group, tc.resource, tc.name, tc.in, got, tc.want)
		}
	}
}

func TestClusterOperatorMayWorkEverywhere(t *testing.T) {
	if api == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	makeNamespaces(t, "wide", "anywhere")
	grants(t, "wide")
	const operator, tester = "wide:wide-operator", "wide:wide-operator-test"
	for _, tc := range []struct {
		account, verb, group, resource, in string
		want                               bool
	}{
		{operator, "list", "tidemark.io", "replicatedpartitions", "", true},
		{operator, "create", "", "pods", "anywhere", true},
		{operator, "list", "", "secrets", "", false},
		{operator, "create", "tidemark.io", "replicatedpartitions", "anywhere", false},
		{tester, "create", "tidemark.io", "replicatedpartitions", "wide", true},
		{tester, "create", "tidemark.io", "replicatedpartitions", "anywhere", false},
	} {
		if got := may(t, tc.account, tc.verb, tc.group, tc.resource, "", tc.in); got != tc.want {
			t.Errorf("%s may %s %s/%s in %q: %v, want %v", tc.account, tc.verb, tc.group, tc.resource, tc.in, got, tc.want)
		}
	}
}
