package kafka

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/logtool"
)

// What Kafka writes and Tidemark's log does not take: topics with transactions, and a compacted
// one.
const (
	committed = "committed"
	aborted   = "aborted"
	compacted = "compacted"
)

// writeForeign fills these topics.
func writeForeign(t *testing.T, k *cluster) {
	t.Helper()
	for _, name := range []string{committed, aborted} {
		createTopic(t, k.address, name, nil)
		transaction(t, k.address, name, kgo.TryCommit)
	}
	transaction(t, k.address, aborted, kgo.TryAbort)
	transaction(t, k.address, aborted, kgo.TryCommit)
	createTopic(t, k.address, compacted, map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "internal.segment.bytes": "16384"})
	c := client(t, k.address)
	defer c.Close()
	for n := range 160 {
		var batch []*kgo.Record
		for i := range 3 {
			batch = append(batch, &kgo.Record{Topic: compacted, Key: fmt.Appendf(nil, "key %d", (n+i*i)%7), Value: []byte(strings.Repeat("v", 100))})
		}
		// Keys that are written once, and keep their record in batches that lose the others.
		batch[0].Key = fmt.Appendf(nil, "key %d", n%50)
		must(t, c.ProduceSync(patience(t), batch...).FirstErr())
	}
	awaitCompaction(t, k)
}

func transaction(t *testing.T, address, name string, end kgo.TransactionEndTry) {
	t.Helper()
	c := client(t, address, kgo.TransactionalID("of-"+name))
	defer c.Close()
	must(t, c.BeginTransaction())
	for n := range 5 {
		must(t, c.ProduceSync(patience(t), numbered(name, n)).FirstErr())
	}
	must(t, c.EndTransaction(patience(t), end))
}

// awaitCompaction waits until the cleaner has been at work.
func awaitCompaction(t *testing.T, k *cluster) {
	t.Helper()
	deadline, ticker := time.After(time.Minute), time.NewTicker(100*time.Millisecond)
	defer ticker.Stop()
	for {
		in, _, err := logtool.Find(filepath.Join(k.data(), compacted+"-0"))
		must(t, err)
		// Segments are swapped meanwhile: that one cannot be read is no news.
		if sum, err := log.Verify(in, func(log.Finding) {}); err == nil && sum.Gaps > 0 && sum.Thinned > 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("Kafka did not compact the topic")
		}
	}
}

// checkForeign demands that verify calls them sound, that Kafka's tool agrees with dump, and
// that import takes what Tidemark can serve as Kafka does, and names what it cannot.
func checkForeign(t *testing.T, k *cluster) {
	t.Helper()
	var dirs []string
	for _, tc := range []struct{ topic, warning, refusal string }{
		{committed, "", ""},
		{aborted, "says which transactions were aborted", "transactions were aborted"},
		{compacted, "gaps between batches", "the log has gaps"},
	} {
		dir := k.snapshot(tc.topic)
		warnings := strings.Join(sound(t, dir), "\n")
		if !strings.Contains(warnings, tc.warning) || tc.warning == "" && warnings != "" {
			t.Errorf("%s: %q, want a warning %q", tc.topic, warnings, tc.warning)
		}
		dirs = append(dirs, dir)
		_, err := logtool.Import(dir, filepath.Join(t.TempDir(), "volume"), logtool.ImportOptions{Topic: topic})
		if refused := errors.Is(err, logtool.ErrRefused); refused != (tc.refusal != "") || refused && !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("%s: import says %v, want %q", tc.topic, err, tc.refusal)
		}
	}
	// To Kafka's tool, too, what compaction leaves is a hole.
	agreeBut(t, "Non-consecutive offsets in ", dirs...)
}
