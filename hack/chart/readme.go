package main

import (
	"errors"
	"fmt"
	"strings"
)

const (
	begin = "<!-- values: begin; generated from values.yaml by make manifests -->"
	end   = "<!-- values: end -->"
)

// insert puts the table between the marks of a page.
func insert(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", errors.New("there is no mark " + begin)
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", errors.New("there is no mark " + end)
	}
	return before + begin + "\n\n" + table + "\n" + end + after, nil
}

// table is a line for each value, and for each section one without a default.
func table(values []value) string {
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n| --- | --- | --- |\n")
	escape := strings.NewReplacer("|", `\|`)
	for _, v := range values {
		if v.defaults == "" {
			fmt.Fprintf(&b, "| **%s** | | %s |\n", v.path, escape.Replace(v.text))
			continue
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.path, v.defaults, escape.Replace(v.text))
	}
	return b.String()
}
