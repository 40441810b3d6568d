package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/story"
	"github.com/tidemark-io/tidemark/internal/story/picture"
)

var rewrite = flag.Bool("rewrite", false, "write the pictures of docs/pictures anew")

const (
	stories  = "../../../pkg/replica/core/testdata"
	pictures = "../../../docs/pictures"
)

// play plays a story of the repository, or skips if this build cannot.
func play(t *testing.T, name string) *story.Story {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(stories, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := story.Run(string(b))
	if errors.Is(err, story.ErrNeedsMutants) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryStoryIsDrawn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(stories, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			s := play(t, name)
			svg := picture.Render(name, s)
			texts, crosses := read(t, svg)
			for want, count := range marks(s) {
				if got := strings.Count(texts, want); got < count {
					t.Errorf("%q is drawn %d times, want at least %d", want, got, count)
				}
			}
			if want := dead(s); crosses < want {
				t.Errorf("%d crosses, want at least %d for what died or was lost", crosses, want)
			}
			if bytes.Contains(svg, []byte("http")) && bytes.Count(svg, []byte("http")) > 1 {
				t.Error("the picture needs something from outside")
			}
		})
	}
}

// read checks that a picture is well-formed and returns its texts, and how many
// crosses it has.
func read(t *testing.T, svg []byte) (texts string, crosses int) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), crosses
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.CharData:
			b.Write(e)
			b.WriteByte('\n')
		case xml.StartElement:
			for _, a := range e.Attr {
				if e.Name.Local == "path" && a.Name.Local == "class" && a.Value == "x" {
					crosses++
				}
			}
		}
	}
}

// marks is what has to be in the picture of a story, and how often.
func marks(s *story.Story) map[string]int {
	want := map[string]int{}
	for _, f := range s.Frames {
		for _, r := range f.Replicas {
			want["\n"+r.Name+"\n"] = 1
			want["HW "] = 1
			want["LEO "] = 1
		}
		for _, e := range f.Events {
			switch e.Kind {
			case story.Fetched:
				want["fetch("]++
			case story.Elected:
				want["leads epoch"]++
			case story.Acknowledged:
				want["✓"]++
			case story.Truncated:
				want["truncates to"] += strings.Count(e.Text, "truncates to")
			case story.Lost:
				want["acknowledged records lost: "]++
			case story.Diverged:
				want["logs differ: "]++
			}
		}
	}
	return want
}

// dead counts what a cross stands for.
func dead(s *story.Story) int {
	n := 0
	for _, f := range s.Frames {
		for _, e := range f.Events {
			if e.Kind == story.Crashed || e.Kind == story.Exited || e.Missed && e.Peer != "" {
				n++
			}
		}
	}
	return n
}

// The pictures of the documentation show what the shipping code does. After a wanted
// change: go test -tags mutants ./internal/story/picture -rewrite.
func TestPicturesOfTheDocumentationAreCurrent(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pictures, "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pictures found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".svg")
		t.Run(name, func(t *testing.T) {
			want := picture.Render(name, play(t, name))
			if *rewrite {
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("the picture is not what the story looks like now; draw it with -rewrite and look at it")
			}
		})
	}
}
