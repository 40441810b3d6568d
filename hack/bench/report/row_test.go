package report

import "testing"

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		values         []float64
		median, spread float64
	}{{nil, 0, 0}, {[]float64{7}, 7, 0}, {[]float64{9, 10, 12}, 10, 0.3}, {[]float64{12, 8, 10}, 10, 0.4}, {[]float64{4, 8}, 6, 4. / 6}} {
		r := Row{}
		for _, v := range c.values {
			r.Samples = append(r.Samples, Sample{"x": v, "y": 1})
		}
		m, ok := r.Median("x")
		if m != c.median || ok != (len(c.values) > 0) || r.Spread("x") != c.spread {
			t.Errorf("of %v: median %v (%v), spread %v; want %v and %v", c.values, m, ok, r.Spread("x"), c.median, c.spread)
		}
	}
}
