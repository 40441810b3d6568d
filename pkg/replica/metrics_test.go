package replica

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// names collects the names of what is described to it.
func names(collectors ...prometheus.Collector) []string {
	var out []string
	fqName := regexp.MustCompile(`fqName: "(\w+)"`)
	for _, c := range collectors {
		descriptions := make(chan *prometheus.Desc, 64)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			out = append(out, fqName.FindStringSubmatch(d.String())[1])
		}
	}
	return out
}

// registry takes every metric without collecting it.
type registry struct{ collectors []prometheus.Collector }

func (r *registry) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}

func (r *registry) MustRegister(cs ...prometheus.Collector) {
	r.collectors = append(r.collectors, cs...)
}
func (r *registry) Unregister(prometheus.Collector) bool { return false }

func TestMetricsPageListsTheReplicasMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var r registry
	newMetrics(&r)
	kafka.NewMetrics(&r)
	(&Replica{}).registerState(&r)
	have := names(r.collectors...)
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(tidemark_(?:replica|record|log|kafka)_\\w+)`").FindAllSubmatch(page, -1) {
		listed = append(listed, string(m[1]))
	}
	slices.Sort(have)
	slices.Sort(listed)
	if !slices.Equal(have, listed) {
		t.Errorf("docs/metrics.md lists\n%q\nthe replica has\n%q", listed, have)
	}
}
