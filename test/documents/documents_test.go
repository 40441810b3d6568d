package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// files are the tracked kinds of files under the root, by their path.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "run") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("there are no %s files", suffix)
	}
	return out
}

func TestPagesNameTestsThatExist(t *testing.T) {
	have := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	for _, text := range files(t, "_test.go") {
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			have[m[1]] = true
		}
	}
	named := regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)(?:/[^`]*)?`")
	for path, text := range files(t, ".md") {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !have[m[1]] {
				t.Errorf("%s names %s, which is no test", path, m[1])
			}
		}
	}
}

func TestLinksLeadToFilesAndHeadings(t *testing.T) {
	pages := files(t, ".md")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for path, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if heading != "" && !anchors(pages[target])[heading] {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}

// anchors are the names that a page's headings have in links, as GitHub makes them.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} (.+)$`).FindAllStringSubmatch(page, -1) {
		out[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}
