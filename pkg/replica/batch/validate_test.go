package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// change builds a batch, lets f spoil it, and makes the checksum right again.
func change(f func(b Batch)) []byte {
	b := NewBuilder().Producer(7, 0, 0).Values("a", "b", "c").Build()
	f(b)
	b.seal()
	return b
}

func be32(at int, v uint32) func(Batch) {
	return func(b Batch) { binary.BigEndian.PutUint32(b[at:], v) }
}

func TestValidate(t *testing.T) {
	const now = 1_700_000_000_000
	hour := time.Hour.Milliseconds()
	at := func(ts ...int64) []byte {
		w := NewBuilder()
		for _, x := range ts {
			w.Record(x, nil, nil)
		}
		return w.Build()
	}
	ok := change(func(Batch) {})
	for _, tc := range []struct {
		name   string
		in     []byte
		limits Limits
		want   error
	}{
		{"plain", ok, Limits{}, nil},
		{"idempotent, epoch of the client ignored (G07)", change(func(b Batch) { b.SetLeaderEpoch(0) }), Limits{}, nil},
		{"at the size limit", ok, Limits{MaxBatchBytes: len(ok)}, nil},
		{"no records", nil, Limits{}, ErrInvalidRecord},
		{"two batches (G08)", slices.Concat(ok, ok), Limits{}, ErrInvalidRecord},
		{"bytes behind", append(bytes.Clone(ok), 0), Limits{}, ErrInvalidRecord},
		{"format 1 (G12)", change(func(b Batch) { b[16] = 1 }), Limits{}, ErrInvalidRecord},
		{"too short for a format", ok[:10], Limits{}, ErrCorruptMessage},
		{"below the header", ok[:60], Limits{}, ErrCorruptMessage},
		{"length beyond the request", ok[:len(ok)-1], Limits{}, ErrCorruptMessage},
		{"wrong checksum (G09)", func() []byte { b := bytes.Clone(ok); b[70] ^= 1; return b }(), Limits{}, ErrCorruptMessage},
		{"above the size limit", ok, Limits{MaxBatchBytes: len(ok) - 1}, ErrMessageTooLarge},
		{"base offset (G07)", change(func(b Batch) { b.SetBaseOffset(1) }), Limits{}, ErrInvalidRecord},
		{"count of zero", NewBuilder().Build(), Limits{}, ErrInvalidRecord},
		{"count above the delta (G11)", change(be32(57, 4)), Limits{}, ErrInvalidRecord},
		{"count and delta above the records", change(func(b Batch) { be32(57, 4)(b); be32(23, 3)(b) }), Limits{}, ErrInvalidRecord},
		{"count and delta below the records", change(func(b Batch) { be32(57, 2)(b); be32(23, 1)(b) }), Limits{}, ErrInvalidRecord},
		{"control (G24)", NewBuilder().Attributes(attrControl).Values("a").Build(), Limits{}, ErrInvalidRecord},
		{"transactional", NewBuilder().Attributes(attrTransactional).Values("a").Build(), Limits{}, ErrInvalidRecord},
		{"delete horizon", NewBuilder().Attributes(attrDeleteHorizon).Values("a").Build(), Limits{}, ErrInvalidRecord},
		{"producer without sequence", NewBuilder().Producer(1, 0, -1).Values("a").Build(), Limits{}, ErrInvalidRecord},
		{"producer without epoch", NewBuilder().Producer(1, -1, 0).Values("a").Build(), Limits{}, ErrInvalidRecord},
		{"append time by the client", NewBuilder().Attributes(attrLogAppendTime).Values("a").Build(), Limits{}, ErrInvalidTimestamp},
		{"codec 5", NewBuilder().Codec(5).Values("a").Build(), Limits{}, ErrUnsupportedCompression},
		{"inner offset delta (G25)", change(func(b Batch) { b[HeaderSize+3] = 2 }), Limits{}, ErrInvalidRecord},
		{"record length too long", change(func(b Batch) { b[HeaderSize] += 2 }), Limits{}, ErrInvalidRecord},
		{"record length too short", change(func(b Batch) { b[HeaderSize] -= 2 }), Limits{}, ErrInvalidRecord},
		{"one hour ahead", at(now + hour), Limits{Now: now}, nil},
		{"more than one hour ahead", at(now, now+hour+1), Limits{Now: now}, ErrInvalidTimestamp},
		{"more than the given limit ahead", at(now + 2), Limits{Now: now, MaxAhead: time.Millisecond}, ErrInvalidTimestamp},
		{"old", at(1), Limits{Now: now}, nil},
		{"older than the limit", at(now-hour-1, now), Limits{Now: now, MaxBehind: time.Hour}, ErrInvalidTimestamp},
		{"within the limit of age", at(now-hour, now), Limits{Now: now, MaxBehind: time.Hour}, nil},
		{"the leader's time counts, whatever the client's", at(1, now+2*hour), Limits{Now: now, MaxBehind: time.Hour, AppendTime: true}, nil},
		{"no timestamp", at(NoTimestamp), Limits{Now: now, MaxBehind: time.Hour}, nil},
		{"negative timestamp", at(-2), Limits{}, ErrInvalidTimestamp},
		{"null header key", nullHeaderKey(), Limits{}, ErrInvalidRecord},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := Validate(bytes.Clone(tc.in), tc.limits)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			if err == nil && !bytes.Equal(b, tc.in) {
				t.Fatalf("batch was changed:\n%x\n%x", []byte(b), tc.in)
			}
		})
	}
}

// nullHeaderKey turns the header's key length 0 into -1 (null), which no byte
// count gives away.
func nullHeaderKey() []byte {
	b := NewBuilder().Record(0, nil, nil, Header{"", nil}).Build()
	b[len(b)-2] = 1
	b.seal()
	return b
}

func TestValidateRepairsMaxTimestamp(t *testing.T) {
	b := NewBuilder().Record(10, nil, nil).Record(30, nil, nil).Record(20, nil, nil).Build()
	binary.BigEndian.PutUint64(b[35:], 99)
	b.seal()
	got, err := Validate(b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxTimestamp() != 30 || got.CheckCRC() != nil {
		t.Fatalf("max timestamp %d, checksum %v; want 30 and a right one", got.MaxTimestamp(), got.CheckCRC())
	}
}

// All records that are at fault are told, the newest code wins, and of one without a key the
// time is not judged: as Kafka's LogValidator does.
func TestValidateTellsWhichRecordsAreRefused(t *testing.T) {
	const now, hour = 1_700_000_000_000, 3_600_000
	b := NewBuilder().Record(now-2*hour, []byte("k"), nil).Record(now, []byte("k"), nil).Record(now+2*hour, nil, nil).Record(now, nil, nil).Build()
	limits := Limits{Now: now, MaxBehind: time.Hour, RequireKeys: true}
	for _, tc := range []struct {
		name   string
		change func(*Limits)
		code   error
		places string
	}{
		{"all", func(*Limits) {}, ErrInvalidTimestamp, "[{0 1699992800000 false} {2 1700007200000 true} {3 1700000000000 true}]"},
		{"keys only", func(l *Limits) { l.MaxBehind = 0 }, ErrInvalidRecord, "[{2 1700007200000 true} {3 1700000000000 true}]"},
		{"times only", func(l *Limits) { l.RequireKeys = false }, ErrInvalidTimestamp, "[{0 1699992800000 false} {2 1700007200000 false}]"},
		{"the leader's time", func(l *Limits) { l.AppendTime = true }, ErrInvalidRecord, "[{2 1700007200000 true} {3 1700000000000 true}]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := limits
			tc.change(&l)
			_, err := Validate(bytes.Clone(b), l)
			var refused *RecordsError
			if !errors.As(err, &refused) || !errors.Is(err, tc.code) || fmt.Sprint(refused.Records) != tc.places || refused.Count != len(refused.Records) {
				t.Fatalf("got %v, %+v; want %v, %s", err, refused, tc.code, tc.places)
			}
			if refused.Latest != now+hour {
				t.Errorf("accepted up to %d, want %d", refused.Latest, now+hour)
			}
		})
	}
}

func TestStampAppendTime(t *testing.T) {
	for _, codec := range []Codec{CodecNone, CodecGzip} {
		b := NewBuilder().Codec(codec).Producer(1, 0, 0).Record(10, []byte("k"), []byte("v")).Record(30, nil, nil).Build()
		b.StampAppendTime(77)
		if b.CheckCRC() != nil || !b.LogAppendTime() || b.MaxTimestamp() != 77 || b.Codec() != codec || b.ProducerID() != 1 {
			t.Errorf("%v: stamped, it is %x", codec, []byte(b))
		}
		for r, err := range Records(b) {
			if err != nil || r.Timestamp != 77 {
				t.Errorf("%v: a record of %d, %v", codec, r.Timestamp, err)
			}
		}
	}
}

func TestCompressedBatches(t *testing.T) {
	for _, codec := range []Codec{CodecNone, CodecGzip, CodecSnappy, CodecLZ4, CodecZstd} {
		t.Run(codec.String(), func(t *testing.T) {
			w := NewBuilder().BaseOffset(0).Codec(codec)
			for i := range 1000 {
				w.Record(int64(1000+i), fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{byte(i)}, i), Header{"n", nil})
			}
			b, err := Validate(w.Build(), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for r, err := range Records(b) {
				if err != nil {
					t.Fatal(err)
				}
				if int(r.Offset) != n || r.Timestamp != int64(1000+n) || string(r.Key) != fmt.Sprintf("key-%d", n) ||
					!bytes.Equal(r.Value, bytes.Repeat([]byte{byte(n)}, n)) || len(r.Headers) != 1 || r.Headers[0].Value != nil {
					t.Fatalf("record %d differs: %+v", n, r)
				}
				n++
			}
			if n != 1000 {
				t.Fatalf("%d records, want 1000", n)
			}
		})
	}
}

func TestCompressedRefusals(t *testing.T) {
	for _, codec := range []Codec{CodecGzip, CodecSnappy, CodecLZ4, CodecZstd} {
		build := func() Batch { return NewBuilder().Codec(codec).Record(0, nil, make([]byte, 1<<20)).Build() }
		for _, tc := range []struct {
			name  string
			spoil func(Batch) Batch
			limit int64
			want  error
		}{
			{"bomb (G23)", func(b Batch) Batch { return b }, 1 << 16, ErrMessageTooLarge},
			{"garbage", func(b Batch) Batch {
				for i := range b[HeaderSize:] {
					b[HeaderSize+i] = byte(i*7 + 3)
				}
				return b
			}, 0, ErrInvalidRecord},
			{"ends too early", func(b Batch) Batch {
				b = b[:len(b)-(len(b)-HeaderSize)/2]
				binary.BigEndian.PutUint32(b[8:], uint32(len(b)-PrefixSize))
				return b
			}, 0, ErrInvalidRecord},
			{"more records than the header says", func(Batch) Batch {
				b := NewBuilder().Codec(codec).Values("a", "b").Build()
				be32(57, 1)(b)
				be32(23, 0)(b)
				return b
			}, 0, ErrInvalidRecord},
		} {
			t.Run(codec.String()+"/"+tc.name, func(t *testing.T) {
				b := tc.spoil(build())
				b.seal()
				if _, err := Validate(b, Limits{MaxDecompressedBytes: tc.limit}); !errors.Is(err, tc.want) {
					t.Fatalf("got %v, want %v", err, tc.want)
				}
			})
		}
	}
}

func TestSnappyWithoutFramingIsAccepted(t *testing.T) {
	b := NewBuilder().Codec(CodecSnappy).Values("a", "b").Build()
	raw := append(bytes.Clone(b[:HeaderSize]), b[HeaderSize+xerialHeader+4:]...)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-PrefixSize))
	Batch(raw).seal()
	if _, err := Validate(raw, Limits{}); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsTakesAppendTimeFromHeader(t *testing.T) {
	b := NewBuilder().Attributes(attrLogAppendTime).Record(5, nil, nil).Record(9, nil, nil).Build()
	for r, err := range Records(b) {
		if err != nil || r.Timestamp != 9 {
			t.Fatalf("timestamp %d, %v; want 9", r.Timestamp, err)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte(goldenBuilder().Build()))
	f.Add(make([]byte, 80))
	f.Fuzz(func(t *testing.T, in []byte) {
		b, rest, err := Next(in)
		if err != nil {
			return
		}
		if len(b) != b.Size() || len(b) < HeaderSize || len(b)+len(rest) != len(in) {
			t.Fatalf("split %d into %d and %d, size %d", len(in), len(b), len(rest), b.Size())
		}
	})
}

// FuzzValidate also makes the checksum right, so that what lies behind it is
// reached, and demands that what was accepted can be read.
func FuzzValidate(f *testing.F) {
	for _, c := range []Codec{CodecNone, CodecGzip, CodecSnappy, CodecLZ4, CodecZstd} {
		f.Add([]byte(NewBuilder().Codec(c).Record(1, []byte("k"), []byte("v"), Header{"h", nil}).Values("x").Build()))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) >= HeaderSize {
			Batch(in).seal()
		}
		b, err := Validate(in, Limits{Now: 1, MaxDecompressedBytes: 1 << 20})
		if err != nil {
			return
		}
		n := int32(0)
		for _, err := range Records(b) {
			if err != nil {
				t.Fatalf("accepted, but record %d: %v", n, err)
			}
			n++
		}
		if n != b.Count() {
			t.Fatalf("accepted %d records, read %d", b.Count(), n)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range []Codec{CodecNone, CodecLZ4, CodecZstd} {
		w := NewBuilder().Codec(codec)
		for i := range 160 {
			w.Record(int64(i), nil, bytes.Repeat([]byte{byte(i)}, 100))
		}
		bt := w.Build()
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(160 * 110)
			for b.Loop() {
				if _, err := Validate(bt, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
