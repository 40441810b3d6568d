package report

import (
	"strings"
	"testing"
)

func TestNumbersShowThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.012", 1: "1.00", 9.876: "9.88", 12.34: "12.3", 99.94: "99.9", 123.4: "123", 1234567: "1,234,567", -1234: "-1,234", 999: "999", 100000: "100,000"} {
		if got := Number(v); got != want {
			t.Errorf("%v is shown as %q, want %q", v, got, want)
		}
	}
}

func TestATableHoldsItsRowsOnly(t *testing.T) {
	rows := Rows{{Kind: "a", System: "x", Size: 1024, Samples: []Sample{{"v": 1, "u": 1}, {"v": 3}, {"v": 2}}}, {Kind: "b"}}
	var b strings.Builder
	rows.Table(&b, "a", "Title", Column{"system", func(r Row) string { return r.System }}, Size("size"), ValueSpread("v", "v"), ValueSpread("u", "u"), Value("w", "w"))
	rows.Table(&b, "c", "Nothing")
	want := "\n## Title\n\n| system | size | v (spread) | u (spread) | w |\n| --- | --- | --- | --- | --- |\n| x | 1 KiB | 2.00 (100 %) | – | – |\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
