package log

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// herd is some logs of one partition that replicate, compact, restart and are truncated as
// their leader says, in any order, by one random source.
type herd struct {
	t       *testing.T
	rng     *rand.Rand
	cfg     Config
	disks   []*vfs.Mem
	logs    []*Log
	leader  int
	epoch   epoch.LeaderEpoch
	hw      []epoch.Offset // as each log knows it
	now     time.Time
	written map[epoch.Offset]map[string]bool // what was ever written at an offset
	// committed is what is below the high watermark, record by record.
	committed []batch.Record
	trace     []string
	swaps     int
	fillers   int // cut by a read
}

func newHerd(t *testing.T, seed uint64, n int) *herd {
	h := &herd{t: t, rng: rand.New(rand.NewPCG(seed, 1)), cfg: config(), now: day0, hw: make([]epoch.Offset, n), written: map[epoch.Offset]map[string]bool{}}
	h.cfg.SegmentBytes, h.cfg.IndexIntervalBytes = 400+h.rng.Int64N(1200), 80
	for range n {
		disk := newMem(t)
		l, _ := open(t, disk, h.cfg, false)
		h.disks, h.logs = append(h.disks, disk), append(h.logs, l)
	}
	must(t, h.logs[0].AssignEpoch(0))
	return h
}

func (h *herd) say(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf(format, args...))
}

func (h *herd) fail(format string, args ...any) {
	h.t.Helper()
	last := h.trace[max(0, len(h.trace)-60):]
	h.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

func text(r batch.Record) string { return fmt.Sprintf("%s=%s(%t)", r.Key, r.Value, r.Value == nil) }

// key is one of a few, which are left alone after a time.
func (h *herd) key() int { return len(h.trace)/40*8 + h.rng.IntN(8) }

// produce appends a batch or two to the leader.
func (h *herd) produce() {
	l := h.logs[h.leader]
	for range 1 + h.rng.IntN(2) {
		w := batch.NewBuilder().Codec([]batch.Codec{0, 0, 0, batch.CodecSnappy}[h.rng.IntN(4)])
		at := l.EndOffset()
		for i := range 1 + h.rng.IntN(4) {
			r := batch.Record{Timestamp: h.now.UnixMilli() - h.rng.Int64N(1000), Key: fmt.Append(nil, "k", h.key()), Value: fmt.Append(nil, len(h.trace), ".", i)}
			if h.rng.IntN(5) == 0 {
				r.Value = nil
			}
			w.Add(r)
			if h.written[at] == nil {
				h.written[at] = map[string]bool{}
			}
			h.written[at][text(r)] = true
			at++
		}
		if h.rng.IntN(3) == 0 {
			id := h.rng.Int64N(3)
			next := int32(0)
			if p, ok := l.producers.producers[id]; ok {
				next = p.lastSequence() + 1
			}
			w.Producer(id, 0, next)
		}
		_, err := l.Append(h.epoch, []batch.Batch{w.Build()})
		must(h.t, err)
	}
	h.say("leader %d ends at %d", h.leader, l.EndOffset())
}

// exchange is one fetch of a log from the leader, with what a core decides.
func (h *herd) exchange(i int) {
	if i == h.leader {
		return
	}
	l, f := h.logs[h.leader], h.logs[i]
	offset, last := f.EndOffset(), f.EpochCache().Latest()
	if e, _ := l.EpochCache().EndOffset(last, l.EndOffset()); offset < l.StartOffset() || last == epoch.NoEpoch && offset != l.StartOffset() || last != epoch.NoEpoch && e == epoch.NoEpoch {
		must(h.t, f.TruncateFullyAndStartAt(l.StartOffset()))
		h.hw[i] = l.StartOffset()
		h.say("log %d begins anew at %d", i, l.StartOffset())
		return
	}
	if last != epoch.NoEpoch {
		e, end := l.EpochCache().EndOffset(last, l.EndOffset())
		if e != epoch.NoEpoch && (e < last || end < offset) {
			own, ownEnd := f.EpochCache().EndOffset(e, offset)
			to := min(end, offset)
			if own != e {
				to = min(ownEnd, offset)
			} else {
				to = min(to, ownEnd)
			}
			must(h.t, f.TruncateTo(max(to, 0)))
			h.hw[i] = min(h.hw[i], f.EndOffset())
			h.say("log %d was truncated to %d, and ends at %d", i, to, f.EndOffset())
			return
		}
	}
	if l.StartOffset() == offset && f.StartOffset() < offset { // all that it holds is deleted
		must(h.t, f.SetStartOffset(offset))
	}
	b, err := l.ReadForFollower(offset, l.EndOffset(), 100+h.rng.IntN(600))
	must(h.t, err)
	if offset < l.EndOffset() && len(b) == 0 {
		h.fail("log %d gets nothing at %d of a leader that ends at %d", i, offset, l.EndOffset())
	}
	if whole, err := l.Read(offset, l.EndOffset(), 1, true); err == nil && len(whole) > 0 && batch.Batch(whole).BaseOffset() < offset {
		h.fillers++
	}
	if n, err := f.AppendFetched(b, h.epoch); len(b) > 0 && (err != nil || n == 0) {
		h.fail("log %d takes %d batches at %d of %s: %v", i, n, offset, shape(h.t, b), err)
	}
	h.hw[i] = max(h.hw[i], min(h.hw[h.leader], f.EndOffset()))
	must(h.t, f.SetStartOffset(min(l.StartOffset(), h.hw[i])))
	h.say("log %d fetched %d..%d, high watermark %d", i, offset, f.EndOffset(), h.hw[i])
}

// commit moves the leader's high watermark to what a majority has, and remembers what that
// commits.
func (h *herd) commit() {
	l := h.logs[h.leader]
	var ends []epoch.Offset
	for _, f := range h.logs {
		if f == l || f.EpochCache().Latest() == h.epoch { // it has shown that its history is this one
			ends = append(ends, f.EndOffset())
		}
	}
	slices.Sort(ends)
	if need := len(h.logs)/2 + 1; len(ends) >= need {
		hw := ends[len(ends)-need]
		if b, err := l.Read(max(hw-1, 0), l.EndOffset(), 1, true); err != nil || len(b) == 0 || batch.Batch(b).LeaderEpoch() != h.epoch {
			return // as long as the epoch's own beginning is not everywhere
		}
		for o := epoch.Offset(len(h.committed)); o < hw; {
			b, err := l.Read(o, l.EndOffset(), 1, true)
			must(h.t, err)
			h.committed = append(h.committed, records0(h.t, b, o)...)
			o = batch.Batch(b).NextOffset()
		}
		h.hw[h.leader] = max(h.hw[h.leader], hw)
		h.say("high watermark %d", hw)
	}
}

// records0 are the records of a batch from an offset on.
func records0(t *testing.T, b batch.Batch, from epoch.Offset) (out []batch.Record) {
	byOffset := map[epoch.Offset]batch.Record{}
	for r, err := range batch.Records(b) {
		must(t, err)
		byOffset[r.Offset] = r
	}
	for o := from; o <= b.LastOffset(); o++ {
		r := byOffset[o]
		r.Offset = o
		out = append(out, r)
	}
	return out
}

// elect makes a log the leader that holds everything committed.
func (h *herd) elect() {
	i := h.rng.IntN(len(h.logs))
	f := h.logs[i]
	var ends []epoch.Offset
	for _, l := range h.logs {
		ends = append(ends, epoch.Offset(l.EpochCache().Latest())<<32|l.EndOffset())
	}
	mine := ends[i]
	slices.Sort(ends)
	if slices.Index(ends, mine) < len(ends)/2 { // not as new as a majority is
		return
	}
	h.epoch++
	h.leader = i
	must(h.t, f.AssignEpoch(h.epoch))
	h.say("log %d leads epoch %d, and ends at %d", i, h.epoch, f.EndOffset())
	h.produce()
}

// delete moves the leader's log start to anywhere below what is committed.
func (h *herd) delete() {
	l := h.logs[h.leader]
	if span := h.hw[h.leader] - l.StartOffset(); span > 0 {
		must(h.t, l.SetStartOffset(l.StartOffset()+epoch.Offset(h.rng.Int64N(int64(span)))))
		h.say("the log starts at %d", l.StartOffset())
	}
}

// compact plans a run, and does something else before each swap.
func (h *herd) compact(i int) {
	l := h.logs[i]
	_, err := l.Flush()
	must(h.t, err)
	low := l.EndOffset()
	for _, f := range h.logs {
		if f.EpochCache().Latest() != h.epoch {
			low = 0
		}
		low = min(low, f.EndOffset())
	}
	c, _ := l.PlanCompaction(CompactionRules{HighWatermark: h.hw[i], TombstonesBelow: low, Now: h.now, DeleteRetention: time.Hour,
		MinDirtyPercent: h.rng.IntN(100), MapBytes: keySlotBytes * (6 + h.rng.Int64N(20))})
	if c == nil {
		return
	}
	defer c.Close()
	for more := true; more; {
		must(h.t, c.Step(unpaced))
		if h.rng.IntN(3) == 0 && h.logs[i] == l {
			h.produce()
			h.exchange(i)
		}
		if more, err = l.SwapCompacted(c); err != nil {
			h.say("log %d: %v", i, err)
			return
		}
		h.swaps++
	}
	h.say("log %d is compacted up to %d: %+v", i, l.CleanedOffset(), c.Stats())
}

func (h *herd) restart(i int) {
	clean := h.rng.IntN(2) == 0
	if clean {
		must(h.t, h.logs[i].Close())
	}
	l, r := open(h.t, h.disks[i], h.cfg, clean)
	if r.EpochContradiction || r.EpochCacheRebuilt || r.CutAt != epoch.NoOffset {
		h.fail("log %d starts with %+v", i, r)
	}
	h.logs[i] = l
	h.hw[i] = min(h.hw[i], max(l.CheckpointedHighWatermark(), 0))
	if i == h.leader {
		h.hw[i] = min(h.hw[i], epoch.Offset(len(h.committed)))
	}
	h.say("log %d was started, clean: %t", i, clean)
}

// judge: who reads a log up to where it is known to be committed has of every key the last
// record, unless there is a later one that the log has not got yet, and has read nothing that
// was not written.
func (h *herd) judge(i int) {
	l := h.logs[i]
	end := min(h.hw[i], epoch.Offset(len(h.committed)))
	want, got := map[string]string{}, map[string]string{}
	for _, r := range h.committed[:end] {
		if r.Key != nil && r.Offset >= l.StartOffset() {
			want[string(r.Key)] = text(r)
		}
	}
	for _, r := range h.committed[end:] {
		delete(want, string(r.Key))
	}
	next := l.StartOffset()
	for rest := readAll(h.t, l); len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		must(h.t, err)
		first := max(b.BaseOffset(), l.StartOffset()) // which may lie within a batch
		if first != next || l.EpochCache().EpochAt(first) != b.LeaderEpoch() || l.EpochCache().EpochAt(b.LastOffset()) != b.LeaderEpoch() {
			h.fail("log %d: the batch of %d to %d, epoch %d, follows offset %d; epochs %s", i, b.BaseOffset(), b.LastOffset(), b.LeaderEpoch(), next, l.EpochCache())
		}
		for r, err := range batch.AllRecords(b) {
			must(h.t, err)
			if !h.written[r.Offset][text(r)] {
				h.fail("log %d holds %s at %d, where it was never written", i, text(r), r.Offset)
			}
			if r.Offset >= l.StartOffset() && r.Offset < end {
				got[string(r.Key)] = text(r)
			}
		}
		next, rest = b.NextOffset(), tail
	}
	for k, w := range want {
		deleted := strings.HasSuffix(w, "(true)")
		if g, ok := got[k]; ok && g != w || !ok && !deleted {
			h.fail("log %d, read up to %d: the last of key %s is %q, want %q: %s", i, end, k, g, w, shape(h.t, readAll(h.t, l)))
		}
	}
}

// TestDifferentlyCompactedLogs plays many such lives. -run with a seed repeats one.
func TestDifferentlyCompactedLogs(t *testing.T) {
	swaps, fillers := 0, 0
	for seed := range uint64(45) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHerd(t, seed, 2+min(int(seed%3), 1))
			for range 250 {
				i := h.rng.IntN(len(h.logs))
				switch h.rng.IntN(12) {
				case 0, 1, 2:
					h.produce()
				case 3, 4, 5, 6:
					if i < 2 || h.rng.IntN(6) == 0 { // the third lags behind
						h.exchange(i)
					}
				case 7:
					h.commit()
				case 8, 9:
					h.compact(i)
				case 10:
					h.now = h.now.Add(time.Duration(h.rng.IntN(90)) * time.Minute)
					if h.rng.IntN(4) == 0 {
						h.restart(i)
					}
				case 11:
					switch h.rng.IntN(9) {
					case 0, 1, 2:
						h.elect()
					case 3:
						h.delete()
					}
				}
				h.judge(i)
			}
			for range 500 { // and now all become the same
				for i := range h.logs {
					h.exchange(i)
				}
				h.commit()
			}
			for i := range h.logs {
				if h.logs[i].EndOffset() != h.logs[h.leader].EndOffset() {
					h.fail("log %d ends at %d, the leader's at %d", i, h.logs[i].EndOffset(), h.logs[h.leader].EndOffset())
				}
				h.judge(i)
			}
			swaps, fillers = swaps+h.swaps, fillers+h.fillers
		})
	}
	t.Logf("%d segments swapped in, %d fillers cut", swaps, fillers)
	if swaps < 500 || fillers < 20 {
		t.Error("these lives show too little")
	}
}
