package batch

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var codecs = []Codec{CodecNone, CodecGzip, CodecSnappy, CodecLZ4, CodecZstd}

// keyed is a batch of a producer at offset 100, with a tombstone as its third record.
func keyed(c Codec) Batch {
	return NewBuilder().BaseOffset(100).LeaderEpoch(7).Producer(5, 2, 40).Codec(c).
		Record(1000, []byte("a"), []byte("1"), Header{"h", []byte("x")}, Header{"n", nil}).
		Record(3000, []byte("b"), []byte{}).
		Record(2000, []byte("c"), nil).
		Record(1500, []byte{}, bytes.Repeat([]byte("v"), 300)).
		Build()
}

func list(t *testing.T, b Batch) []string {
	t.Helper()
	if err := b.CheckCRC(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for r, err := range AllRecords(b) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d@%d key %q(%t) value %q(%t) %q", r.Offset, r.Timestamp, r.Key, r.Key == nil, r.Value, r.Value == nil, r.Headers))
	}
	return out
}

func TestCompactKeepsWhatABatchIsKnownBy(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.String(), func(t *testing.T) {
			b := keyed(c)
			before := bytes.Clone(b)
			all := list(t, b)
			k, err := Compact(b, 9_000, func(r Record) bool { return r.Offset != 101 && r.Offset != 103 })
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b, before) {
				t.Error("the batch itself was written to")
			}
			got := k.Batch
			if want := []string{all[0], all[2]}; fmt.Sprint(list(t, got)) != fmt.Sprint(want) {
				t.Errorf("records %s\nwant %s", list(t, got), want)
			}
			if got.BaseOffset() != 100 || got.LastOffset() != 103 || got.LeaderEpoch() != 7 || got.Codec() != c || got.ProducerID() != 5 || got.ProducerEpoch() != 2 ||
				got.BaseSequence() != 40 || got.LastSequence() != 43 || got.Count() != 2 || k.Records != 2 || k.Removed != 2 {
				t.Errorf("%+v: %d to %d, epoch %d, %s, producer %d/%d, sequences %d to %d, %d records", k, got.BaseOffset(), got.LastOffset(), got.LeaderEpoch(),
					got.Codec(), got.ProducerID(), got.ProducerEpoch(), got.BaseSequence(), got.LastSequence(), got.Count())
			}
			if got.Horizon() != 9_000 || got.MaxTimestamp() != 2000 {
				t.Errorf("horizon %d, greatest timestamp %d", got.Horizon(), got.MaxTimestamp())
			}
			again, err := Compact(got, 77_000, func(Record) bool { return true })
			if err != nil || !bytes.Equal(again.Batch, got) {
				t.Errorf("a batch that loses nothing, and has its horizon, was rewritten: %v", err)
			}
		})
	}
}

func TestCompactWithoutTombstonesSetsNoHorizon(t *testing.T) {
	b := keyed(CodecNone)
	k, err := Compact(b, 9_000, func(r Record) bool { return r.Value != nil })
	if err != nil || k.Batch.HasDeleteHorizon() || k.Batch.BaseTimestamp() != 1000 || k.Batch.MaxTimestamp() != 3000 {
		t.Errorf("horizon %d, timestamps %d to %d, %v", k.Batch.Horizon(), k.Batch.BaseTimestamp(), k.Batch.MaxTimestamp(), err)
	}
	k, err = Compact(b, 9_000, func(Record) bool { return true })
	if err != nil || k.Batch.Horizon() != 9_000 || k.Removed != 0 || fmt.Sprint(list(t, k.Batch)) != fmt.Sprint(list(t, b)) {
		t.Errorf("a kept tombstone has the horizon %d, %v", k.Batch.Horizon(), err)
	}
}

func TestCompactOfAllRecordsLeavesTheProducersHeader(t *testing.T) {
	for _, c := range codecs {
		k, err := Compact(keyed(c), 1, func(Record) bool { return false })
		b := k.Batch
		if err != nil || len(b) != HeaderSize || b.Size() != HeaderSize || b.CheckCRC() != nil {
			t.Fatalf("%s: %d bytes, %v", c, len(b), err)
		}
		if b.Count() != 0 || b.BaseOffset() != 100 || b.LastOffset() != 103 || b.ProducerID() != 5 || b.LastSequence() != 43 || b.MaxTimestamp() != 3000 || b.HasDeleteHorizon() {
			t.Errorf("%s: %d records, offsets %d to %d, producer %d up to %d", c, b.Count(), b.BaseOffset(), b.LastOffset(), b.ProducerID(), b.LastSequence())
		}
		if b.IsFiller() {
			t.Error("a producer's last batch passes for a filler")
		}
	}
}

func TestFillersAreClipped(t *testing.T) {
	b, err := Empty(10, 1_000_000, 3)
	if err != nil || b.CheckCRC() != nil || !b.IsFiller() || b.BaseOffset() != 10 || b.LastOffset() != 1_000_000 || b.LeaderEpoch() != 3 || len(b) != HeaderSize {
		t.Fatalf("%d to %d, %v", b.BaseOffset(), b.LastOffset(), err)
	}
	for _, from := range []epoch.Offset{9, 10, 1_000_001} {
		b.ClipFiller(from)
		if b.BaseOffset() != 10 || b.LastOffset() != 1_000_000 {
			t.Errorf("clipped at %d it holds %d to %d", from, b.BaseOffset(), b.LastOffset())
		}
	}
	b.ClipFiller(500)
	if b.CheckCRC() != nil || b.BaseOffset() != 500 || b.LastOffset() != 1_000_000 || b.LeaderEpoch() != 3 {
		t.Errorf("clipped: %d to %d", b.BaseOffset(), b.LastOffset())
	}
	full := keyed(CodecNone)
	full.ClipFiller(102)
	if full.BaseOffset() != 100 {
		t.Error("a batch with records was clipped")
	}
	for _, bad := range [][2]epoch.Offset{{5, 4}, {-1, 4}, {0, 1 << 31}} {
		if b, err := Empty(bad[0], bad[1], 0); err == nil {
			t.Errorf("a batch of the offsets %d to %d: %d bytes", bad[0], bad[1], len(b))
		}
	}
}

// FuzzCompact takes any valid batch, removes some records by the bits of a mask, and
// wants the others back as they were.
func FuzzCompact(f *testing.F) {
	for _, c := range codecs {
		f.Add([]byte(keyed(c)), uint64(5), int64(1234))
	}
	f.Fuzz(func(t *testing.T, data []byte, mask uint64, horizon int64) {
		b, _, err := Next(data)
		if err != nil || b.LastOffsetDelta() < 0 || b.BaseOffset() < 0 || b.LastOffset() < b.BaseOffset() || horizon == NoHorizon {
			return
		}
		i := 0
		keep := func(Record) bool { i++; return mask>>(i%64)&1 == 1 }
		k, err := Compact(b, horizon, keep)
		if err != nil {
			return
		}
		if _, rest, err := Next(k.Batch); err != nil || len(rest) != 0 || k.Batch.BaseOffset() != b.BaseOffset() || k.Batch.LastOffset() != b.LastOffset() {
			t.Fatalf("what is left is no batch of the same offsets: %v", err)
		}
		var want, got []Record
		i = 0
		for r := range Records(b) {
			if keep(r) {
				want = append(want, r)
			}
		}
		for r, err := range AllRecords(k.Batch) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("kept %#v\nwant %#v", got, want)
		}
	})
}
