package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// rule is an alert of files/alerts.yaml.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (r rule) pending(t *testing.T) time.Duration {
	t.Helper()
	if r.For == "" {
		return 0
	}
	d, err := model.ParseDuration(r.For)
	if err != nil {
		t.Fatalf("%s: for %q: %v", r.Alert, r.For, err)
	}
	return time.Duration(d)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rules are all alerts, by name.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "charts", "tidemark", "files", "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	out := map[string]rule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if _, twice := out[r.Alert]; twice {
				t.Errorf("%s is there twice", r.Alert)
			}
			out[r.Alert] = r
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no alerts")
	}
	return out
}

// queries are the expressions of the dashboard, by the panel's title, as Grafana sends
// them.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "charts", "tidemark", "files", "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "2m", "$namespace", ".*", "$partition", ".*")
	out := map[string]string{}
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		for i, target := range p.Targets {
			out[fmt.Sprintf("%s, %d", p.Title, i)] = variables.Replace(target.Expr)
		}
	}
	return out
}

// names are the metrics that an expression selects.
func names(t *testing.T, expr string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%v in\n%s", err, expr)
	}
	var out []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			out = append(out, s.Name)
		}
		return nil
	})
	return out
}

func TestOnlyMetricsThatExistAreNamed(t *testing.T) {
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(read(t, "docs", "metrics.md"), -1) {
		known[m[1]] = true
	}
	all := queries(t)
	for name, r := range rules(t) {
		all["alert "+name] = r.Expr
	}
	for _, where := range slices.Sorted(maps.Keys(all)) {
		used := names(t, all[where])
		if len(used) == 0 {
			t.Errorf("%s: no metric in %s", where, all[where])
		}
		for _, name := range used {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s: docs/metrics.md does not know %q", where, name)
			}
		}
	}
}

// The page tells of each alert what it means and what to do, below a heading whose anchor
// is the end of the alert's runbook_url, and of no other.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	var told []string
	sections := regexp.MustCompile(`(?m)^### (Tidemark\w+)$`).Split(read(t, "docs", "operations", "monitoring.md"), -1)
	for _, m := range regexp.MustCompile(`(?m)^### (Tidemark\w+)$`).FindAllStringSubmatch(read(t, "docs", "operations", "monitoring.md"), -1) {
		told = append(told, m[1])
	}
	for i, name := range told {
		for _, part := range []string{"**Means.**", "**Do.**"} {
			if !strings.Contains(sections[i+1], part) {
				t.Errorf("the part on %s has no %s", name, part)
			}
		}
	}
	slices.Sort(told)
	if have := slices.Sorted(maps.Keys(rules(t))); !slices.Equal(told, have) {
		t.Errorf("docs/operations/monitoring.md tells of\n%q\nthe alerts are\n%q", told, have)
	}
}
