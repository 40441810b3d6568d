package kafka

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/logtool"
)

// segments makes topics roll after some kilobytes.
var segments = map[string]string{"internal.segment.bytes": "16384"}

// A broker's directory, stopped in good order and killed, is sound, is read by
// Tidemark as Kafka reads it, and goes on in Tidemark with the very records; and one of
// Tidemark's, in the place of a broker's, goes on in Kafka.
func TestLogsMoveBothWays(t *testing.T) {
	needKafka(t)
	// What the broker shall go on with. Kafka wants its own leader epoch not to be older than the log's.
	own := stopped(t, [5]epoch.LeaderEpoch{0, 0, 1, 1, 1})
	before, end := served(t, own)

	k := newCluster(t)
	k.start()
	createTopic(t, k.address, topic, segments)
	back := createTopic(t, k.address, "back", segments)
	torn := createTopic(t, k.address, "torn", segments)
	createTopic(t, k.address, "late", map[string]string{"message.timestamp.type": "LogAppendTime"})
	produce(t, k.address, topic, 0, 400)
	produce(t, k.address, "late", 0, 50)
	deleteRecords(t, k.address, topic, 100)
	writeForeign(t, k)
	k.stop()
	checkForeign(t, k)
	orderly := k.snapshot(topic)
	appendTimes := k.snapshot("late")
	sameFiles(t, orderly)
	sameFiles(t, appendTimes)
	k.replace("back", back, own)

	k.start()
	if got := consume(t, k.address, "back", -1, end); !slices.Equal(got, before) {
		t.Errorf("Kafka serves other records than Tidemark: %s", firstDifference(got, before))
	}
	if said := k.complaints("back-0"); len(said) > 0 {
		t.Errorf("Kafka finds something wrong with Tidemark's directory:\n%s", strings.Join(said, "\n"))
	}
	produce(t, k.address, "back", 0, 30)
	if n := endOf(t, k.address, "back"); n != end+30 {
		t.Errorf("Kafka's log ends at %d after 30 records behind %d", n, end)
	}
	produce(t, k.address, topic, 400, 700)
	inKafka := map[string][]string{orderly: consume(t, k.address, topic, -1, 400), appendTimes: consume(t, k.address, "late", -1, 50)}
	all := consume(t, k.address, topic, -1, 700)
	wholeBack := consume(t, k.address, "back", -1, end+30)
	if warnings := sound(t, k.snapshot(topic)); len(warnings) > 0 {
		t.Errorf("of a broker at work: %s", strings.Join(warnings, "\n"))
	}
	k.kill()
	killed := k.snapshot(topic)
	inKafka[killed] = all
	killedBack := k.snapshot("back")

	unfinished, whole := tornLog(t)
	k.replace("torn", torn, unfinished)
	k.start() // recovers what Tidemark began and Kafka went on with, and what a killed Tidemark left
	if got := consume(t, k.address, "torn", -1, int64(len(whole))); !slices.Equal(got, whole) {
		t.Errorf("Kafka recovers another log than Tidemark: %s", firstDifference(got, whole))
	}
	if n := endOf(t, k.address, "torn"); n != int64(len(whole)) {
		t.Errorf("Kafka recovers %d records, Tidemark %d", n, len(whole))
	}
	if got := consume(t, k.address, "back", -1, end+30); !slices.Equal(got, wholeBack) {
		t.Errorf("after a crash Kafka serves other records: %s", firstDifference(got, wholeBack))
	}
	k.stop()

	agree(t, orderly, appendTimes, k.snapshot("back"), k.snapshot(topic))
	for _, dir := range []string{orderly, killed, appendTimes, killedBack, k.snapshot("back")} {
		if warnings := sound(t, dir); len(warnings) > 0 {
			t.Errorf("%s: %s", dir, strings.Join(warnings, "\n"))
		}
	}
	inKafka[k.snapshot("back")] = wholeBack
	var volumes []string
	for dir, records := range inKafka {
		volumes = append(volumes, goesOn(t, dir, records))
	}
	agree(t, volumes...)
}

// sameFiles demands that Tidemark, given nothing but the batches that a broker wrote in one
// life, makes the very files beside them that the broker made: indexes, leader epochs and the
// producers at the end.
func sameFiles(t *testing.T, dir string) {
	t.Helper()
	in, path, err := logtool.Find(dir)
	must(t, err)
	id, err := in.TopicID()
	must(t, err)
	mine := t.TempDir()
	copyDir(t, dir, filepath.Join(mine, "data"))
	place := filepath.Join(mine, "data", in.Name)
	for _, name := range in.Names {
		if filepath.Ext(name) != ".log" && name != "partition.metadata" {
			must(t, os.Remove(filepath.Join(place, name)))
		}
	}
	l, r, err := log.Open(vfs.OS{}, filepath.Dir(place), log.Config{Topic: in.Topic, TopicID: id, IndexIntervalBytes: indexInterval}, false, logr.Discard())
	must(t, err)
	must(t, l.Close())
	if r.CutAt != epoch.NoOffset {
		t.Errorf("%s: cut at %d", dir, r.CutAt)
	}
	last := fmt.Sprintf("%020d.snapshot", l.EndOffset())
	compared := 0
	for _, name := range in.Names {
		if filepath.Ext(name) == ".snapshot" && name != last {
			continue // written on the way; a start needs only the last
		}
		kafka, err := os.ReadFile(filepath.Join(path, name))
		must(t, err)
		tidemark, err := os.ReadFile(filepath.Join(place, name))
		must(t, err)
		if !bytes.Equal(kafka, tidemark) {
			t.Errorf("%s: Kafka's %s is\n%x\nTidemark's\n%x", dir, name, kafka, tidemark)
		}
		compared++
	}
	if !in.Has(last) || compared < 6 {
		t.Errorf("%s: only %d files to compare: %v", dir, compared, in.Names)
	}
}

// served is what Tidemark serves of a log, and where that ends.
func served(t *testing.T, dir string) (records []string, end int64) {
	t.Helper()
	data := t.TempDir()
	made, err := logtool.Import(dir, filepath.Join(data, "volume"), logtool.ImportOptions{Topic: topic})
	must(t, err)
	p, address := replicaOn(t, data)
	defer p.end(syscall.SIGTERM)
	return consume(t, address, topic, -1, int64(made.End)), int64(made.End)
}

// tornLog is a log as a killed process leaves it, its last batch half written, and what
// Tidemark serves of it.
func tornLog(t *testing.T) (dir string, records []string) {
	t.Helper()
	source := t.TempDir()
	w := &writer{t: t, log: openLog(t, source, false)}
	w.batches(0, 120)
	w.batches(1, 80)
	must(t, w.log.Checkpoint(100))
	dir = filepath.Join(t.TempDir(), "torn")
	copyDir(t, source, dir)
	must(t, w.log.Close())
	logs, err := filepath.Glob(filepath.Join(dir, topic+"-0", "*.log"))
	must(t, err)
	last := logs[len(logs)-1]
	b, err := os.ReadFile(last)
	must(t, err)
	must(t, os.WriteFile(last, b[:len(b)-20], 0o644))
	records, _ = served(t, dir)
	return dir, records
}

// goesOn imports a log and demands that Tidemark serves those records, and takes new ones in
// a newer epoch. It returns the volume.
func goesOn(t *testing.T, dir string, records []string) string {
	t.Helper()
	data := t.TempDir()
	volume := filepath.Join(data, "volume")
	made, err := logtool.Import(dir, volume, logtool.ImportOptions{Topic: topic, TopicID: epoch.UUID{5}})
	must(t, err)
	p, address := replicaOn(t, data)
	end := int64(made.End)
	if got := consume(t, address, topic, -1, end); !slices.Equal(got, records) {
		t.Errorf("%s: Tidemark serves other records than Kafka: %s", dir, firstDifference(got, records))
	}
	produce(t, address, topic, 0, 30)
	tail := consume(t, address, topic, end, end+30)
	if want := fmt.Sprintf("%d epoch %d ", end, made.Latest+1); len(tail) != 30 || !strings.HasPrefix(tail[0], want) {
		t.Errorf("%s: %d new records, the first %.60q, want %q", dir, len(tail), tail[0], want)
	}
	p.end(syscall.SIGTERM)
	if warnings := sound(t, volume); len(warnings) > 0 {
		t.Errorf("%s, gone on with: %s", dir, strings.Join(warnings, "\n"))
	}
	return volume
}

func firstDifference(got, want []string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(nothing)"
	}
	return fmt.Sprintf("%d and %d, the first that differ:\n%.300s\n%.300s", len(got), len(want), at(got), at(want))
}
