package kafka

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

var codecs = []batch.Codec{batch.CodecNone, batch.CodecGzip, batch.CodecSnappy, batch.CodecLZ4, batch.CodecZstd}

// writer fills a log through package log, as a leader does.
type writer struct {
	t    *testing.T
	log  *log.Log
	next int // number of the next batch
	// Producers begin anew with number first, under ids of their own.
	first, generation int
}

func openLog(t *testing.T, dir string, clean bool) *log.Log {
	t.Helper()
	l, _, err := log.Open(vfs.OS{}, dir, log.Config{Topic: topic, TopicID: epoch.UUID{1, 2, 3}, SegmentBytes: 20 << 10, IndexIntervalBytes: indexInterval}, clean, logr.Discard())
	must(t, err)
	return l
}

// batches appends n batches: every codec in turn, three producers and some without, one
// to five records, keys and values that are null, empty or text, times that go back.
func (w *writer) batches(e epoch.LeaderEpoch, n int) {
	w.t.Helper()
	must(w.t, w.log.AssignEpoch(e))
	for range n {
		i := w.next
		w.next++
		b := batch.NewBuilder().Codec(codecs[i%len(codecs)])
		records := 1 + i%5
		if p := i % 4; p < 3 {
			sequence := int32((i - w.first) / 4 * 5)
			if p == 2 { // past the greatest number, where it goes on at 0
				sequence = int32((int64(math.MaxInt32) - 20 + int64(sequence)) & math.MaxInt32)
			}
			records = 5
			b.Producer(int64(5_000_000+100*w.generation+p), int16(p), sequence)
		}
		for r := range records {
			b.Add(record(i, r))
		}
		_, err := w.log.Append(e, []batch.Batch{b.Build()})
		must(w.t, err)
	}
}

func record(i, r int) batch.Record {
	rec := batch.Record{Timestamp: 1_700_000_000_000 + int64(i*10) - int64(r%3*7), Value: []byte(strings.Repeat(fmt.Sprintf("value-%d-%d;", i, r), 1+i%9))}
	switch (i + r) % 4 {
	case 0:
		rec.Key = []byte{}
	case 1:
		rec.Key = fmt.Appendf(nil, "key-%d", i)
		rec.Headers = []batch.Header{{Key: "a", Value: []byte("1")}, {Key: "b"}}
	case 2:
		rec.Value = nil
	}
	return rec
}

// stopped is a log with a long life in five leader epochs, stopped in good order.
func stopped(t *testing.T, epochs [5]epoch.LeaderEpoch) string {
	t.Helper()
	dir := t.TempDir()
	w := &writer{t: t, log: openLog(t, dir, false)}
	w.batches(epochs[0], 150)
	w.batches(epochs[1], 100)
	end := w.log.EndOffset()
	w.batches(epochs[2], 60)
	must(t, w.log.TruncateTo(end-30)) // back into the second epoch, over a segment
	w.first, w.generation = w.next, 1 // what the producers wrote is gone
	w.batches(epochs[3], 90)
	must(t, w.log.SetStartOffset(w.log.EndOffset()/3))
	must(t, w.log.Close())
	must(t, w.log.Checkpoint(w.log.EndOffset()))
	w.log = openLog(t, dir, true)
	w.batches(epochs[3], 20)
	w.batches(epochs[4], 20)
	must(t, w.log.Close())
	must(t, w.log.Checkpoint(w.log.EndOffset()))
	return dir
}

func TestKafkaReadsWhatTidemarkWrites(t *testing.T) {
	needKafka(t)
	orderly := stopped(t, [5]epoch.LeaderEpoch{0, 1, 2, 4, 7})

	// What is on disk of a log in use, and the end that the next start makes of it.
	inUse := filepath.Join(t.TempDir(), "in-use")
	source := t.TempDir()
	w := &writer{t: t, log: openLog(t, source, false)}
	w.batches(3, 200)
	copyDir(t, source, inUse)
	must(t, w.log.Close())

	killed := filepath.Join(t.TempDir(), "killed")
	killedReplica(t, killed)
	volume := filepath.Join(killed, "volume")

	for _, dir := range []string{orderly, inUse, volume} {
		if warnings := sound(t, dir); len(warnings) > 0 {
			t.Errorf("%s: %s", dir, strings.Join(warnings, "\n"))
		}
	}
	agree(t, orderly, inUse, volume)

	recovered := filepath.Join(t.TempDir(), "recovered")
	copyDir(t, inUse, recovered)
	must(t, openLog(t, recovered, false).Close())
	agree(t, recovered)
}

// killedReplica leaves a replica's directory as SIGKILL does.
func killedReplica(t *testing.T, dir string) {
	t.Helper()
	p, address := replicaOn(t, dir)
	produce(t, address, topic, 0, 300)
	p.end(syscall.SIGTERM)
	p, address = replicaOn(t, dir)
	produce(t, address, topic, 300, 600)
	p.end(syscall.SIGKILL)
}
