package replica

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

func TestTheScrubFindsDamageAnywhere(t *testing.T) {
	dir := t.TempDir()
	l, _, err := log.Open(vfs.OS{}, dir, log.Config{Topic: "orders", TopicID: epoch.UUID{1}, SegmentBytes: 1 << 20}, false, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	value := string(make([]byte, 300<<10))
	for range 10 {
		if _, err := l.Append(0, []batch.Batch{batch.NewBuilder().Values(value).Build()}); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() (chunks int, found error) {
		next := l.StartOffset()
		for {
			next = scrubOnce(l, next, 10, func(err error) { found = err })
			if chunks++; next == l.StartOffset() || found != nil {
				return chunks, found
			}
		}
	}
	if chunks, found := pass(); found != nil || chunks < 4 {
		t.Errorf("a sound log, in %d chunks: %v", chunks, found)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "orders-0", "*.log"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments %q, %v", segments, err)
	}
	for _, name := range []string{segments[len(segments)-1], segments[1]} { // the newest is read without a check otherwise
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{7}, 200<<10); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if _, found := pass(); !errors.Is(found, log.ErrDamaged) {
			t.Errorf("a byte of %s has changed: %v", name, found)
		}
	}
}

func TestTheScrubTakesAWeekAtMost(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{0: time.Minute, 100 << 20: time.Minute, 1 << 40: scrubPeriod / (1<<20 + 1)} {
		if got := pauseOf(bytes); got != want {
			t.Errorf("%d bytes: a pause of %s, want %s", bytes, got, want)
		}
	}
}
