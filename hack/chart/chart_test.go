package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestParseKnowsPathsTextsAndDefaults(t *testing.T) {
	got, err := parse("# A title\n# of two lines.\na:\n  # What b is.\n  b: []\n  # What c is.\n  c:\n    # What d is.\n    d: \"x\"\n\n# Last.\ne: {f: 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []value{
		{"a", "A title of two lines.", ""}, {"a.b", "What b is.", "[]"}, {"a.c", "What c is.", ""},
		{"a.c.d", "What d is.", `"x"`}, {"e", "Last.", "{f: 1}"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestParseRefusesWhatItWouldLeaveOut(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a list over several lines", "# A list.\na:\n  - x\n", "line 3"},
		{"no comment", "# Fine.\na: 1\nb: 2\n", "b has no comment"},
		{"a comment apart", "# Of nothing.\n\na: 1\n", "a has no comment"},
		{"odd indentation", "# A.\na:\n   # B.\n   b: 1\n", "two spaces"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

// leaves are the paths of what is no map with keys, or is one written on one line.
func leaves(v any, path string, known map[string]bool) []string {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 || known[path] {
		return []string{path}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, leaves(m[k], strings.TrimPrefix(path+"."+k, "."), known)...)
	}
	return out
}

// What is parsed by lines is what YAML says.
func TestTheChartsValuesAreAllInTheTable(t *testing.T) {
	text, err := os.ReadFile("../../charts/tidemark/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	known := map[string]bool{}
	for _, v := range parsed {
		if v.defaults != "" {
			listed = append(listed, v.path)
			known[v.path] = true
		}
	}
	var tree any
	if err := yaml.UnmarshalStrict(text, &tree); err != nil {
		t.Fatal(err)
	}
	want := leaves(tree, "", known)
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the table has\n%q\nYAML has\n%q", listed, want)
	}
}

func TestInsertKeepsThePageAroundTheTable(t *testing.T) {
	page := "# Title\n" + begin + "\nold\n" + end + "\ntail\n"
	got, err := insert(page, "new\n")
	if err != nil || !strings.HasPrefix(got, "# Title\n") || !strings.HasSuffix(got, "\ntail\n") || strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Errorf("got %q, %v", got, err)
	}
	if again, err := insert(got, "new\n"); err != nil || again != got {
		t.Errorf("a second time gives %q, %v", again, err)
	}
	if _, err := insert("no marks", ""); err == nil {
		t.Error("a page without marks was taken")
	}
}

func TestSplitTakesHelmsMarksOut(t *testing.T) {
	got, err := split("---\n# Source: x\nkind: A\nmetadata:\n  labels:\n    helm.sh/chart: x-1\n    app.kubernetes.io/managed-by: Helm\n    a: b\n\n---\n# Source: y\n\n---\nkind: B\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []object{{"A", "kind: A\nmetadata:\n  labels:\n    a: b\n"}, {"B", "kind: B\n"}}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if _, err := split(""); err == nil {
		t.Error("an empty rendering was taken")
	}
}
