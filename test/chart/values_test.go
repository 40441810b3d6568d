package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestWrongValuesAreRefusedWithTheirName(t *testing.T) {
	for _, tc := range []struct{ set, want string }{
		{"operater.replicas=1", "operater"},
		{"operator.replica=1", "replica"},
		{"operator.replicas=two", "operator/replicas"},
		{"operator.replicas=-1", "operator/replicas"},
		{"operator.workers=0", "operator/workers"},
		{"operator.logLevel=loud", "operator/logLevel"},
		{"operator.goMemLimit=much", "operator/goMemLimit"},
		{"operator.resources.limit.memory=1Gi", "limit"},
		{"operator.resources.limits.memory=many", "operator/resources/limits/memory"},
		{"operator.tolerations[0].taint=x", "taint"},
		{"operator.affinity.nodes=x", "nodes"},
		{"image.repository=", "image/repository"},
		{"image.pullPolicy=Sometimes", "image/pullPolicy"},
		{"image.digest=x", "digest"},
		{"watchNamespaces=a", "watchNamespaces"},
		{"watchNamespaces={A}", "watchNamespaces/0"},
		{"watchNamespaces={a,a}", "watchNamespaces"},
		{"crd.enabled=perhaps", "crd/enabled"},
		{"rbac.aggregate=perhaps", "rbac/aggregate"},
		{"networkPolicy.clientsFrom[0].namespace=x", "namespace"},
		{"networkPolicy.listenerPorts={443}", "networkPolicy/listenerPorts/0"},
		{"networkPolicy.listenersFrom[0].ipBlock.except={x}", "cidr"},
		{"networkPolicy.metricsFrom[0].ipBlock.except={x}", "cidr"},
		{"metrics.serviceMonitor.enable=true", "enable"},
		{"metrics.podMonitor.interval=often", "metrics/podMonitor/interval"},
		{"metrics.rules.runbook=page#anchor", "metrics/rules/runbook"},
		{"metrics.dashboard.labels.a=1", "metrics/dashboard/labels/a"},
		{"test.replicas=0", "test/replicas"},
		{"test.timeout=soon", "test/timeout"},
		{"fullnameOverride=No_Name", "fullnameOverride"},
	} {
		t.Run(tc.set, func(t *testing.T) {
			out, err := run(t, "", "helm", renderArgs(chartDir, tc.set)...)
			if err == nil {
				t.Fatalf("%s was rendered, %d bytes", tc.set, len(out))
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "schema") {
				t.Errorf("got %v\nwant an error that names %s", err, tc.want)
			}
		})
	}
}

func TestServiceMonitorNeedsItsService(t *testing.T) {
	_, err := run(t, "", "helm", renderArgs(chartDir, "metrics.service=false", "metrics.serviceMonitor.enabled=true")...)
	if err == nil || !strings.Contains(err.Error(), "needs metrics.service: true") {
		t.Errorf("got %v, want an error that says what it needs", err)
	}
}

func readChart(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(chartDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// free are the places where the schema leaves the rest to Helm or to the API server.
var free = []string{
	"#/properties/global",
	"#/properties/operator/properties/affinity/properties/nodeAffinity",
	"#/properties/operator/properties/affinity/properties/podAffinity",
	"#/properties/operator/properties/affinity/properties/podAntiAffinity",
}

// closed goes through a schema and complains of every object that takes any key.
func closed(t *testing.T, path string, node any) {
	switch n := node.(type) {
	case map[string]any:
		if n["type"] == "object" && !slices.Contains(free, path) {
			if additional, said := n["additionalProperties"]; !said || additional == true {
				t.Errorf("%s takes keys that it does not know", path)
			}
		}
		for k, v := range n {
			closed(t, path+"/"+k, v)
		}
	case []any:
		for i, v := range n {
			closed(t, fmt.Sprintf("%s/%d", path, i), v)
		}
	}
}

func TestSchemaIsClosed(t *testing.T) {
	var schema any
	if err := json.Unmarshal(readChart(t, "values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	closed(t, "#", schema)
}

// A value that the schema knows and values.yaml does not tell of is one that nobody finds.
func TestValuesTellOfAllThatTheSchemaKnows(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(readChart(t, "values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	defs, _ := schema["$defs"].(map[string]any)
	var values map[string]any
	if err := yaml.UnmarshalStrict(readChart(t, "values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, schema map[string]any, value any)
	compare = func(path string, schema map[string]any, value any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema, _ = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		properties, ok := schema["properties"].(map[string]any)
		m, isMap := value.(map[string]any)
		if !ok || isMap && len(m) == 0 || path == ".operator.resources" {
			return // a leaf
		}
		for k, v := range properties {
			if k == "global" {
				continue
			}
			next, there := m[k]
			if !there {
				t.Errorf("values.yaml does not tell of %s.%s", path, k)
				continue
			}
			sub, _ := v.(map[string]any)
			compare(path+"."+k, sub, next)
		}
	}
	compare("", schema, values)
}

func TestGoMemLimitFollowsTheMemoryLimit(t *testing.T) {
	for _, tc := range []struct{ name, set, want string }{
		{"default", "operator.replicas=2", "222822KiB"},
		{"another limit", "operator.resources.limits.memory=1Gi", "891289KiB"},
		{"its own", "operator.goMemLimit=100MiB", "100MiB"},
		{"no limit", "operator.resources.limits=null", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := podTemplate(t, render(t, chartDir, tc.set).must(t, "Deployment "+namespace+"/tidemark-operator"))
			got := ""
			for _, e := range pod.Spec.Containers[0].Env {
				if e.Name == "GOMEMLIMIT" {
					got = e.Value
				}
			}
			if got != tc.want {
				t.Errorf("GOMEMLIMIT is %q, want %q", got, tc.want)
			}
		})
	}
}
