package controllers

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// permissions lists "group/resource verb", sorted.
func permissions(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				for _, v := range r.Verbs {
					out = append(out, fmt.Sprintf("%s/%s %s", g, res, v))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChartGrantsWhatTheOperatorNeedsAndNoMore(t *testing.T) {
	var generated rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(read(t, "config", "rbac", "role.yaml"), &generated); err != nil {
		t.Fatal(err)
	}
	directives := regexp.MustCompile(`(?m)^\{\{.*\}\}$`)
	var chart []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(directives.ReplaceAll(read(t, "charts", "tidemark", "templates", "_rules.tpl"), nil), &chart); err != nil {
		t.Fatal(err)
	}
	if got, want := permissions(chart), permissions(generated.Rules); !slices.Equal(got, want) {
		t.Errorf("the chart grants\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The API server lets nobody grant what he does not have himself.
func TestOperatorHasWhatItGrantsToReplicas(t *testing.T) {
	var generated rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(read(t, "config", "rbac", "role.yaml"), &generated); err != nil {
		t.Fatal(err)
	}
	own := permissions(generated.Rules)
	o := world()
	role := renderRole(o.Partition, o.Record)
	for _, p := range permissions(role.Rules) {
		if !slices.Contains(own, p) {
			t.Errorf("replicas are granted %q, which the operator does not have", p)
		}
	}
	for _, r := range role.Rules {
		if len(r.ResourceNames) == 0 {
			t.Errorf("replicas may touch any of %v, want named objects only", r.Resources)
		}
	}
}

// described are the names of the metrics of a collector, or of a registry.
func described(c prometheus.Collector) []string {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	var out []string
	for d := range descs {
		out = append(out, name.FindStringSubmatch(d.String())[1])
	}
	return out
}

// The operator's part of the page lists our metrics, all of them, and those of
// controller-runtime that alerts or the dashboard use, which must be there.
func TestMetricsPageListsTheOperatorsMetrics(t *testing.T) {
	page, _, _ := strings.Cut(string(read(t, "docs", "metrics.md")), "\n## Replica\n")
	var ours, others []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(m[1], "tidemark_") {
			ours = append(ours, m[1])
		} else {
			others = append(others, m[1])
		}
	}
	var have []string
	for _, c := range collectors() {
		have = append(have, described(c)...)
	}
	slices.Sort(ours)
	slices.Sort(have)
	if !slices.Equal(have, ours) {
		t.Errorf("docs/metrics.md lists\n%q\nthe operator has\n%q", ours, have)
	}
	all := described(metrics.Registry.(prometheus.Collector))
	for _, name := range others {
		if !slices.Contains(all, name) {
			t.Errorf("docs/metrics.md tells of %s, which the operator does not have", name)
		}
	}
}
