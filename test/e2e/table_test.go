//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

// row is one case of the table that a run ends with: docs/operations/cases.md shows one.
type row struct {
	test, what string
	// gap is the longest time without an acknowledgement, zero for a case that measures none.
	gap      prober.Gap
	measured bool
	// verdict is what the check of every record of the test found.
	verdict *history.Verdict
}

var table []*row

// tell adds a case to the table that has no writer to disturb.
func tell(t testing.TB, what string) { table = append(table, &row{test: t.Name(), what: what}) }

// printTable writes what was done, and what producers and consumers noticed.
func printTable(w io.Writer) {
	if len(table) == 0 {
		return
	}
	fmt.Fprintln(w, "\n| case | what was done | without a leader | failed produces | lost | doubled or out of order |")
	fmt.Fprintln(w, "| --- | --- | ---: | ---: | ---: | ---: |")
	for _, r := range table {
		gap, failed, lost, other := "", "", "", ""
		if r.measured {
			gap = fmt.Sprintf("%d ms", r.gap.Length().Milliseconds())
		}
		if v := r.verdict; v != nil {
			n := v.Levels[history.AcksAll]
			losses := 0
			for _, f := range v.Faults {
				if f.Kind == history.LostWrite {
					losses++
				}
			}
			failed, lost, other = fmt.Sprint(n.Failed+n.Rejected), fmt.Sprint(max(losses, n.Lost)), fmt.Sprint(len(v.Faults)-losses)
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s |\n", r.test, strings.ReplaceAll(r.what, "|", "/"), gap, failed, lost, other)
	}
}
