package story

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/guard"
)

func TestRunSaysWhereAStoryCannotBePlayed(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown command", "cluster 2 1\ndance A", "line 2: dance A: no such command"},
		{"no cluster", "start A", "begin with: cluster"},
		{"unknown replica", "cluster 2 1\nstart C", "there is no replica C"},
		{"no replica", "cluster 2 1\nfetch", "which replica?"},
		{"too many replicas", "cluster 12 1", "12 replicas with min ISR 1"},
		{"no min ISR", "cluster 2 0", "min ISR 0"},
		{"word behind the cluster", "cluster 2 1 fast", `what is "fast"?`},
		{"no number", "cluster 2 1\nstart A\nread A x", `"x" is no number`},
		{"number out of bounds", "cluster 2 1\nstart A\nproduce A x*1000000", `"1000000" is no number`},
		{"no duration", "cluster 2 1\nafter soon", `"soon" is no duration`},
		{"no rule", "cluster 2 1\noff gravity", `no safety rule is called "gravity"`},
		{"no runs", "part 1 0x 0x1", `"0x" is no run`},
		{"no cache", "cache 0:0 clear", "is no epoch cache"},
		{"cache that goes back", "cache {3:1,2:5} clear", "does not follow"},
		{"cache verb", "cache {} bake 3", "cannot be done with a cache"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Run(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
}

func TestRulesAreBackWhenAStoryEnds(t *testing.T) {
	s, err := Run("cluster 2 1\noff own-floor\nstart A\n")
	if !guard.Switchable {
		if !errors.Is(err, ErrNeedsMutants) {
			t.Fatalf("error %v, want %v", err, ErrNeedsMutants)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Off, []string{"own-floor"}) {
		t.Errorf("taken away: %v, want own-floor", s.Off)
	}
	if guard.Off(guard.OwnFloor) {
		t.Error("the rule is still taken away after the story")
	}
}

func TestOutputIsWrittenAnew(t *testing.T) {
	s, err := Run("# title\ncluster 1 1\n    stale output\nstart A\nproduce A m\n    more of it\nlatest A\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "# title\ncluster 1 1\nstart A\nproduce A m\n    m acknowledged at offset 0\nlatest A\n    latest offset 1\n"
	if s.Text != want {
		t.Errorf("played:\n%s\nwant:\n%s", s.Text, want)
	}
	if f := s.Frames[0]; f.Comment != "title" || f.Line != 2 || f.Command != "cluster 1 1" {
		t.Errorf("the first frame is %+v", f)
	}
}

func TestFramesTellWhatHappened(t *testing.T) {
	s, err := Run("cluster 2 1\nstart A\nstart B\nproduce A m\nfetch B\nfetch B drop\ncrash A\nelect B\n")
	if err != nil {
		t.Fatal(err)
	}
	kinds := func(command string) []EventKind {
		var out []EventKind
		for _, f := range s.Frames {
			if f.Command == command {
				for _, e := range f.Events {
					out = append(out, e.Kind)
				}
			}
		}
		return out
	}
	for command, want := range map[string][]EventKind{
		"start A": {Started, Elected}, "start B": {Started}, "produce A m": {Produced}, "fetch B": {Fetched, Answered},
		"fetch B drop": {Fetched, Acknowledged, Answered}, "crash A": {Crashed}, "elect B": {Elected},
	} {
		if got := kinds(command); !slices.Equal(got, want) {
			t.Errorf("%s: events %v, want %v", command, got, want)
		}
	}
	last := s.Frames[len(s.Frames)-1].Replicas
	if a, b := last[0], last[1]; a.Up || !b.Up || b.Role != "Leader" || b.End != 1 || b.LeaderEpoch != 1 {
		t.Errorf("at the end: %+v and %+v", a, b)
	}
}

// The language is explained where the stories are.
func TestEveryCommandIsExplained(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(stories, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range Commands() {
		name, _, _ := strings.Cut(usage, " ")
		if !strings.Contains(string(b), "`"+name+" ") && !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("README.md does not explain %q", usage)
		}
	}
}

const stories = "../../pkg/replica/core/testdata"

// A story that can be played can be played again with its output in it, and goes the
// same way. Nothing that is written in a story ends the process that plays it.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(stories, "*.txt"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no stories found: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("    output of nothing")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Run(text)
		if err != nil {
			return
		}
		again, err := Run(s.Text)
		if err != nil || again.Text != s.Text {
			t.Errorf("played again it goes otherwise (%v):\n%s\nfirst:\n%s", err, again.Text, s.Text)
		}
	})
}
