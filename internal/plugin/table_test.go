package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Every testdata/status/NAME.yaml is a partition, and NAME.WIDTH.txt how it is shown.
func TestStatusText(t *testing.T) {
	files, err := filepath.Glob("testdata/status/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no partitions", err)
	}
	for _, file := range files {
		for _, width := range []int{0, 80, 120} {
			t.Run(fmt.Sprintf("%s at %d columns", filepath.Base(file), width), func(t *testing.T) {
				text := statusText(readPartition(t, file), "orders", width)
				for line := range strings.Lines(text) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, 80) {
						t.Errorf("a line of %d columns: %s", n, line)
					}
				}
				golden(t, fmt.Sprintf("%s.%d.txt", strings.TrimSuffix(file, ".yaml"), max(width, 80)), text)
			})
		}
	}
}

func readPartition(t *testing.T, file string) *v1alpha1.ReplicatedPartition {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rp := &v1alpha1.ReplicatedPartition{}
	if err := yaml.UnmarshalStrict(b, rp); err != nil {
		t.Fatal(err)
	}
	return rp
}

func TestBar(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		leo, hw, start, leader *int64
		want                   string
	}{
		"all the same":                     {at(100), at(100), at(0), at(100), "[=========|]"},
		"half of it":                       {at(50), at(30), at(0), at(100), "[==|==     ]"},
		"from the log's start":             {at(1050), at(1030), at(1000), at(1100), "[==|==     ]"},
		"one record behind is not full":    {at(999999), at(999999), at(0), at(1000000), "[========| ]"},
		"nothing yet":                      {at(0), at(0), at(0), at(100), "[|         ]"},
		"an empty log":                     {at(0), at(0), at(0), at(0), "[=========|]"},
		"more than a leader that is older": {at(200), at(100), at(0), at(150), "[=====|====]"},
		"below the leader's start":         {at(5), at(5), at(10), at(20), "[|         ]"},
		"a high watermark that is unknown": {at(50), nil, at(0), at(100), "[=====     ]"},
		"an end that is unknown":           {nil, at(50), at(0), at(100), "[?         ]"},
		"a leader that is unknown":         {at(50), at(50), at(0), nil, "[?         ]"},
		"near the end of all numbers":      {at(1<<62 + 1<<61), at(1 << 62), at(0), at(1<<63 - 1), "[====|==   ]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := bar(v1alpha1.ReplicaStatus{LogEndOffset: c.leo, HighWatermark: c.hw}, v1alpha1.ReplicatedPartitionStatus{LogStartOffset: c.start, LogEndOffset: c.leader}, 10)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRedraw(t *testing.T) {
	for name, c := range map[string]struct {
		drawn, height int
		want          string
	}{
		"the first picture":             {0, 24, "a\nb\n"},
		"over the one before":           {5, 24, "\x1b[5A\r\x1b[Ja\nb\n"},
		"over one that scrolled away":   {24, 24, "\x1b[H\x1b[2Ja\nb\n"},
		"larger than the screen itself": {1, 2, "\x1b[H\x1b[2Ja\nb\n"},
	} {
		if got := redraw("a\nb\n", c.drawn, c.height); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestShortenKeepsBothEnds(t *testing.T) {
	for width, want := range map[int]string{40: "ip-10-0-1-23.example.internal", 12: "ip-10..ernal", 7: "ip..nal", 5: "i..al"} {
		if got := shorten("ip-10-0-1-23.example.internal", width); got != want {
			t.Errorf("at %d: %q, want %q", width, got, want)
		}
	}
}
