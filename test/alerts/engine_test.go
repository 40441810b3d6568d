package alerts

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// every is the time between two scrapes, and between two evaluations.
const every = 30 * time.Second

// start is when the first scrape happens.
var start = time.Unix(1_000_000_000, 0)

// sample is a value at a time.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// memory is what Prometheus has scraped.
type memory struct{ series []storage.Series }

// scrape reads series in the notation of promtool's tests: `name{label="x"} 1 2+3x4 _`.
func scrape(t *testing.T, descriptions ...string) *memory {
	t.Helper()
	m := &memory{}
	for _, d := range descriptions {
		lset, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(d)
		if err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{start.Add(time.Duration(i) * every).UnixMilli(), v.Value})
			}
		}
		m.series = append(m.series, storage.NewListSeries(lset, samples))
	}
	return m
}

func (m *memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, s := range m.series {
			if !slices.ContainsFunc(matchers, func(x *labels.Matcher) bool { return !x.Matches(s.Labels().Get(x.Name)) }) {
				found = append(found, s)
			}
		}
		return &seriesSet{series: found}
	}}, nil
}

// seriesSet goes through series.
type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next <= len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// firing is an alert that fires: its labels, without its own, and the value.
type firing struct {
	labels labels.Labels
	value  float64
}

// fires says what an alert has to show at a time: all that its expression has given at
// every evaluation since `for` before.
func (m *memory) fires(t *testing.T, r rule, at time.Duration) []firing {
	t.Helper()
	pending := r.pending(t)
	if at < pending {
		return nil
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
		EnableNegativeOffset: true, EnableAtModifier: true})
	defer engine.Close()
	q, err := engine.NewRangeQuery(context.Background(), m, nil, r.Expr, start.Add(at-pending), start.Add(at), every)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	matrix, err := result.Matrix()
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("%s: %v", r.Alert, result.Warnings)
	}
	var out []firing
	for _, s := range matrix {
		if len(s.Floats) == int(pending/every)+1 {
			out = append(out, firing{labels.NewBuilder(s.Metric).Del(model.MetricNameLabel).Labels(), s.Floats[len(s.Floats)-1].F})
		}
	}
	return out
}

func (f firing) String() string { return fmt.Sprintf("%s %.4g", f.labels, f.value) }
