package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Column is one column of a table: text for a row.
type Column struct {
	Head string
	Text func(Row) string
}

// Value shows a name's median; what is missing is a dash.
func Value(head, name string) Column {
	return Column{head, func(r Row) string {
		m, ok := r.Median(name)
		if !ok {
			return "–"
		}
		return Number(m)
	}}
}

// ValueSpread shows the median and, behind it, the spread in percent; a dash if not all
// samples have it.
func ValueSpread(head, name string) Column {
	return Column{head + " (spread)", func(r Row) string {
		m, ok := r.Median(name)
		if !ok || len(r.values(name)) < len(r.Samples) {
			return "–"
		}
		return fmt.Sprintf("%s (%.0f %%)", Number(m), 100*r.Spread(name))
	}}
}

// Size shows a row's size in bytes.
func Size(head string) Column {
	return Column{head, func(r Row) string {
		switch {
		case r.Size >= 1<<20 && r.Size%(1<<20) == 0:
			return strconv.Itoa(r.Size>>20) + " MiB"
		case r.Size >= 1<<10 && r.Size%(1<<10) == 0:
			return strconv.Itoa(r.Size>>10) + " KiB"
		}
		return strconv.Itoa(r.Size) + " B"
	}}
}

// Number writes three digits that count, and a large number in full with commas.
func Number(v float64) string {
	if a := math.Abs(v); a >= 100 || v == 0 {
		return commas(strconv.FormatFloat(v, 'f', 0, 64))
	} else if a >= 1 {
		return strconv.FormatFloat(v, 'f', 2-int(math.Log10(a)), 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func commas(digits string) string {
	sign, digits := digits[:len(digits)-len(strings.TrimPrefix(digits, "-"))], strings.TrimPrefix(digits, "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Table writes the rows of a kind, if there are any.
func (all Rows) Table(w io.Writer, kind, title string, columns ...Column) {
	begun := false
	for _, r := range all {
		if r.Kind != kind {
			continue
		}
		if !begun {
			begun = true
			heads := make([]string, len(columns))
			for i, c := range columns {
				heads[i] = c.Head
			}
			fmt.Fprintf(w, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(heads, " | "), strings.Repeat(" --- |", len(columns)))
		}
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.Text(r)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}
