package log

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func FuzzOffsetIndex(f *testing.F) {
	f.Add([]byte(unhex("00000002 00000090 00000004 00000120")), int64(1000))
	f.Add(make([]byte, 64), int64(64))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		if checkOffsetIndex(b, size) != nil {
			return
		}
		for _, at := range []int64{0, 1, size / 2, size} {
			kept := cutOffsetIndex(b, at)
			if !bytes.HasPrefix(b, kept) || len(kept)%offsetEntrySize != 0 {
				t.Fatalf("cut at %d keeps %x of %x", at, kept, b)
			}
			e := indexView{mem: b}.lastOffset(func(e offsetEntry) bool { return e.position < at })
			if len(kept) > 0 && e != decodeOffsetEntry(kept[len(kept)-offsetEntrySize:]) {
				t.Fatalf("lookup below %d gives %+v", at, e)
			}
		}
	})
}

func FuzzTimeIndex(f *testing.F) {
	f.Add([]byte(unhex("00000000000003ea 00000002", "00000000000003eb 00000003")), int64(10))
	f.Fuzz(func(t *testing.T, b []byte, span int64) {
		if checkTimeIndex(b, span) != nil {
			return
		}
		if kept := cutTimeIndex(b, span); len(kept) != len(b) {
			t.Fatalf("entries within %d offsets were cut behind them", span)
		}
		e, ok := indexView{mem: b}.lastTime(func(timeEntry) bool { return true })
		if ok != (len(b) > 0) || ok && e.relative >= span {
			t.Fatalf("last entry %+v %v", e, ok)
		}
	})
}

func FuzzCheckpoints(f *testing.F) {
	f.Add([]byte("0\n2\norders 0 5\nother 1 7\n"))
	f.Add([]byte("0\n2\n0 0\n3 7\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if lines, err := parseOffsets(b); err == nil {
			again, err := parseOffsets(formatOffsets(lines))
			if err != nil || !slices.Equal(again, lines) {
				t.Fatalf("offsets %+v read again as %+v, %v", lines, again, err)
			}
		}
		if c, err := parseEpochs(b); err == nil {
			again, err := parseEpochs(formatEpochs(c))
			if err != nil || !again.Equal(c) {
				t.Fatalf("epochs %s read again as %s, %v", c, again, err)
			}
		}
		if id, err := parseMetadata(b); err == nil && !id.IsZero() {
			if again, err := parseMetadata(formatMetadata(id)); err != nil || again != id {
				t.Fatalf("topic id %s read again as %s, %v", id, again, err)
			}
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	s := newProducerState()
	f.Add(s.encode())
	s.update(batch.NewBuilder().Producer(7, 2, 10).Values("a", "b").Build())
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSnapshot(b)
		if err != nil {
			return
		}
		again, err := decodeSnapshot(s.encode())
		if err != nil || dump(again) != dump(s) {
			t.Fatalf("%s read again as %s, %v", dump(s), dump(again), err)
		}
	})
}

// FuzzOpen starts on arbitrary bytes: no panic, a log that agrees with itself, that
// takes appends, and that a second start finds in order.
func FuzzOpen(f *testing.F) {
	good := slices.Concat(fetched(one(0), 0, 0), fetched(many(1, 3), 1, 2))
	f.Add(good, fetched(one(4), 4, 2), []byte(unhex("00000000 00000000")), []byte("0\n2\n0 0\n2 1\n"), true)
	f.Add(good[:100], []byte{}, []byte{}, []byte{}, false)
	f.Add(make([]byte, 200), fetched(one(4), 4, 2), []byte{0}, []byte("0\n1\n0 9\n"), false)
	f.Fuzz(func(t *testing.T, first, second, index, epochs []byte, clean bool) {
		m := newMem(t)
		must(t, m.MkdirAll(dataDir+"/orders-0"))
		overwrite(t, m, in(metadataFile), formatMetadata(topicID))
		overwrite(t, m, in("00000000000000000000.log"), first)
		overwrite(t, m, in("00000000000000000000.index"), index)
		overwrite(t, m, in("00000000000000000004.log"), second)
		overwrite(t, m, in("00000000000000000000.snapshot"), index)
		overwrite(t, m, in(epochFile), epochs)
		l, _, err := Open(m, dataDir, smallSegments(3), clean, quiet())
		if err != nil {
			t.Fatal(err) // every damage can be recovered from
		}
		if clean {
			// What lies below the recovery point is taken on trust, and reads may fail.
			_, _ = l.Read(l.StartOffset(), l.EndOffset(), 1<<20, true)
			_, _, _, _ = l.MaxTimestamp(l.EndOffset())
			return
		}
		readAll(t, l)
		end := l.EndOffset()
		if _, err := l.AppendFetched(fetched(one(1), end, 1<<30), 1<<30); err != nil && end < 1<<31 {
			t.Fatal(err)
		}
		must(t, l.Close())
		again, r := open(t, m, smallSegments(3), false)
		if again.EndOffset() != l.EndOffset() || r.CutAt != epoch.NoOffset {
			t.Fatalf("second start: end %d, was %d, %+v", again.EndOffset(), l.EndOffset(), r)
		}
	})
}
