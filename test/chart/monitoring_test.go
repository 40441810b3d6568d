package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

type alertFile struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (f alertFile) byName() map[string]alert {
	out := map[string]alert{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			out[r.Alert] = r
		}
	}
	return out
}

// The PrometheusRule has every alert of files/alerts.yaml, which test/alerts tests, as it
// is there, and adds the address of its runbook and the labels that the user wants.
func TestRulesAreThoseOfTheFile(t *testing.T) {
	var file, made alertFile
	if err := yaml.UnmarshalStrict(readChart(t, "files/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	rule := render(t, chartDir, "metrics.rules.enabled=true", "metrics.rules.alertLabels.team=storage", "metrics.rules.alertLabels.severity=page",
		"metrics.rules.runbook=https://git.example/monitoring.md", "metrics.rules.labels.release=prometheus").must(t, "PrometheusRule "+namespace+"/tidemark")
	if rule.GetLabels()["release"] != "prometheus" {
		t.Errorf("the rule has labels %v, want release=prometheus among them", rule.GetLabels())
	}
	spec, _, err := unstructured.NestedMap(rule.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, &made); err != nil {
		t.Fatal(err)
	}
	want, got := file.byName(), made.byName()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d alerts are made of %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g.Expr != w.Expr || g.For != w.For || g.Annotations["summary"] != w.Annotations["summary"] || g.Annotations["description"] != w.Annotations["description"] {
			t.Errorf("%s is\n%+v\nwant\n%+v", name, g, w)
		}
		if g.Labels["severity"] != w.Labels["severity"] || g.Labels["team"] != "storage" {
			t.Errorf("%s has labels %v, want its own severity and team=storage", name, g.Labels)
		}
		if want := "https://git.example/monitoring.md#" + strings.ToLower(name); g.Annotations["runbook_url"] != want {
			t.Errorf("%s has its runbook at %q, want %q", name, g.Annotations["runbook_url"], want)
		}
	}
}

func TestDashboardIsTheFile(t *testing.T) {
	config := render(t, chartDir, "metrics.dashboard.enabled=true", "metrics.dashboard.annotations.folder=Kafka").must(t, "ConfigMap "+namespace+"/tidemark-dashboard")
	text, _, err := unstructured.NestedString(config.Object, "data", "tidemark.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title  string `json:"title"`
		Panels []any  `json:"panels"`
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil || board.Title != "Tidemark" || len(board.Panels) == 0 {
		t.Errorf("%v; title %q, %d panels", err, board.Title, len(board.Panels))
	}
	if strings.TrimSpace(text) != strings.TrimSpace(string(readChart(t, "files/dashboard.json"))) {
		t.Error("the ConfigMap's dashboard is not the file's")
	}
	if config.GetLabels()["grafana_dashboard"] != "1" || config.GetAnnotations()["folder"] != "Kafka" {
		t.Errorf("labels %v, annotations %v", config.GetLabels(), config.GetAnnotations())
	}
}

// The monitors select what is there: the Service by its labels and port's name, the
// replicas by labels that the operator gives them (controllers/testdata has their pods).
func TestMonitorsSelectWhatIsThere(t *testing.T) {
	all := render(t, chartDir, everything...)
	service := all.must(t, "Service "+namespace+"/tidemark-operator-metrics")
	selector, _, _ := unstructured.NestedStringMap(all.must(t, "ServiceMonitor "+namespace+"/tidemark-operator").Object, "spec", "selector", "matchLabels")
	selected := 0
	for _, o := range all.ofKind("Service") {
		if matches(selector, o.GetLabels()) {
			selected++
		}
	}
	if len(selector) == 0 || selected != 1 || !matches(selector, service.GetLabels()) {
		t.Errorf("the ServiceMonitor selects %d Services by %v", selected, selector)
	}
	pods, _, _ := unstructured.NestedStringMap(all.must(t, "PodMonitor "+namespace+"/tidemark-replicas").Object, "spec", "selector", "matchLabels")
	protected, _, _ := unstructured.NestedStringMap(all.must(t, "NetworkPolicy "+namespace+"/tidemark-replicas").Object, "spec", "podSelector", "matchLabels")
	found := 0
	for _, o := range replicasObjects(t) {
		if o.GetKind() != "Pod" {
			continue
		}
		found++
		if len(pods) == 0 || !matches(pods, o.GetLabels()) || len(protected) == 0 || !matches(protected, o.GetLabels()) {
			t.Errorf("a replica has labels %v; the PodMonitor selects %v, the NetworkPolicy %v", o.GetLabels(), pods, protected)
		}
	}
	if found == 0 {
		t.Error("there are no replica's pods in controllers/testdata")
	}
	if operator := podTemplate(t, all.must(t, "Deployment "+namespace+"/tidemark-operator")).Labels; matches(protected, operator) {
		t.Errorf("the replicas' policy %v selects the operator %v", protected, operator)
	}
}

// replicasObjects are what the operator makes of a partition, as its own golden test has it.
func replicasObjects(t *testing.T) objects {
	t.Helper()
	b, err := os.ReadFile("../../controllers/testdata/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(b))
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
