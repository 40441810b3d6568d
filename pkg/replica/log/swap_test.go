package log

import (
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// halfway leaves a disk as a death in the middle of a swap does: the new segment has its
// .swap name, and the old ones are there still.
func halfway(t *testing.T) (*vfs.Mem, string) {
	t.Helper()
	mem := newMem(t)
	l, _ := open(t, mem, smallSegments(3), false)
	for range 3 {
		write(t, l, 1, kv("a=1"), kv("b=1"), kv("a=2"))
	}
	l.cfg.SegmentBytes = DefaultSegmentBytes
	seal(t, l, 1)
	_, err := l.Flush()
	must(t, err)
	c, _ := l.PlanCompaction(rules(l))
	must(t, c.Step(unpaced))
	if len(c.groups[0]) < 3 {
		t.Fatalf("only %d segments become one", len(c.groups[0]))
	}
	for _, suffix := range []string{suffixIndex, suffixTimeIndex, suffixLog} {
		must(t, mem.Rename(c.made.stem+suffix+suffixCleaned, c.made.stem+suffix+suffixSwap))
	}
	return mem, in("00000000000000000000.log.swap")
}

func TestAStartCompletesASwap(t *testing.T) {
	mem, _ := halfway(t)
	must(t, mem.Remove(in("00000000000000000003.log"))) // one of the old is gone already
	l, r := open(t, mem, config(), false)
	wantShape(t, l, "0-6/1[ ] 7-7/1[ 7:b=1 ] 8-8/1[ 8:a=2 ] 9-9/1[ 9:end= ]")
	if r.CutAt != epoch.NoOffset || r.EpochCacheRebuilt {
		t.Errorf("found: %+v", r)
	}
	if left := append(files(t, mem, suffixSwap), files(t, mem, suffixLog)...); strings.Join(left, " ") != "00000000000000000000.log 00000000000000000009.log" {
		t.Errorf("files: %s", left)
	}
}

func TestAStartRefusesASwapThatIsNotWhole(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"torn":    func(b []byte) []byte { return b[:len(b)-1] },
		"changed": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"empty":   func([]byte) []byte { return nil },
		"with a gap, as Kafka's": func(b []byte) []byte {
			last := b[len(b)-len(lastBatch(b)):]
			batch.Batch(last).SetBaseOffset(100)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem, swap := halfway(t)
			overwrite(t, mem, swap, damage(content(t, mem, swap)))
			_, _, err := Open(mem, dataDir, config(), false, quiet())
			if err == nil || !strings.Contains(err.Error(), "cannot be completed") {
				t.Errorf("opened with %v", err)
			}
			if n := len(files(t, mem, suffixLog)); n < 4 {
				t.Errorf("%d segments are left", n)
			}
		})
	}
}

func lastBatch(b []byte) (last batch.Batch) {
	for len(b) > 0 {
		last, b, _ = batch.Next(b)
	}
	return last
}

// Readers hold segments that are replaced, and open indexes by their names: what they get is
// the batch of their offset all the same.
func TestReadersBesideSwaps(t *testing.T) {
	mem := newMem(t)
	cfg := config()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 1500, 60
	l, _ := open(t, mem, cfg, false)
	var readers sync.WaitGroup
	done := make(chan struct{})
	defer readers.Wait()
	defer close(done)
	for range 3 {
		readers.Go(func() {
			for o := epoch.Offset(0); ; o++ {
				select {
				case <-done:
					return
				default:
				}
				if o >= l.EndOffset() {
					o = 0
				}
				b, err := l.Read(o, l.EndOffset(), 200, true)
				if err != nil {
					t.Errorf("read at %d: %v", o, err)
					return
				}
				if len(b) > 0 && (batch.Batch(b).BaseOffset() > o || batch.Batch(b).LastOffset() < o) {
					t.Errorf("read at %d: the batch of %d to %d", o, batch.Batch(b).BaseOffset(), batch.Batch(b).LastOffset())
					return
				}
				if _, _, _, err := l.OffsetForTimestamp(1002, l.EndOffset()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	swaps := 0
	for i := range 150 {
		write(t, l, 1, kv("a=1", "b=1", "c=1"), kv("b=2"), kv("d=1"))
		if i%10 == 9 {
			seal(t, l, 1)
			if compact(t, l, rules(l)) {
				swaps++
			}
		}
	}
	if swaps < 10 {
		t.Errorf("only %d compactions", swaps)
	}
}
