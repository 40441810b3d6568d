// Package report keeps what was measured, as rows with a few samples each, and writes
// it as lines of JSON and as tables.
package report

import (
	"encoding/json"
	"io"
	"slices"
)

// Sample is what one repeat gave: a number for each name.
type Sample map[string]float64

// Row is one case, repeated.
type Row struct {
	// Kind is the table that the row is in.
	Kind   string `json:"kind"`
	System string `json:"system,omitempty"`
	Flush  string `json:"flush,omitempty"`
	Acks   string `json:"acks,omitempty"`
	// Size is a record's, or that of a write; in bytes.
	Size      int    `json:"size,omitempty"`
	Producers int    `json:"producers,omitempty"`
	Note      string `json:"note,omitempty"`

	Samples []Sample `json:"samples"`
}

// values are the samples of a name, sorted.
func (r Row) values(name string) []float64 {
	var all []float64
	for _, s := range r.Samples {
		if v, ok := s[name]; ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// Median of the samples; of an even number, the mean of the two in the middle. False if
// there is none.
func (r Row) Median(name string) (float64, bool) {
	v := r.values(name)
	if len(v) == 0 {
		return 0, false
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

// Spread is how far the samples lie apart, as a share of the median.
func (r Row) Spread(name string) float64 {
	v := r.values(name)
	m, ok := r.Median(name)
	if !ok || m == 0 {
		return 0
	}
	return (v[len(v)-1] - v[0]) / m
}

// Most is the largest sample, 0 if there is none.
func (r Row) Most(name string) float64 {
	if v := r.values(name); len(v) > 0 {
		return v[len(v)-1]
	}
	return 0
}

// Rows are all that a run measured.
type Rows []Row

// Find gives the first row that the function takes.
func (all Rows) Find(is func(Row) bool) (Row, bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Row{}, false
}

// Line writes anything as one line of JSON.
func Line(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
