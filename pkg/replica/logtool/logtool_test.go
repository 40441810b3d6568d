package logtool

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

var topicID = epoch.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written is a data directory with a log of two segments and two leader epochs.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	l, _, err := log.Open(vfs.OS{}, dir, log.Config{Topic: "orders", TopicID: topicID, SegmentBytes: 200, IndexIntervalBytes: 50}, true, logr.Discard())
	must(t, err)
	appendOne := func(e epoch.LeaderEpoch, w *batch.Builder) {
		_, err := l.Append(e, []batch.Batch{w.Build()})
		must(t, err)
	}
	appendOne(3, batch.NewBuilder().Producer(7, 1, 0).Record(1000, []byte("k"), []byte("<a>"), batch.Header{Key: "h", Value: []byte{0xff}}).Record(1001, nil, nil))
	appendOne(3, batch.NewBuilder().Record(1002, []byte{}, []byte{0, 0xfe}))
	appendOne(5, batch.NewBuilder().Record(1003, nil, []byte("c")))
	must(t, l.Close())
	must(t, l.Checkpoint(2))
	return dir
}

func dump(t *testing.T, dir string, o DumpOptions) string {
	t.Helper()
	in, _, err := Find(dir)
	must(t, err)
	var out bytes.Buffer
	must(t, Dump(&out, in, o))
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if os.Getenv("REWRITE") != "" {
		must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s differs; REWRITE=1 writes it anew; got:\n%s", name, got)
	}
}

func TestDumpPrintsText(t *testing.T) {
	golden(t, "dump.txt", dump(t, written(t), DumpOptions{Records: true}))
}

func TestDumpPrintsJSON(t *testing.T) {
	got := dump(t, filepath.Join(written(t), "orders-0"), DumpOptions{JSON: true, Records: true})
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	golden(t, "dump.json", got)
}

func TestDumpShowsDamageAndGoesOn(t *testing.T) {
	dir := written(t)
	name := filepath.Join(dir, "orders-0", "00000000000000000000.log")
	b, err := os.ReadFile(name)
	must(t, err)
	b[65] ^= 1
	must(t, os.WriteFile(name, append(b, 1, 2, 3), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "orders-0", "leader-epoch-checkpoint"), []byte("?"), 0o644))
	got := dump(t, dir, DumpOptions{Records: true})
	for _, want := range []string{"WRONG", "damage  leader-epoch-checkpoint", "damage  00000000000000000000.log:", "3 bytes are no batches", "00000000000000000003.log"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func TestFindTellsDirectoriesApart(t *testing.T) {
	dir := written(t)
	for _, d := range []string{dir, filepath.Join(dir, "orders-0")} {
		if in, path, err := Find(d); err != nil || in.Topic != "orders" || path != filepath.Join(dir, "orders-0") {
			t.Errorf("%s: %+v %s %v", d, in, path, err)
		}
	}
	alone := t.TempDir()
	must(t, os.CopyFS(filepath.Join(alone, "volume"), os.DirFS(dir)))
	if _, path, err := Find(alone); err != nil || path != filepath.Join(alone, "volume", "orders-0") {
		t.Errorf("of a standalone replica: %s %v", path, err)
	}
	// A data directory whose own name looks like a partition's.
	data := filepath.Join(t.TempDir(), "data-1")
	must(t, os.MkdirAll(filepath.Join(data, "orders-7"), 0o755))
	if in, _, err := Find(data); err != nil || in.Partition != 7 {
		t.Errorf("data-1: %+v %v", in, err)
	}
	must(t, os.MkdirAll(filepath.Join(data, "orders-8"), 0o755))
	if _, _, err := Find(data); err == nil || !strings.Contains(err.Error(), "orders-7, orders-8") {
		t.Errorf("of two: %v", err)
	}
	if _, _, err := Find(t.TempDir()); err == nil {
		t.Error("an empty directory is a log")
	}
}

// contents is every file below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return err
	}))
	return out
}

func TestImportMakesADataDirectory(t *testing.T) {
	source, target := written(t), filepath.Join(t.TempDir(), "volume")
	before := contents(t, source)
	made, err := Import(source, target, ImportOptions{Topic: "bills", Replica: 2})
	must(t, err)
	if want := (Imported{TopicID: topicID, Start: 0, End: 4, Latest: 5}); made != want {
		t.Errorf("made %+v, want %+v", made, want)
	}
	after := contents(t, source)
	if len(after) != len(before) {
		t.Errorf("the source has %d files, had %d", len(after), len(before))
	}
	for name, b := range before {
		if after[name] != b {
			t.Errorf("the source's %s has changed", name)
		}
	}
	got := contents(t, target)
	for name, b := range before {
		if strings.HasSuffix(name, ".log") || strings.HasSuffix(name, "leader-epoch-checkpoint") || strings.HasSuffix(name, "partition.metadata") {
			if name = strings.Replace(name, "orders", "bills", 1); strings.TrimSpace(got[name]) != strings.TrimSpace(b) {
				t.Errorf("%s differs: %q", name, got[name])
			}
		}
	}
	if hw := got["replication-offset-checkpoint"]; hw != "0\n1\nbills 0 4\n" {
		t.Errorf("high watermark: %q; all that is there counts as committed", hw)
	}
	if id := got["meta.properties"]; !strings.Contains(id, "cluster.id="+topicID.String()+"\nnode.id=2\n") || !strings.Contains(id, "tidemark.topic=bills\n") ||
		!strings.HasSuffix(id, "tidemark.import.leader.epoch=5\ntidemark.import.producer.id=7\n") {
		t.Errorf("identity: %q", id)
	}
	if _, err := os.Stat(filepath.Join(target, staging)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("staging: %v", err)
	}
	in, _, err := Find(target)
	must(t, err)
	sum, err := log.Verify(in, func(f log.Finding) { t.Errorf("import has made: %s", f) })
	if err != nil || sum.Records != 4 {
		t.Errorf("%+v %v", sum, err)
	}
}

func TestImportLeavesAnUnfinishedWriteOut(t *testing.T) {
	source, target := written(t), filepath.Join(t.TempDir(), "volume")
	name := filepath.Join(source, "orders-0", "00000000000000000003.log")
	b, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, append(b, make([]byte, 30)...), 0o644))
	made, err := Import(source, target, ImportOptions{Topic: "orders", TopicID: epoch.UUID{9}})
	must(t, err)
	if made.TornBytes != 30 || made.End != 4 || made.TopicID != (epoch.UUID{9}) {
		t.Errorf("made %+v", made)
	}
}

func TestImportRefuses(t *testing.T) {
	inLog := func(name string, f func([]byte) []byte) func(t *testing.T, source, target string) {
		return func(t *testing.T, source, _ string) {
			name := filepath.Join(source, "orders-0", name)
			b, err := os.ReadFile(name)
			if !errors.Is(err, os.ErrNotExist) {
				must(t, err)
			}
			must(t, os.WriteFile(name, f(b), 0o644))
		}
	}
	inTarget := func(name string) func(t *testing.T, source, target string) {
		return func(t *testing.T, _, target string) {
			must(t, os.MkdirAll(filepath.Join(target, filepath.Dir(name)), 0o755))
			must(t, os.WriteFile(filepath.Join(target, name), nil, 0o644))
		}
	}
	const first = "00000000000000000000.log"
	// As compaction leaves it, which makes the indexes anew.
	gap := func(t *testing.T, source, target string) {
		inLog(first, func(b []byte) []byte { return b[:83] })(t, source, target)
		for _, suffix := range []string{".index", ".timeindex"} {
			must(t, os.Remove(filepath.Join(source, "orders-0", strings.TrimSuffix(first, ".log")+suffix)))
		}
	}
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, source, target string)
		want  string
	}{
		"a damaged log":             {inLog(first, func(b []byte) []byte { b[65] ^= 1; return b }), "damaged"},
		"format 1":                  {inLog(first, func(b []byte) []byte { b[16] = 1; return b }), "format 0 or 1"},
		"an unfinished swap":        {inLog(first+".swap", func([]byte) []byte { return nil }), "compaction is unfinished"},
		"a gap":                     {gap, "gaps"},
		"an aborted transaction":    {inLog("00000000000000000003.log", func(b []byte) []byte { return append(b, marker(4, 0)...) }), "aborted"},
		"a log with that topic":     {inTarget("bills-0/partition.metadata"), "bills-0"},
		"a log with another topic":  {inTarget("other-0/partition.metadata"), "other-0"},
		"a volume":                  {inTarget("meta.properties"), "meta.properties"},
		"an import that had no end": {inTarget(staging + "/x"), "left of an import"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := written(t), t.TempDir()
			tc.spoil(t, source, target)
			before := contents(t, target)
			_, err := Import(source, target, ImportOptions{Topic: "bills"})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
			if after := contents(t, target); len(after) != len(before) {
				t.Errorf("left behind: %v", after)
			}
		})
	}
	if _, err := Import(written(t), t.TempDir(), ImportOptions{Topic: "a/b"}); err == nil || !strings.Contains(err.Error(), "topic") {
		t.Errorf("topic a/b: %v", err)
	}
}

// marker is the end of a transaction at an offset, committed if kind is 1.
func marker(at epoch.Offset, kind byte) []byte {
	const transactional, control = 0x10, 0x20
	return batch.NewBuilder().BaseOffset(at).LeaderEpoch(5).Producer(9, 0, -1).Attributes(transactional|control).Record(2000, []byte{0, 0, 0, kind}, make([]byte, 6)).Build()
}

// Every kind of line is in the golden files, so that a new one is not forgotten there.
func TestGoldenFilesShowEveryKind(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "dump.json"))
	must(t, err)
	var kinds []string
	for line := range strings.Lines(string(b)) {
		var e struct{ Kind string }
		must(t, json.Unmarshal([]byte(line), &e))
		if !slices.Contains(kinds, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	want := []string{"log", "checkpoint", "epoch", "segment", "batch", "record", "offsetIndex", "timeIndex", "snapshot", "producer"}
	if !slices.Equal(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
}
