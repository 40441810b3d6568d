package batch

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
)

// golden is one batch written down by hand from the format's description: two
// records ("k" = "v" at 1000 ms with header h: x; null = "" at 1001 ms) of producer
// 7, epoch 3, sequence 9, written by leader epoch 5 at offset 42.
const golden = `
	00000000 0000002a  00000045  00000005  02  970d31c5
	0000  00000001  00000000000003e8  00000000000003e9
	0000000000000007  0003  00000009  00000002
	18  00 00 00  02 6b  02 76  02  02 68  02 78
	0c  00 02 02  01  00  00`

func goldenBytes(t *testing.T) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(golden), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenBuilder() *Builder {
	return NewBuilder().BaseOffset(42).LeaderEpoch(5).Producer(7, 3, 9).
		Record(1000, []byte("k"), []byte("v"), Header{"h", []byte("x")}).
		Record(1001, nil, []byte{})
}

func TestBuilderWritesGoldenBytes(t *testing.T) {
	want := goldenBytes(t)
	got := goldenBuilder().Build()
	if !bytes.Equal(got, want) {
		t.Fatalf("got\n%x\nwant\n%x", []byte(got), want)
	}
}

func TestBatchReadsGoldenHeader(t *testing.T) {
	b, rest, err := Next(append(goldenBytes(t), 1, 2, 3))
	if err != nil || len(rest) != 3 {
		t.Fatalf("Next: %v, %d bytes left, want 3", err, len(rest))
	}
	for _, tc := range []struct {
		name      string
		got, want int64
	}{
		{"BaseOffset", int64(b.BaseOffset()), 42},
		{"LastOffset", int64(b.LastOffset()), 43},
		{"NextOffset", int64(b.NextOffset()), 44},
		{"Size", int64(b.Size()), 81},
		{"LeaderEpoch", int64(b.LeaderEpoch()), 5},
		{"Magic", int64(b.Magic()), 2},
		{"Attributes", int64(b.Attributes()), 0},
		{"Codec", int64(b.Codec()), 0},
		{"LastOffsetDelta", int64(b.LastOffsetDelta()), 1},
		{"BaseTimestamp", b.BaseTimestamp(), 1000},
		{"MaxTimestamp", b.MaxTimestamp(), 1001},
		{"ProducerID", b.ProducerID(), 7},
		{"ProducerEpoch", int64(b.ProducerEpoch()), 3},
		{"BaseSequence", int64(b.BaseSequence()), 9},
		{"LastSequence", int64(b.LastSequence()), 10},
		{"Count", int64(b.Count()), 2},
	} {
		if tc.got != tc.want {
			t.Errorf("%s = %d, want %d", tc.name, tc.got, tc.want)
		}
	}
}

// CRC-32C of "123456789" is the check value that the algorithm is published with.
func TestComputeCRCIsCastagnoliFromByte21(t *testing.T) {
	b := append(make(Batch, crcStart), "123456789"...)
	if got := b.ComputeCRC(); got != 0xe3069283 {
		t.Fatalf("got %08x, want e3069283", got)
	}
}

func TestStampsLieOutsideOfTheChecksum(t *testing.T) {
	b := goldenBuilder().Build()
	b.SetBaseOffset(1 << 40)
	b.SetLeaderEpoch(77)
	if err := b.CheckCRC(); err != nil {
		t.Fatal(err)
	}
	if b.BaseOffset() != 1<<40 || b.LeaderEpoch() != 77 {
		t.Fatalf("got offset %d epoch %d", b.BaseOffset(), b.LeaderEpoch())
	}
	b[len(b)-1] ^= 1
	if err := b.CheckCRC(); !errors.Is(err, ErrCorruptMessage) {
		t.Fatalf("a flipped bit gives %v, want ErrCorruptMessage", err)
	}
}

func TestLastSequenceWraps(t *testing.T) {
	for _, tc := range []struct {
		name    string
		base    int32
		records int
		want    int32
	}{
		{"ordinary", 5, 3, 7},
		{"ends at the greatest", math.MaxInt32 - 1, 2, math.MaxInt32},
		{"wraps inside of the batch", math.MaxInt32, 3, 1},
		{"none", -1, 3, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBuilder().Producer(1, 0, tc.base).Values(make([]string, tc.records)...).Build()
			if got := b.LastSequence(); got != tc.want {
				t.Fatalf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNextRefusesBadSizes(t *testing.T) {
	whole := goldenBuilder().Build()
	patch := func(at int, v ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], v)
		return b
	}
	for _, tc := range []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, ErrIncomplete},
		{"half a prefix", whole[:11], ErrIncomplete},
		{"prefix only", whole[:12], ErrIncomplete},
		{"one byte short", whole[:len(whole)-1], ErrIncomplete},
		{"length below the header", patch(8, 0, 0, 0, 48), ErrCorruptMessage},
		{"length zero, as in a zero tail", make([]byte, 100), ErrCorruptMessage},
		{"negative length", patch(8, 0xff, 0xff, 0xff, 0xff), ErrCorruptMessage},
		{"greatest length", patch(8, 0x7f, 0xff, 0xff, 0xff), ErrIncomplete},
		{"format 1", patch(16, 1), ErrCorruptMessage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, err := Next(tc.in); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
		})
	}
}
