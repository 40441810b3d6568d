package core_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/story"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the scenarios into their files")

// Scenarios are stories: a file holds commands, each followed by what it printed,
// indented. testdata/README.md explains the commands and lists which case of the
// protocol notes is told where.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playScenario(t, file) })
	}
}

func playScenario(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := story.Run(string(b))
	switch {
	case errors.Is(err, story.ErrNeedsMutants):
		t.Skip(err)
	case err != nil:
		t.Fatalf("%s: %v", file, err)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(s.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s.Text != string(b) {
		t.Errorf("the story goes differently (run with -rewrite and look at the change):\n%s", s.Text)
	}
}

// Every story says at its top where it is from and what it tells.
func TestScenariosBeginWithTheirSource(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(b), "# ") {
			t.Errorf("%s does not begin with a comment that names its source", file)
		}
	}
}
