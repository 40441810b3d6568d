package chart

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// earlierCharts are upgraded from.
var earlierCharts = []string{"testdata/tidemark-0.1.0.tgz"}

// immutable are the fields of a kind that the API server lets nobody change.
var immutable = map[string][][]string{
	"Deployment":               {{"spec", "selector"}},
	"Service":                  {{"spec", "clusterIP"}},
	"RoleBinding":              {{"roleRef"}},
	"ClusterRoleBinding":       {{"roleRef"}},
	"CustomResourceDefinition": {{"spec", "group"}, {"spec", "scope"}, {"spec", "names", "kind"}, {"spec", "names", "plural"}},
}

// dropped are objects of an earlier chart that are meant to go.
var dropped = map[string]string{
	"namespaced ClusterRole /tidemark-edit": "a namespaced operator has no ClusterRole",
	"namespaced ClusterRole /tidemark-view": "a namespaced operator has no ClusterRole",
}

func TestUpgradesKeepWhatCannotChange(t *testing.T) {
	for _, earlier := range earlierCharts {
		for mode, set := range map[string][]string{"cluster": nil, "namespaced": {"watchNamespaces={a,b}"}} {
			before, after := render(t, earlier, set...), render(t, chartDir, set...)
			for k, old := range before {
				now := after[k]
				if now == nil {
					if dropped[mode+" "+k] == "" && old.GetAnnotations()["helm.sh/hook"] == "" {
						t.Errorf("%s, %s: %s has gone", earlier, mode, k)
					}
					continue
				}
				for _, path := range immutable[old.GetKind()] {
					was, _, _ := unstructured.NestedFieldNoCopy(old.Object, path...)
					is, _, _ := unstructured.NestedFieldNoCopy(now.Object, path...)
					if !reflect.DeepEqual(was, is) {
						t.Errorf("%s, %s: %s of %s was %v and is %v", earlier, mode, strings.Join(path, "."), k, was, is)
					}
				}
			}
			keepsVersions(t, before, after)
		}
	}
}

// keepsVersions compares the versions of the CRD: stored objects must stay readable.
func keepsVersions(t *testing.T, before, after objects) {
	t.Helper()
	const crd = "CustomResourceDefinition /replicatedpartitions.tidemark.io"
	versions := func(o *unstructured.Unstructured) map[string]bool {
		list, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil || len(list) == 0 {
			t.Fatalf("the CRD has no versions: %v", err)
		}
		out := map[string]bool{}
		for _, v := range list {
			m, _ := v.(map[string]any)
			out[fmt.Sprint(m["name"])] = m["served"] == true
		}
		return out
	}
	now := versions(after.must(t, crd))
	for name := range versions(before.must(t, crd)) {
		if !now[name] {
			t.Errorf("version %s of the CRD is not served any more", name)
		}
	}
	if after[crd].GetAnnotations()["helm.sh/resource-policy"] != "keep" {
		t.Error("the CRD would go with the release, and every partition with it")
	}
}

func TestSelectorMatchesThePods(t *testing.T) {
	d := render(t, chartDir).must(t, "Deployment "+namespace+"/tidemark-operator")
	selector, _, err := unstructured.NestedStringMap(d.Object, "spec", "selector", "matchLabels")
	if err != nil || len(selector) == 0 {
		t.Fatalf("selector %v, %v", selector, err)
	}
	for k := range selector {
		if strings.Contains(k, "version") || strings.Contains(k, "chart") {
			t.Errorf("the selector has %s, which changes", k)
		}
	}
	if pod := podTemplate(t, d); !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the selector %v does not match %v", selector, pod.Labels)
	}
}

// The whole life on a real API server: an earlier chart, a partition, this chart, and the
// end of the release. What holds data is the same object all along.
func TestUpgradeAndUninstallKeepPartitions(t *testing.T) {
	const ns = "life"
	kubectl := func(args ...string) string { t.Helper(); return mustRun(t, "", "kubectl", args...) }
	uid := func(args ...string) string {
		t.Helper()
		return kubectl(append(append([]string{"get"}, args...), "-o", "jsonpath={.metadata.uid}")...)
	}
	for _, earlier := range earlierCharts {
		mustRun(t, "", "helm", "install", release, earlier, "--namespace", ns, "--create-namespace")
		kubectl("wait", "--for=condition=Established", "crd/replicatedpartitions.tidemark.io", "--timeout=60s")
		mustRun(t, "apiVersion: tidemark.io/v1alpha1\nkind: ReplicatedPartition\nmetadata: {name: orders, namespace: default}\n", "kubectl", "create", "-f", "-")
		partition, crd, deployment := uid("rp/orders", "-n", "default"), uid("crd/replicatedpartitions.tidemark.io"), uid("deployment/tidemark-operator", "-n", ns)

		mustRun(t, "", "helm", "upgrade", release, chartDir, "--namespace", ns)
		if got := uid("deployment/tidemark-operator", "-n", ns); got != deployment {
			t.Errorf("%s: the Deployment was replaced", earlier)
		}
		if label := kubectl("get", "deployment/tidemark-operator", "-n", ns, "-o", `jsonpath={.metadata.labels.helm\.sh/chart}`); strings.Contains(earlier, label) {
			t.Errorf("%s: nothing was upgraded, the Deployment is of %s", earlier, label)
		}

		mustRun(t, "", "helm", "uninstall", release, "--namespace", ns)
		if got := uid("rp/orders", "-n", "default"); got != partition {
			t.Errorf("%s: the partition is another one", earlier)
		}
		if got := uid("crd/replicatedpartitions.tidemark.io"); got != crd {
			t.Errorf("%s: the CRD is another one", earlier)
		}
		list, err := api.client.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%s: the operator was not uninstalled: %v", earlier, err)
		}
		kubectl("delete", "rp/orders", "-n", "default")
		kubectl("delete", "crd/replicatedpartitions.tidemark.io")
	}
}
