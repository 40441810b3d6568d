package checksum

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// logOf is batches of the given numbers of records, from an offset on.
func logOf(from epoch.Offset, sizes ...int) (batches []batch.Batch) {
	for i, n := range sizes {
		b := batch.NewBuilder().BaseOffset(from).LeaderEpoch(3).Values(slices.Repeat([]string{strings.Repeat("x", i+1)}, n)...).Build()
		batches = append(batches, b)
		from = b.NextOffset()
	}
	return batches
}

// reader reads as a log does whose reads end after that many batches, as with a segment.
func reader(batches []batch.Batch, atOnce int) Read {
	return func(from epoch.Offset) ([]byte, func(), error) {
		var out []byte
		n := 0
		for _, b := range batches {
			if b.LastOffset() >= from && n < atOnce {
				out, n = append(out, b...), n+1
			}
		}
		return out, func() {}, nil
	}
}

func blocks(t *testing.T, r Range, read Read) (out []Block) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	if err := Sum(r, read, func(b Block) error { out = append(out, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBlocksDoNotDependOnHowTheLogIsRead(t *testing.T) {
	l := logOf(10, 1, 5, 2, 2, 7, 1) // ends at 28
	want := blocks(t, Range{10, 28, 4}, reader(l, 100))
	if len(want) != 5 || want[4].To != 28 {
		t.Fatalf("blocks %+v, want five up to 28", want)
	}
	for n := 1; n <= len(l); n++ {
		if got := blocks(t, Range{10, 28, 4}, reader(l, n)); !slices.Equal(got, want) {
			t.Errorf("%d batches at once: %+v, want %+v", n, got, want)
		}
	}
}

func TestEveryBatchIsInExactlyOneBlockWhereverItIsCut(t *testing.T) {
	l := logOf(0, 1, 5, 2, 2, 7, 1)
	for cut := epoch.Offset(0); cut <= 18; cut++ {
		for step := int64(1); step <= 18; step++ {
			var batches, records int64
			for _, r := range []Range{{0, cut, step}, {cut, 18, step}} {
				for _, b := range blocks(t, r, reader(l, 2)) {
					batches, records = batches+b.Batches, records+b.Records
				}
			}
			if batches != 6 || records != 18 {
				t.Errorf("cut at %d, step %d: %d batches with %d records, want 6 with 18", cut, step, batches, records)
			}
		}
	}
}

func TestABlockNamesItsBatches(t *testing.T) {
	got := blocks(t, Range{4, 10, 3}, reader(logOf(0, 1, 5, 2, 2), 10)) // 0, 1-5, 6-7, 8-9
	if len(got) != 2 || got[0].First != 1 || got[0].Last != 5 || got[0].Batches != 1 || got[1].First != 6 || got[1].Last != 9 || got[1].Records != 4 {
		t.Errorf("%+v, want 1 to 5 in the first block and 6 to 9 in the second", got)
	}
	empty := blocks(t, Range{2, 5, 3}, reader(logOf(0, 1, 5), 10)) // the batch ends at 5
	if len(empty) != 1 || empty[0].Batches != 0 || empty[0].First != epoch.NoOffset || empty[0].Last != epoch.NoOffset {
		t.Errorf("%+v, want one block without batches", empty)
	}
}

func TestAnyChangedByteChangesTheSum(t *testing.T) {
	l := logOf(0, 3, 3, 3)
	want := blocks(t, Range{0, 9, 9}, reader(l, 10))
	for i := range l[1] {
		if i >= 8 && i < 12 || i == 16 || i >= 23 && i < 27 { // length, format and last offset decide what a batch is
			continue
		}
		changed := slices.Clone(l)
		changed[1] = slices.Clone(l[1])
		changed[1][i] ^= 1
		if got := blocks(t, Range{0, 9, 9}, reader(changed, 10)); got[0].SHA256 == want[0].SHA256 {
			t.Errorf("byte %d has changed and the sum has not", i)
		}
	}
}

func TestSumEndsWithTheFirstError(t *testing.T) {
	failed := errors.New("failed")
	l := logOf(0, 3, 3)
	if err := Sum(Range{0, 6, 1}, reader(l, 1), func(Block) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("emit: %v", err)
	}
	if err := Sum(Range{0, 6, 1}, func(epoch.Offset) ([]byte, func(), error) { return nil, nil, failed }, nil); !errors.Is(err, failed) {
		t.Errorf("read: %v", err)
	}
	if err := Sum(Range{0, 9, 3}, reader(l, 1), func(Block) error { return nil }); err == nil || !strings.Contains(err.Error(), "ends at offset 6") {
		t.Errorf("a log that is too short: %v", err)
	}
}

func TestRangesThatAreRefused(t *testing.T) {
	for _, r := range []Range{{-1, 5, 1}, {5, 4, 1}, {0, 5, 0}, {0, MaxBlocks + 1, 1}} {
		if r.Check() == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	for _, r := range []Range{{0, 0, 1}, {0, MaxBlocks, 1}, {5, 1 << 60, StepFor(5, 1<<60, MaxBlocks)}} {
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
