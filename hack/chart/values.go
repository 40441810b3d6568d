package main

import (
	"fmt"
	"regexp"
	"strings"
)

// value is a line of values.yaml: a section, or a value with its default.
type value struct {
	// path is the whole one, as for --set.
	path string
	// text is the comment above, in one line.
	text string
	// defaults is the value as it is written; empty for a section.
	defaults string
}

var line = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):(?: (.*))?$`)

// parse reads a values.yaml of the plain form that ours has: two spaces a level, a
// comment above each key, and every value on one line. Whatever is not of that form is
// an error, so that nothing is left out of the table.
func parse(text string) ([]value, error) {
	var out []value
	var comment, parents []string
	for i, l := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(l)
		if after, ok := strings.CutPrefix(trimmed, "#"); ok {
			comment = append(comment, strings.TrimSpace(after))
			continue
		}
		if trimmed == "" {
			comment = nil
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil || len(m[1])%2 != 0 || len(m[1])/2 > len(parents) {
			return nil, fmt.Errorf("line %d: want a key with its value on the same line, two spaces a level: %q", i+1, l)
		}
		if len(comment) == 0 {
			return nil, fmt.Errorf("line %d: %s has no comment above it that says what it is", i+1, m[2])
		}
		parents = append(parents[:len(m[1])/2], m[2])
		out = append(out, value{path: strings.Join(parents, "."), text: strings.Join(comment, " "), defaults: m[3]})
		comment = nil
	}
	return out, nil
}
