package log

import (
	"errors"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
)

// The kernel drops what a sync could not write, and the next sync succeeds: only bytes
// that are written again reach the disk.
func TestRewriteMakesDurableWhatAFailedSyncDropped(t *testing.T) {
	for _, c := range []struct {
		name    string
		rewrite bool
		end     int
	}{
		{"without", false, 2},
		{"with", true, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, smallSegments(3), false)
			appendOne(t, l, 0, 0, 1)
			if _, err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			must(t, l.Checkpoint(0))
			appendOne(t, l, 0, 2, 3, 4, 5, 6, 7) // over three segments
			m.SetFault(vfs.Faults{{Kind: vfs.OpSync, Err: &vfs.Dropped{Err: syscall.EIO}}}.Judge)
			if _, err := l.Flush(); !errors.Is(err, ErrFailed) {
				t.Fatalf("the sync returned %v", err)
			}
			for _, seg := range []string{seg0, seg3, "00000000000000000006.log"} { // the kernel writes back by itself, too
				f, err := m.Open(in(seg))
				must(t, err)
				_ = f.Sync()
				must(t, f.Close())
			}
			m.SetFault(nil)
			l, r := open(t, m, smallSegments(3), false)
			if r.CutAt >= 0 || int(l.EndOffset()) != 8 {
				t.Fatalf("the page cache holds the log up to %d: %+v", l.EndOffset(), r)
			}
			if c.rewrite {
				must(t, l.Rewrite())
			}
			if o, err := l.Flush(); err != nil || o != 8 {
				t.Fatalf("flushed to %d: %v", o, err)
			}
			after, _ := open(t, m.Crash(vfs.Crash{}), smallSegments(3), false)
			if got, want := records(t, after), numbered(0, c.end, 0); got != want {
				t.Errorf("after a power cut the log holds %s, want %s", got, want)
			}
		})
	}
}
