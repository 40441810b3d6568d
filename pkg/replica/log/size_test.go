package log

import (
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// All batches are of one size, so that the bytes are evenly spread and the estimate is exact.
func TestSizeFromCountsWhatIsLeftToRead(t *testing.T) {
	l, _ := open(t, vfs.FS(newMem(t)), smallSegments(3), true)
	defer l.Close()
	must(t, l.AssignEpoch(1))
	for i := range 8 {
		_, err := l.Append(1, []batch.Batch{one(i)})
		must(t, err)
	}
	size := int64(len(one(0)))
	for from, want := range map[epoch.Offset]int64{0: 8, 1: 7, 3: 5, 5: 3, 7: 1, 8: 0, 20: 0, -1: 8} {
		if got := l.SizeFrom(from); got != want*size {
			t.Errorf("from %d: %d bytes, want %d", from, got, want*size)
		}
	}
	must(t, l.SetStartOffset(4))
	if got := l.SizeFrom(0); got != 4*size {
		t.Errorf("from before the start: %d bytes, want %d", got, 4*size)
	}
}
