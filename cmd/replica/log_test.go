package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// replicaCommand runs the program's command line and returns its exit status.
func replicaCommand(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	c := command()
	var b bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&b)
	return statusOf(c.ExecuteContext(t.Context())), b.String()
}

func TestLogCommandsEndWithTheirStatus(t *testing.T) {
	dir := t.TempDir()
	l, _, err := log.Open(vfs.OS{}, dir, log.Config{Topic: "orders", TopicID: epoch.UUID{1}}, true, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(1, []batch.Batch{batch.NewBuilder().Values("a", "b").Build()}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "orders-0")
	if err := os.CopyFS(damaged, os.DirFS(filepath.Join(dir, "orders-0"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "leader-epoch-checkpoint"), []byte("?"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		out    string
	}{
		{"dump", []string{"dump", dir}, 0, "epoch        1  from offset"},
		{"dump as JSON", []string{"dump", "--json", dir}, 0, `{"kind":"epoch","leaderEpoch":1,"startOffset":0}`},
		{"verify a sound log", []string{"verify", dir}, 0, "2 records"},
		{"verify a damaged log", []string{"verify", damaged}, 1, "error    orders-0/leader-epoch-checkpoint"},
		{"import", []string{"import", dir, filepath.Join(t.TempDir(), "v"), "--topic", "bills"}, 0, "offsets 0 to 2, all committed"},
		{"import a damaged log", []string{"import", damaged, filepath.Join(t.TempDir(), "v"), "--topic", "bills"}, 1, "error    orders-0"},
		{"verify what is no log", []string{"verify", t.TempDir()}, 2, ""},
		{"dump of nothing", []string{"dump", filepath.Join(dir, "x")}, 2, ""},
		{"no directory", []string{"verify"}, 2, ""},
		{"an unknown flag", []string{"dump", "--xml", dir}, 2, ""},
		{"no topic", []string{"import", dir, t.TempDir()}, 2, ""},
		{"a topic id that is none", []string{"import", dir, t.TempDir(), "--topic", "a", "--topic-id", "?"}, 2, ""},
	} {
		status, out := replicaCommand(t, append([]string{"log"}, tc.args...)...)
		if status != tc.status || !strings.Contains(out, tc.out) {
			t.Errorf("%s: status %d, want %d with %q:\n%s", tc.name, status, tc.status, tc.out, out)
		}
	}
}
