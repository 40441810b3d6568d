package log

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// day0 is the clock of these tests; records are a little older.
var day0 = time.UnixMilli(10_000_000)

func rules(l *Log) CompactionRules {
	return CompactionRules{HighWatermark: l.EndOffset(), TombstonesBelow: l.EndOffset(), Now: day0, DeleteRetention: time.Hour}
}

func unpaced(int64) error { return nil }

// compact runs a compaction to its end, and reports whether there was one.
func compact(t testing.TB, l *Log, r CompactionRules) bool {
	t.Helper()
	_, err := l.Flush()
	must(t, err)
	c, _ := l.PlanCompaction(r)
	if c == nil {
		return false
	}
	defer c.Close()
	for more := true; more; {
		must(t, c.Step(unpaced))
		more, err = l.SwapCompacted(c)
		must(t, err)
	}
	return true
}

// kv makes a batch of "key=value"; "key" alone is a tombstone, "=value" has no key.
func kv(records ...string) *batch.Builder {
	w := batch.NewBuilder()
	for i, s := range records {
		key, value, whole := strings.Cut(s, "=")
		r := batch.Record{Timestamp: int64(1000 + i), Key: []byte(key), Value: []byte(value)}
		if !whole {
			r.Value = nil
		}
		if key == "" {
			r.Key = nil
		}
		w.Add(r)
	}
	return w
}

func write(t testing.TB, l *Log, e epoch.LeaderEpoch, batches ...*batch.Builder) {
	t.Helper()
	for _, w := range batches {
		_, err := l.Append(e, []batch.Batch{w.Build()})
		must(t, err)
	}
}

// seal makes everything that was appended part of sealed segments.
func seal(t testing.TB, l *Log, e epoch.LeaderEpoch) {
	t.Helper()
	must(t, l.roll())
	write(t, l, e, kv("end="))
}

// shape prints batches as "base-last/epoch", each with its records.
func shape(t testing.TB, b []byte) string {
	t.Helper()
	var out []string
	for len(b) > 0 {
		bt, rest, err := batch.Next(b)
		must(t, err)
		must(t, bt.CheckCRC())
		s := fmt.Sprintf("%d-%d/%d", bt.BaseOffset(), bt.LastOffset(), bt.LeaderEpoch())
		if bt.ProducerID() >= 0 {
			s += fmt.Sprintf(" of %d", bt.ProducerID())
		}
		s += "["
		for r, err := range batch.AllRecords(bt) {
			must(t, err)
			s += fmt.Sprintf(" %d:%s", r.Offset, r.Key)
			if r.Value != nil {
				s += "=" + string(r.Value)
			}
		}
		out, b = append(out, s+" ]"), rest
	}
	return strings.Join(out, " ")
}

func wantShape(t *testing.T, l *Log, want string) {
	t.Helper()
	if got := shape(t, readAll(t, l)); got != want {
		t.Errorf("the log holds\n  %s\nwant\n  %s", got, want)
	}
}

func TestCompactionKeepsTheLastOfEveryKey(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	write(t, l, 1, kv("a=1", "b=1", "a=2"), kv("a=3"), kv("b=2"))
	write(t, l, 2, kv("c=1", "=none"), kv("b=3"), kv("b=4", "d=1"))
	seal(t, l, 2)
	before := l.EpochCache()
	if !compact(t, l, rules(l)) {
		t.Fatal("there was nothing to compact")
	}
	want := "0-2/1[ ] 3-3/1[ 3:a=3 ] 4-4/1[ ] 5-6/2[ 5:c=1 ] 7-7/2[ ] 8-9/2[ 8:b=4 9:d=1 ] 10-10/2[ 10:end= ]"
	wantShape(t, l, want)
	if l.CleanedOffset() != 10 {
		t.Errorf("compacted up to %d, want 10", l.CleanedOffset())
	}
	if compact(t, l, rules(l)) {
		t.Error("compacted again although nothing was appended")
	}
	must(t, l.Close())
	l, r := open(t, mem, config(), false)
	wantShape(t, l, want)
	if !l.EpochCache().Equal(before) || r.EpochContradiction || l.CleanedOffset() != 10 {
		t.Errorf("opened again: cache %s, was %s; compacted up to %d; %+v", l.EpochCache(), before, l.CleanedOffset(), r)
	}
}

func TestRunsOfEmptiedBatchesBecomeOne(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	for i := range 5 {
		write(t, l, 1, kv(fmt.Sprint("a=", i)))
	}
	for i := range 5 {
		write(t, l, 2, kv(fmt.Sprint("a=", i)))
	}
	seal(t, l, 2)
	compact(t, l, rules(l))
	wantShape(t, l, "0-4/1[ ] 5-8/2[ ] 9-9/2[ 9:a=4 ] 10-10/2[ 10:end= ]")
	write(t, l, 2, kv("a=5"))
	seal(t, l, 2)
	compact(t, l, rules(l))
	wantShape(t, l, "0-4/1[ ] 5-9/2[ ] 10-10/2[ 10:end= ] 11-11/2[ 11:a=5 ] 12-12/2[ 12:end= ]")
}

func TestSmallSegmentsBecomeOne(t *testing.T) {
	mem := newMem(t)
	cfg := config()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 2000, 100
	l, _ := open(t, mem, cfg, false)
	for i := range 300 {
		write(t, l, 1, kv(fmt.Sprintf("key%d=%d", i%7, i)))
	}
	before := len(files(t, mem, suffixLog))
	for range 4 { // what has shrunk fits together the next time
		write(t, l, 1, kv("key0=again"))
		seal(t, l, 1)
		compact(t, l, rules(l))
	}
	after := files(t, mem, suffixLog)
	if len(after) > 2 || before < 10 {
		t.Errorf("%d segments have become %d: %s", before, len(after), after)
	}
	for _, suffix := range []string{suffixCleaned, suffixSwap} {
		if left := files(t, mem, suffix); len(left) > 0 {
			t.Errorf("left behind: %s", left)
		}
	}
	if n := len(files(t, mem, suffixIndex)); n != len(after)-1 {
		t.Errorf("%d offset indexes for %d segments, of which one is written", n, len(after))
	}
	for o := range l.EndOffset() {
		b, err := l.Read(o, l.EndOffset(), 1, true)
		must(t, err)
		if first := lastOf(t, b); first.BaseOffset() > o || first.LastOffset() < o {
			t.Fatalf("a read at %d gives the batch of %d to %d", o, first.BaseOffset(), first.LastOffset())
		}
	}
}

func TestTombstonesStayForTheirTime(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"), kv("b=1"), kv("a", "c=1"))
	seal(t, l, 1)
	r := rules(l)
	compact(t, l, r)
	with := "0-0/1[ ] 1-1/1[ 1:b=1 ] 2-3/1[ 2:a 3:c=1 ] "
	wantShape(t, l, with+"4-4/1[ 4:end= ]")
	horizon := func() int64 {
		b, err := l.Read(2, 4, 1, true)
		must(t, err)
		return batch.Batch(b).Horizon()
	}
	if got, want := horizon(), day0.Add(time.Hour).UnixMilli(); got != want {
		t.Errorf("horizon %d, want %d", got, want)
	}
	again := func(change func(*CompactionRules)) {
		write(t, l, 1, kv("end=x"))
		seal(t, l, 1)
		r := rules(l)
		change(&r)
		if !compact(t, l, r) {
			t.Fatal("nothing was compacted")
		}
	}
	again(func(r *CompactionRules) { r.Now = day0.Add(time.Hour - time.Millisecond) })
	if got := shape(t, readAll(t, l)); !strings.HasPrefix(got, with) || horizon() != day0.Add(time.Hour).UnixMilli() {
		t.Errorf("a moment too early: %s, horizon %d", got, horizon())
	}
	again(func(r *CompactionRules) { r.Now, r.TombstonesBelow = day0.Add(2*time.Hour), 2 })
	if got := shape(t, readAll(t, l)); !strings.HasPrefix(got, with) {
		t.Errorf("a replica has not seen the tombstone, and it is gone: %s", got)
	}
	again(func(r *CompactionRules) { r.Now = day0.Add(time.Hour) })
	if got := shape(t, readAll(t, l)); !strings.HasPrefix(got, "0-0/1[ ] 1-1/1[ 1:b=1 ] 2-3/1[ 3:c=1 ] ") {
		t.Errorf("the tombstone is still there: %s", got)
	}
}

// A follower may copy a tombstone whose time is over, and have older records of the key.
func TestATombstoneTakesWhatItDeletesWithIt(t *testing.T) {
	leader, _ := open(t, newMem(t), config(), false)
	write(t, leader, 1, kv("a=1"), kv("a"))
	seal(t, leader, 1)
	compact(t, leader, rules(leader))
	follower, _ := open(t, newMem(t), config(), false)
	first := kv("a=1").Build()
	_, err := follower.AppendFetched(fetched(first, 0, 1), 1)
	must(t, err)
	rest, err := leader.ReadForFollower(1, leader.EndOffset(), 1<<20)
	must(t, err)
	_, err = follower.AppendFetched(rest, 1)
	must(t, err)
	seal(t, follower, 1)
	r := rules(follower)
	r.Now = day0.Add(48 * time.Hour)
	compact(t, follower, r)
	if got := shape(t, readAll(t, follower)); strings.Contains(got, ":a") {
		t.Errorf("the follower keeps %s", got)
	}
}

func TestCompactionStaysBelowTheHighWatermarkAndTheSync(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"))
	seal(t, l, 1)
	write(t, l, 1, kv("a=2"))
	seal(t, l, 1)
	if c, _ := l.PlanCompaction(rules(l)); c != nil {
		t.Error("what is not synced is compacted")
	}
	r := rules(l)
	r.HighWatermark = 2 // a=2 may yet be truncated
	compact(t, l, r)
	if got := shape(t, readAll(t, l)); !strings.HasPrefix(got, "0-0/1[ 0:a=1 ]") {
		t.Errorf("a committed record has gone for one that is not: %s", got)
	}
	must(t, l.TruncateTo(2))
	wantShape(t, l, "0-0/1[ 0:a=1 ] 1-1/1[ 1:end= ]")
}

func TestCompactionLeavesTheLastBatchOfTheLog(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"), kv("=gone"))
	must(t, l.roll()) // the segment being written is empty
	last, _ := l.LastBatch()
	compact(t, l, rules(l))
	if id, found, err := l.BatchEndingAt(1); err != nil || !found || id != last {
		t.Errorf("the last batch is %+v (%t, %v), the witness saw %+v", id, found, err, last)
	}
}

func TestYoungSegmentsAreLeftAlone(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	write(t, l, 1, kv("a=1"), kv("a=2"))
	seal(t, l, 1)
	r := rules(l)
	r.Now, r.MinLag = time.UnixMilli(61_000), time.Minute
	r.MinLag += time.Millisecond
	if compact(t, l, r) {
		t.Error("a segment was compacted before its time")
	}
	r.MinLag -= time.Millisecond
	if !compact(t, l, r) {
		t.Error("a segment is old enough, and was not compacted")
	}
}

func TestCompactionWaitsUntilEnoughIsDirty(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	for i := range 20 {
		write(t, l, 1, kv(fmt.Sprintf("key%d=1", i)))
	}
	seal(t, l, 1)
	compact(t, l, rules(l))
	r := rules(l)
	r.MinDirtyPercent = 50
	for i := 0; !compact(t, l, r); i++ {
		if _, d := l.PlanCompaction(r); d.Ratio() >= 0.5 || i > 30 {
			t.Fatalf("not compacted with %.2f dirty, after %d more batches", d.Ratio(), i)
		}
		write(t, l, 1, kv(fmt.Sprintf("new%d=1", i)))
		seal(t, l, 1)
		r.HighWatermark = l.EndOffset()
	}
}

func TestAProducersLastBatchStays(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	send := func(id int64, sequence int32, records ...string) batch.Batch {
		return kv(records...).Producer(id, 0, sequence).Build()
	}
	var twelve batch.Batch
	for _, b := range []batch.Batch{send(1, 0, "a=1"), send(1, 1, "a=2", "b=1"), send(2, 0, "a=3"), kv("a=4", "b=2").Build()} {
		if b.BaseSequence() == 1 {
			twelve = append(batch.Batch(nil), b...)
		}
		_, err := l.Append(1, []batch.Batch{b})
		must(t, err)
	}
	seal(t, l, 1)
	compact(t, l, rules(l))
	want := "0-0/1[ ] 1-2/1 of 1[ ] 3-3/1 of 2[ ] 4-5/1[ 4:a=4 5:b=2 ] 6-6/1[ 6:end= ]"
	wantShape(t, l, want)
	for range 2 {
		d, again, err := l.Producers().Check(twelve)
		if err != nil || !again || d.Base != 1 || d.Last != 2 {
			t.Errorf("a batch sent again is not known: %+v %t %v", d, again, err)
		}
		if _, _, err := l.Producers().Check(send(1, 9, "x=1")); !errors.Is(err, ErrOutOfOrderSequence) {
			t.Errorf("a gap in the sequence: %v", err)
		}
		must(t, l.Close())
		for _, name := range files(t, mem, suffixSnapshot) {
			must(t, mem.Remove(in(name)))
		}
		l, _ = open(t, mem, config(), false)
		wantShape(t, l, want)
	}
	// Once the producers are forgotten, so are their batches.
	l.cfg.ProducerExpiry = time.Hour
	l.ExpireProducers(day0)
	l.ExpireProducers(day0.Add(2 * time.Hour))
	write(t, l, 1, kv("b=3"))
	seal(t, l, 1)
	compact(t, l, rules(l))
	wantShape(t, l, "0-3/1[ ] 4-5/1[ 4:a=4 ] 6-6/1[ 6:end= ] 7-7/1[ 7:b=3 ] 8-8/1[ 8:end= ]")
}

// A truncation may make an older batch the producer's last again.
func TestAProducersLastCommittedBatchStays(t *testing.T) {
	mem := newMem(t)
	l, _ := open(t, mem, config(), false)
	one, two := kv("a=1").Producer(1, 0, 0).Build(), kv("a=3").Producer(1, 0, 1).Build()
	_, err := l.Append(1, []batch.Batch{append(batch.Batch(nil), one...), kv("a=2").Build()})
	must(t, err)
	seal(t, l, 1)
	_, err = l.Append(1, []batch.Batch{two})
	must(t, err)
	r := rules(l)
	r.HighWatermark = 3
	compact(t, l, r)
	for _, name := range files(t, mem, suffixSnapshot) { // those of the newest segments would tell it, too
		must(t, mem.Remove(in(name)))
	}
	must(t, l.TruncateTo(3))
	if _, again, err := l.Producers().Check(one); !again || err != nil {
		t.Errorf("a retry of the committed batch counts as new: %v", err)
	}
}

func TestTheMapIsFilledInParts(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	var want []string
	for i := range 200 {
		write(t, l, 1, kv(fmt.Sprintf("k%d=old", i), fmt.Sprintf("l%d=old", i)))
	}
	for i := range 200 {
		write(t, l, 1, kv(fmt.Sprintf("k%d=new", i), fmt.Sprintf("l%d=new", i)))
		want = append(want, fmt.Sprintf("k%d=new", i), fmt.Sprintf("l%d=new", i))
	}
	seal(t, l, 1)
	r := rules(l)
	r.MapBytes = 31 * 24 // 23 keys: a run ends within a batch
	runs := 0
	for before := l.CleanedOffset(); compact(t, l, r); before = l.CleanedOffset() {
		if runs++; l.CleanedOffset() <= before {
			t.Fatalf("run %d ends at %d, the one before at %d", runs, l.CleanedOffset(), before)
		}
	}
	if runs < 20 {
		t.Errorf("%d runs: the map holds more than it should", runs)
	}
	var got []string
	for rest := readAll(t, l); len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		must(t, err)
		for r, err := range batch.Records(b) {
			must(t, err)
			got = append(got, fmt.Sprintf("%s=%s", r.Key, r.Value))
		}
		rest = tail
	}
	if want = append(want, "end="); !slices.Equal(got, want) {
		t.Errorf("%d records are left: %s\nwant %d: %s", len(got), got, len(want), want)
	}
}

func TestKeyMap(t *testing.T) {
	if got := unsafe.Sizeof(keySlot{}); got != keySlotBytes {
		t.Errorf("a slot has %d bytes, %d are counted", got, keySlotBytes)
	}
	m := newKeyMap(1000*keySlotBytes, math.MaxInt32)
	n := 0
	for ; m.put(fmt.Append(nil, "key", n), epoch.Offset(n)); n++ {
	}
	if n != 750 {
		t.Errorf("%d keys fit, want three quarters of 1000", n)
	}
	for i := range n {
		key := fmt.Append(nil, "key", i)
		if !m.put(key, epoch.Offset(i+5000)) || !m.put(key, 3) || m.last(key) != epoch.Offset(i+5000) {
			t.Fatalf("key %d was last seen at %d", i, m.last(key))
		}
	}
	if m.last([]byte("other")) != epoch.NoOffset {
		t.Error("a key that was never put is known")
	}
	if few := newKeyMap(DefaultKeyMapBytes, 3); len(few.slots) > 10 {
		t.Errorf("%d slots for three keys", len(few.slots))
	}
}

// What compaction leaves is sound: batches without all of their records, or without any,
// time indexes of those that have some, producers' batches that are gone.
func TestVerifyFindsNothingInACompactedLog(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(8), false)
	sequence := map[int64]int32{}
	for i := range 60 {
		id := int64(i % 3)
		w := batch.NewBuilder().Producer(id, 0, sequence[id])
		for j := range 1 + i%4 {
			w.Record(day0.UnixMilli()+int64(1000*i+j), fmt.Append(nil, (i+j)%5), fmt.Append(nil, i))
			sequence[id]++
		}
		if _, err := l.Append(epoch.LeaderEpoch(i/25), []batch.Batch{w.Build()}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Flush()
	must(t, err)
	size := l.Size()
	if !compact(t, l, rules(l)) || l.Size() > size/2 {
		t.Fatalf("compacted from %d to %d bytes: nothing is tested", size, l.Size())
	}
	must(t, l.Close())
	must(t, l.Checkpoint(l.EndOffset()))
	found, sum := verify(t, readOnly(t, m))
	if len(found) > 0 || sum.Thinned == 0 {
		t.Errorf("%d batches without all of their records, findings %v", sum.Thinned, found)
	}
}
