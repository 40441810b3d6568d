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

func TestEveryMetricIsDocumented(t *testing.T) {
	doc := string(read(t, "docs", "metrics.md"))
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for _, c := range collectors() {
		descs := make(chan *prometheus.Desc, 10)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			m := name.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("no name in %s", d)
			}
			if !strings.Contains(doc, "`"+m[1]) {
				t.Errorf("docs/metrics.md does not tell of %s", m[1])
			}
		}
	}
}
