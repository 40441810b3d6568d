package log

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// ownIdentity is meta.properties of a volume of Tidemark's.
const ownIdentity = "#\nversion=1\ncluster.id=AQIDBAUGBwgJCgsMDQ4PEA\nnode.id=0\ntidemark.topic=orders\n"

// rich is a directory with a bit of everything: three segments, indexes, two epochs,
// idempotent producers, all codecs, an epoch that wrote nothing, deleted records, stopped in
// good order.
func rich(t testing.TB) *vfs.Mem {
	t.Helper()
	m := newMem(t)
	c := config()
	c.SegmentBytes, c.IndexIntervalBytes = 500, 100
	l, _ := open(t, m, c, true)
	must(t, l.AssignEpoch(2))
	codecs := []batch.Codec{batch.CodecNone, batch.CodecGzip, batch.CodecSnappy, batch.CodecLZ4, batch.CodecZstd}
	for i := range 12 {
		if i == 7 {
			must(t, l.AssignEpoch(5))
		}
		w := batch.NewBuilder().Codec(codecs[i%len(codecs)])
		if i%2 == 0 {
			w.Producer(int64(70+i%4), 1, int32(i/4*2))
		}
		w.Record(int64(1000+i), []byte("key"), []byte("value"), batch.Header{Key: "h", Value: []byte{0xff}}).Record(int64(900+i), nil, nil)
		_, err := l.Append(l.EpochCache().Latest(), []batch.Batch{w.Build()})
		must(t, err)
	}
	must(t, l.SetStartOffset(3))
	must(t, l.AssignEpoch(6))
	must(t, l.Close())
	must(t, l.Checkpoint(20))
	overwrite(t, m, dataDir+"/"+metaFile, []byte(ownIdentity))
	overwrite(t, m, dataDir+"/"+cleanFile, []byte("{}"))
	return m
}

// readOnly is what is in memory, as the inspector sees it.
func readOnly(t testing.TB, m *vfs.Mem) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for _, dir := range []string{dataDir, dataDir + "/orders-0"} {
		names, err := m.List(dir)
		must(t, err)
		for _, name := range names {
			if name != "orders-0" {
				out[strings.TrimPrefix(path.Join(dir, name), dataDir+"/")] = &fstest.MapFile{Data: content(t, m, path.Join(dir, name))}
			}
		}
	}
	return out
}

func verify(t testing.TB, root fs.FS) ([]Finding, Summary) {
	t.Helper()
	in, err := Inspect(root, "orders-0")
	must(t, err)
	var out []Finding
	sum, err := Verify(in, func(f Finding) { out = append(out, f) })
	must(t, err)
	return out, sum
}

func TestVerifyFindsNothingInASoundDirectory(t *testing.T) {
	m := rich(t)
	found, sum := verify(t, readOnly(t, m))
	if len(found) > 0 {
		t.Errorf("findings %v", found)
	}
	if sum.Segments != 3 || sum.Batches != 12 || sum.Records != 24 || sum.Start != 3 || sum.End != 24 || sum.Latest != 6 {
		t.Errorf("summary %+v", sum)
	}
}

// edit changes a file of the directory.
type edit func(t *testing.T, dir fstest.MapFS)

func change(name string, f func([]byte) []byte) edit {
	return func(t *testing.T, dir fstest.MapFS) {
		t.Helper()
		old, ok := dir[name]
		if !ok {
			t.Fatalf("no file %s in %v", name, names(dir))
		}
		dir[name] = &fstest.MapFile{Data: f(bytes.Clone(old.Data))}
	}
}

func names(dir fstest.MapFS) (out []string) {
	for name := range dir {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func flip(name string, at int) edit {
	return change(name, func(b []byte) []byte {
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 1
		return b
	})
}

func put(name, text string) edit {
	return func(_ *testing.T, dir fstest.MapFS) { dir[name] = &fstest.MapFile{Data: []byte(text)} }
}

func gone(suffix string) edit {
	return func(t *testing.T, dir fstest.MapFS) {
		for name := range dir {
			if strings.HasSuffix(name, suffix) {
				delete(dir, name)
				return
			}
		}
		t.Fatalf("no file ends with %s", suffix)
	}
}

func crashed(t *testing.T, dir fstest.MapFS) { gone(cleanFile)(t, dir) }
func kafkas(t *testing.T, dir fstest.MapFS)  { gone(metaFile)(t, dir) }
func drop(n int) func([]byte) []byte         { return func(b []byte) []byte { return b[:len(b)-n] } }
func more(tail ...byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, tail...) }
}
func int32At(at int, v uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b }
}

// sealed changes the first batch of a segment and makes its checksum right again.
func sealed(name string, f func(batch.Batch)) edit {
	return change(name, func(b []byte) []byte {
		first, _, err := batch.Next(b)
		if err != nil {
			panic(err)
		}
		f(first)
		binary.BigEndian.PutUint32(first[17:], first.ComputeCRC())
		return b
	})
}

func TestVerifyTellsEveryDamage(t *testing.T) {
	seg := func(base int, suffix string) string { return "orders-0/" + fileName("", epoch.Offset(base), suffix) }
	first, last := seg(0, suffixLog), seg(16, suffixLog)
	for _, tc := range []struct {
		name  string
		edits []edit
		want  string // severity, file and words of a finding, "|" between
	}{
		{"a bit of a record", []edit{flip(first, 80)}, "error|" + first + ":0|its bytes have changed"},
		{"a bit of the checksum", []edit{flip(first, 18)}, "error|" + first + ":0|its bytes have changed"},
		{"a bit of the base offset", []edit{flip(last, 7)}, "error|" + last + "|offset"},
		{"a bit of the leader epoch", []edit{flip(first, 15)}, "error|" + first + ":|follows one of epoch 3"},
		{"another leader epoch", []edit{change(last, int32At(12, 7))}, "error|" + last + ":0|two histories"},
		{"an epoch that falls", []edit{change(last, int32At(12, 1))}, "error|" + last + ":0|follows one of epoch"},
		{"no epoch", []edit{change(first, int32At(12, 1<<32-1))}, "error|" + first + ":0|no leader epoch"},
		{"a length that lies", []edit{change(first, int32At(8, 1<<20))}, "error|" + first + ":0|are no batches"},
		{"an old format", []edit{change(first, func(b []byte) []byte { b[16] = 1; return b })}, "error|" + first + ":0|format 2 only"},
		{"more records than counted", []edit{sealed(first, func(b batch.Batch) { int32At(57, 1)(b) })}, "error|" + first + ":0|cannot be read"},
		{"fewer records than counted", []edit{sealed(first, func(b batch.Batch) { int32At(57, 3)(b); int32At(23, 2)(b) })}, "error|" + first + ":0|cannot be read"},
		{"a record after the greatest time", []edit{sealed(first, func(b batch.Batch) { b[42] = 0; b[41] = 0 })}, "error|" + first + ":0|after its greatest"},
		{"a segment in the middle gone", []edit{gone(seg(8, suffixLog)[9:])}, "error||gaps between batches"},
		{"the last segment gone, with its end committed", []edit{gone(last), put(highWatermarkFile, "0\n1\norders 0 24\n")}, "error|" + highWatermarkFile + "|committed records are missing"},
		{"the last segment gone, with its end synced", []edit{gone(last)}, "error|" + recoveryPointFile + "|synced"},
		{"an unfinished write under a clean mark", []edit{change(last, drop(1))}, "error|" + last + ":|unfinished last write"},
		{"an unfinished write after a crash", []edit{change(last, drop(1)), crashed, put(recoveryPointFile, "0\n0\n")}, "warning|" + last + ":|unfinished last write"},
		{"zeros after a crash", []edit{change(last, more(make([]byte, 100)...)), crashed}, "warning|" + last + ":|unfinished last write"},
		{"garbage after a crash", []edit{change(last, more([]byte("garbage, of more than a header's length, which is sixty-one bytes")...)), crashed}, "error|" + last + ":|are no batches"},
		{"an index that points between batches", []edit{change(seg(0, suffixIndex), int32At(4, 50))}, "error|" + seg(0, suffixIndex) + ":0|no batch begins"},
		{"an index that points too far", []edit{change(seg(0, suffixIndex), int32At(0, 0))}, "error|" + seg(0, suffixIndex) + ":0|looks for offset 0"},
		{"an index of a shorter offset", []edit{change(seg(0, suffixIndex), int32At(0, 4))}, "error|" + seg(0, suffixIndex) + ":0|looks for offset 4"},
		{"an index behind the segment", []edit{change(seg(0, suffixIndex), more(0, 0, 0, 9, 0, 1, 0, 0))}, "error|" + seg(0, suffixIndex) + ":|behind the last batch"},
		{"half an index entry", []edit{change(seg(0, suffixIndex), drop(3))}, "error|" + seg(0, suffixIndex) + ":|no whole entries"},
		{"a missing index", []edit{gone(seg(0, suffixIndex))}, "warning|" + seg(0, suffixIndex) + "|is missing"},
		{"a time index with an earlier time", []edit{change(seg(0, suffixTimeIndex), func(b []byte) []byte { b[7]--; return b })}, "error|" + seg(0, suffixTimeIndex) + ":0|greatest time up to"},
		{"a time index that ends early", []edit{change(seg(0, suffixTimeIndex), drop(timeEntrySize))}, "error|" + seg(0, suffixTimeIndex) + ":|pass it over"},
		{"a time index behind the segment", []edit{change(seg(0, suffixTimeIndex), more(0, 0, 0, 0, 0, 0, 9, 9, 0, 0, 9, 9))}, "error|" + seg(0, suffixTimeIndex) + ":|the segment ends with"},
		{"a time index that falls", []edit{change(seg(0, suffixTimeIndex), func(b []byte) []byte { return append(b, b[:timeEntrySize]...) })}, "error|" + seg(0, suffixTimeIndex) + ":24|follows time 1003"},
		{"epochs of another history", []edit{put("orders-0/"+epochFile, "0\n2\n2 3\n5 10\n")}, "error||two histories"},
		{"epochs that are garbage", []edit{put("orders-0/"+epochFile, "1\n")}, "error|orders-0/" + epochFile + "|cannot be used"},
		{"epochs missing", []edit{gone(epochFile)}, "warning|orders-0/" + epochFile + "|is missing"},
		{"an epoch behind the end", []edit{put("orders-0/"+epochFile, "0\n3\n2 3\n5 14\n6 25\n")}, "error|orders-0/" + epochFile + "|the log ends at 24"},
		{"a snapshot with a flipped bit", []edit{flip(seg(24, suffixSnapshot), 20)}, "error|" + seg(24, suffixSnapshot) + "|cannot be used"},
		{"a snapshot of another history", []edit{change(seg(24, suffixSnapshot), otherSequence)}, "error|" + seg(24, suffixSnapshot) + ":10|has producer 70"},
		{"a snapshot that knows more", []edit{change(seg(24, suffixSnapshot), func(b []byte) []byte { return resum(int64At(10, 99)(b)) })}, "error|" + seg(24, suffixSnapshot) + ":10|the log has none"},
		{"a snapshot of batches behind it", []edit{change(seg(24, suffixSnapshot), func(b []byte) []byte { return resum(int64At(24, 24)(b)) })}, "error|" + seg(24, suffixSnapshot) + ":10|behind the snapshot"},
		{"a snapshot inside of a batch", []edit{put(seg(7, suffixSnapshot), string(newProducerState().encode()))}, "error|" + seg(7, suffixSnapshot) + "|inside of a batch"},
		{"a snapshot behind the end", []edit{put(seg(30, suffixSnapshot), string(newProducerState().encode()))}, "error|" + seg(30, suffixSnapshot) + "|the log ends at 24"},
		{"a broken checkpoint", []edit{put(recoveryPointFile, "0\n")}, "error|" + recoveryPointFile + "|cannot be used"},
		{"a log start behind the end", []edit{put(logStartFile, "0\n1\norders 0 99\n")}, "error|" + logStartFile + "|begins at offset 99"},
		{"a high watermark below the start", []edit{put(highWatermarkFile, "0\n1\norders 0 1\n")}, "warning|" + highWatermarkFile + "|below the log's start"},
		{"another topic id", []edit{put("orders-0/"+metadataFile, string(formatMetadata(epoch.UUID{9})))}, "error|orders-0/" + metadataFile + "|is of topic id"},
		{"no topic id", []edit{gone(metadataFile)}, "error|orders-0/" + metadataFile + "|is missing"},
		{"a broken topic id", []edit{put("orders-0/"+metadataFile, "version: 7\n")}, "error|orders-0/" + metadataFile + "|cannot be used"},
		{"a volume of another topic", []edit{put(metaFile, strings.Replace(ownIdentity, "orders", "payments", 1))}, "error|" + metaFile + "|of topic payments"},
		{"a disk that failed", []edit{put(failedFile, "a sync failed\n")}, "warning|" + failedFile + "|a sync failed"},
		{"data set aside", []edit{put("quarantine/x", "")}, "warning|quarantine|set aside"},
		{"a stray file", []edit{put("orders-0/core.1", "")}, "warning|orders-0/core.1|not a file of a log"},
		{"a swap", []edit{put(seg(0, ".log.swap"), "")}, "warning|" + seg(0, ".log.swap") + "|unfinished compaction"},
		{"a deleted segment", []edit{put(seg(0, ".log.deleted"), "")}, "warning|" + seg(0, ".log.deleted") + "|next start removes"},
		{"an index without segment", []edit{put(seg(1, ".index"), "")}, "warning|" + seg(1, ".index") + "|next start removes"},
		{"aborted transactions", []edit{put(seg(0, ".txnindex"), "x")}, "warning|" + seg(0, ".txnindex") + "|aborted"},
		{"a gap in Kafka's log", []edit{kafkas, gone(seg(8, suffixLog)[9:])}, "warning||gaps between batches"},
		{"no topic id in Kafka's log", []edit{kafkas, gone(metadataFile)}, "warning|orders-0/" + metadataFile + "|is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := readOnly(t, rich(t))
			for _, e := range tc.edits {
				e(t, dir)
			}
			found, sum := verify(t, dir)
			words := strings.Split(tc.want, "|")
			if !slices.ContainsFunc(found, func(f Finding) bool {
				line := f.String()
				return strings.HasPrefix(line, words[0]) && strings.Contains(line, words[1]) && strings.Contains(line, words[2])
			}) {
				t.Errorf("no finding %q; files %v; found:\n%s", tc.want, names(dir), lines(found))
			}
			if wantErrors := words[0] == "error"; wantErrors != (sum.Errors > 0) {
				t.Errorf("%d errors; found:\n%s", sum.Errors, lines(found))
			}
		})
	}
}

func lines(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func int64At(at int, v uint64) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint64(b[at:], v); return b }
}

// resum makes a snapshot's checksum right.
func resum(b []byte) []byte {
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

func otherSequence(b []byte) []byte { b[23]++; return resum(b) }

func TestVerifyWarnsOfATimeThatNoRecordHas(t *testing.T) {
	b := batch.NewBuilder().LeaderEpoch(2).Record(1000, nil, []byte("a")).Build()
	b[41]++
	binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
	found, sum := verify(t, fstest.MapFS{"orders-0/" + fileName("", 0, suffixLog): &fstest.MapFile{Data: b}})
	if sum.Errors != 0 || !strings.Contains(lines(found), "no record of its greatest time, 1256") {
		t.Errorf("%+v\n%s", sum, lines(found))
	}
}

// Compaction takes records out of a batch and leaves its offsets.
func TestVerifyTakesACompactedBatch(t *testing.T) {
	w := batch.NewBuilder().LeaderEpoch(2).Record(1000, nil, []byte("a"))
	thin := w.Build()
	int32At(23, 4)(thin) // five offsets, one record
	binary.BigEndian.PutUint32(thin[17:], thin.ComputeCRC())
	dir := fstest.MapFS{"orders-0/" + fileName("", 0, suffixLog): &fstest.MapFile{Data: thin}}
	found, sum := verify(t, dir)
	if sum.Errors != 0 || sum.Thinned != 1 || sum.End != 5 || sum.Warnings != 2 {
		t.Errorf("%+v\n%s", sum, lines(found))
	}
}

func TestVerifyKnowsTransactions(t *testing.T) {
	const transactional, control = 0x10, 0x20
	marker := func(kind byte) batch.Batch {
		return batch.NewBuilder().Producer(7, 0, -1).Attributes(transactional|control).Record(1000, []byte{0, 0, 0, kind}, make([]byte, 6)).Build()
	}
	data := batch.NewBuilder().Producer(7, 0, 0).Attributes(transactional).Record(1000, nil, []byte("a")).Build()
	for _, tc := range []struct {
		name    string
		batches []batch.Batch
		aborted int64
		open    int
	}{
		{"committed", []batch.Batch{data, marker(1)}, 0, 0},
		{"aborted", []batch.Batch{data, marker(0)}, 1, 0},
		{"open", []batch.Batch{data}, 0, 1},
	} {
		var b []byte
		for i, x := range tc.batches {
			b = append(b, fetched(bytes.Clone(x), epoch.Offset(i), 0)...)
		}
		_, sum := verify(t, fstest.MapFS{"orders-0/" + fileName("", 0, suffixLog): &fstest.MapFile{Data: b}})
		if sum.Errors != 0 || sum.Aborted != tc.aborted || sum.OpenTransactions != tc.open {
			t.Errorf("%s: %+v", tc.name, sum)
		}
	}
}

// Kafka gives the indexes of the segment being written their size in advance.
func TestVerifyPassesOverPreallocatedIndexes(t *testing.T) {
	dir := readOnly(t, rich(t))
	crashed(t, dir)
	for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
		change("orders-0/"+fileName("", 16, suffix), more(make([]byte, 100*timeEntrySize*offsetEntrySize)...))(t, dir)
	}
	if found, _ := verify(t, dir); len(found) > 0 {
		t.Errorf("found:\n%s", lines(found))
	}
}

// A log in use may end in the middle of a write, and lose its oldest segments meanwhile.
func TestVerifyFindsNoErrorInALogInUse(t *testing.T) {
	dir := t.TempDir()
	l, _, err := Open(vfs.OS{}, dir, smallSegments(50), false, quiet())
	must(t, err)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			_, err := l.Append(epoch.LeaderEpoch(i/300), []batch.Batch{one(i), many(i, 3)})
			if err == nil && i%200 == 199 {
				err = errors.Join(l.SetStartOffset(l.EndOffset()-100), l.Checkpoint(l.EndOffset()))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 20 {
		in, err := Inspect(os.DirFS(dir), "orders-0")
		if err != nil {
			t.Error(err)
			break
		}
		_, err = Verify(in, func(f Finding) {
			if f.Severity == Error {
				t.Error(f)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	<-done
	must(t, l.Close())
	if found, sum := verify(t, os.DirFS(dir)); len(found) > 0 || sum.End != l.EndOffset() {
		t.Errorf("stopped: %+v\n%s", sum, lines(found))
	}
}

func TestInspectNamesThePartition(t *testing.T) {
	for name, want := range map[string]string{
		"orders-0": "orders 0", "a-b.c_d-12": "a-b.c_d 12", "orders-3.0a1b-delete": "orders 3", "other": "other -1", "x-99999999999": "x-99999999999 -1",
	} {
		in, err := Inspect(fstest.MapFS{name + "/f": &fstest.MapFile{}}, name)
		must(t, err)
		if got := fmt.Sprint(in.Topic, " ", in.Partition); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := Inspect(fstest.MapFS{}, "orders-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}
