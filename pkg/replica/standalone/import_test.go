package standalone

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/logtool"
)

// firstID is the producer id that the first process of a new record gives out first.
const firstID = 2<<31 + 1

// The log has newer leader epochs than a new record would begin with, and a batch of the
// producer id, epoch and sequence number that the first client would get.
func TestAnImportedLogIsServed(t *testing.T) {
	source := t.TempDir()
	l, _, err := log.Open(vfs.OS{}, source, log.Config{Topic: "old", TopicID: epoch.UUID{7}}, true, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := l.Append(epoch.LeaderEpoch(10+i), []batch.Batch{batch.NewBuilder().Producer(firstID, 0, int32(i)).Values(fmt.Sprint(i)).Build()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o := Options{DataDir: t.TempDir(), Topic: "orders", Listen: freeAddress(t)}
	if _, err := logtool.Import(source, filepath.Join(o.DataDir, "volume"), logtool.ImportOptions{Topic: "orders"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"0", "1", "2", "new"}, {"0", "1", "2", "new", "new"}} {
		stop := serve(t, o)
		c := client(t, o.Listen)
		if err := c.ProduceSync(t.Context(), kgo.StringRecord("new")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for len(got) < len(want) {
			fetches := c.PollFetches(t.Context())
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if int(r.Offset) != len(got) {
					t.Errorf("offset %d at place %d", r.Offset, len(got))
				}
				got = append(got, string(r.Value))
			})
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		stop()
	}
}
