package log

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

var crashes = flag.Int("log.crashes", 30, "how many power cuts TestEveryPowerCut tries before each operation on the disk")

// life is a log whose every power cut is tried: before each operation on its disk, all
// that a cut may leave is opened, and judged by what was ever written and synced.
type life struct {
	t   *testing.T
	cfg Config
	fs  *vfs.Mem
	log *Log

	written map[epoch.Offset][]string // every batch that ever was at an offset
	// synced are the batches that a sync has made durable, and no truncation was begun
	// for since; start is the highest log start asked for.
	synced map[epoch.Offset]string
	start  epoch.Offset
	next   int // the value of the next record
	// keys is how many keys the records have, 0 if none; compacted are the batches that
	// compactions have made.
	keys      int
	compacted map[string]bool

	operations, cuts, judged, deepest int
	nested                            bool
}

func newLife(t *testing.T, cfg Config) *life {
	l := &life{t: t, cfg: cfg, fs: newMem(t), written: map[epoch.Offset][]string{}, synced: map[epoch.Offset]string{}, compacted: map[string]bool{}}
	l.fs.SetFault(l.before)
	l.log, _ = open(t, l.fs, cfg, false)
	return l
}

// before tries the power cuts that may come now.
func (l *life) before(op vfs.Op) error {
	if op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen {
		return nil
	}
	l.operations++
	if l.t.Failed() {
		return nil
	}
	limit := *crashes
	if l.keys > 0 { // a swap changes many names at once
		limit = max(limit, 100)
	}
	n := l.fs.EachCrash(limit, func(left *vfs.Mem) {
		l.judge(left, fmt.Sprintf("before operation %d, %s of %s", l.operations, op.Kind, op.Name))
	})
	l.cuts, l.deepest = l.cuts+n, max(l.deepest, n)
	return nil
}

// judge opens what is left. Whatever that is, the log is a whole one of batches that were
// there once, agrees with its epochs, holds all that was synced, and is no different when
// it is opened again; a second cut, during the recovery, changes nothing of that.
func (l *life) judge(left *vfs.Mem, when string) {
	if l.t.Failed() {
		return
	}
	if l.judged++; !l.nested && l.judged%11 == 0 {
		l.nested = true
		left.SetFault(func(op vfs.Op) error {
			if op.Kind != vfs.OpRead && op.Kind != vfs.OpOpen {
				n := left.EachCrash(8, func(again *vfs.Mem) {
					l.judge(again, when+", and again in the recovery, before "+string(op.Kind)+" of "+op.Name)
				})
				l.cuts += n
			}
			return nil
		})
		defer func() { l.nested = false }()
	}
	opened, r, err := Open(left, dataDir, l.cfg, false, quiet())
	left.SetFault(nil)
	if err != nil {
		l.t.Errorf("%s: %v\n%s", when, err, left)
		return
	}
	if r.EpochContradiction || r.EpochCacheRebuilt {
		l.t.Errorf("%s: the epochs had to be made out: %+v", when, r)
	}
	cache := opened.EpochCache()
	kept := map[epoch.Offset]string{}
	last := epoch.NoEpoch
	for rest := readAll(l.t, opened); len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		must(l.t, err)
		rest = tail
		kept[b.BaseOffset()] = string(b)
		if !contains(l.written[b.BaseOffset()], string(b)) && !l.compacted[string(b)] {
			l.t.Errorf("%s: a batch at offset %d that was never written there", when, b.BaseOffset())
		}
		if b.LeaderEpoch() < last || cache.EpochAt(b.LastOffset()) != b.LeaderEpoch() {
			l.t.Errorf("%s: epoch %d at offset %d follows %d; the cache is %s", when, b.LeaderEpoch(), b.BaseOffset(), last, cache)
		}
		last = b.LeaderEpoch()
	}
	l.judgeCompacted(opened, when)
	for o, b := range l.synced {
		if kept[o] != b && batch.Batch(b).LastOffset() >= max(l.start, opened.StartOffset()) && len(l.compacted) == 0 {
			l.t.Errorf("%s: the batch at offset %d was synced and is gone: the log is [%d, %d)", when, o, opened.StartOffset(), opened.EndOffset())
		}
	}
	if opened.StartOffset() > l.start {
		l.t.Errorf("%s: the log starts at %d, and was asked to start at %d", when, opened.StartOffset(), l.start)
	}
	if hw := opened.CheckpointedHighWatermark(); hw < opened.StartOffset() || hw > opened.EndOffset() {
		l.t.Errorf("%s: high watermark %d of a log [%d, %d)", when, hw, opened.StartOffset(), opened.EndOffset())
	}
	l.again(opened, left, when)
}

// again opens the log a second time, and then goes on with it.
func (l *life) again(opened *Log, left *vfs.Mem, when string) {
	twice, r, err := Open(left, dataDir, l.cfg, false, quiet())
	if err != nil || r.CutAt != epoch.NoOffset || twice.EndOffset() != opened.EndOffset() || !twice.EpochCache().Equal(opened.EpochCache()) ||
		string(readAll(l.t, twice)) != string(readAll(l.t, opened)) {
		l.t.Errorf("%s: opened again, it is another log: %+v, %v", when, r, err)
		return
	}
	e := twice.EpochCache().Latest() + 1
	at, err := twice.Append(e, []batch.Batch{one(7777)})
	if err != nil || at != opened.EndOffset() || twice.EpochCache().EpochAt(at) != e {
		l.t.Errorf("%s: the next append lands at %d (%v), want %d", when, at, err, opened.EndOffset())
	}
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// append writes batches of so many records each with one write.
func (l *life) append(e epoch.LeaderEpoch, counts ...int) {
	l.t.Helper()
	batches := make([]batch.Batch, 0, len(counts))
	at := l.log.EndOffset()
	for _, n := range counts {
		b := l.batch(n)
		l.next += n
		b.SetBaseOffset(at)
		b.SetLeaderEpoch(e)
		l.written[at] = append(l.written[at], string(b)) // before it is: a cut may come in the middle
		at = b.NextOffset()
		batches = append(batches, b)
	}
	if _, err := l.log.Append(e, batches); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) batch(n int) batch.Batch {
	if l.keys == 0 {
		return many(l.next, n)
	}
	w := batch.NewBuilder()
	for i := l.next; i < l.next+n; i++ {
		w.Record(int64(1000+i), fmt.Append(nil, i%l.keys), fmt.Appendf(nil, "%04d", i))
	}
	return w.Build()
}

// compact runs a compaction of all that is synced and sealed.
func (l *life) compact() {
	l.t.Helper()
	l.flush()
	c, _ := l.log.PlanCompaction(rules(l.log))
	if c == nil {
		l.t.Fatal("there is nothing to compact")
	}
	defer c.Close()
	for more := true; more; {
		must(l.t, c.Step(unpaced))
		if c.made != nil { // a cut may come in the middle of the swap
			must(l.t, c.eachWhole(c.made, unpaced, func(b batch.Batch) error { l.compacted[string(b)] = true; return nil }))
		}
		var err error
		more, err = l.log.SwapCompacted(c)
		must(l.t, err)
	}
}

// judgeCompacted: of every key the log holds the last record that was synced, or one written
// later; the checkpoint does not lie behind the log; and every offset is found.
func (l *life) judgeCompacted(opened *Log, when string) {
	if l.keys == 0 {
		return
	}
	value := func(latest map[string]string, b batch.Batch) {
		for r, err := range batch.Records(b) {
			must(l.t, err)
			latest[string(r.Key)] = max(latest[string(r.Key)], string(r.Value))
		}
	}
	kept, synced := map[string]string{}, map[string]string{}
	for all := readAll(l.t, opened); len(all) > 0; {
		b, rest, err := batch.Next(all)
		must(l.t, err)
		value(kept, b)
		o := max(b.LastOffset(), opened.StartOffset())
		if found, err := opened.Read(o, opened.EndOffset(), 1, true); err != nil || string(found) != string(b) {
			l.t.Fatalf("%s: at offset %d the log reads %s, %v, want %s", when, o, shape(l.t, found), err, shape(l.t, b))
		}
		all = rest
	}
	for _, b := range l.synced {
		if o := batch.Batch(b).LastOffset(); o >= l.start && o >= opened.StartOffset() {
			value(synced, batch.Batch(b))
		}
	}
	for k, v := range synced {
		if kept[k] < v {
			l.t.Errorf("%s: of key %s the log holds %q, and %s was synced: %s", when, k, kept[k], v, shape(l.t, readAll(l.t, opened)))
		}
	}
	if opened.CleanedOffset() > opened.EndOffset() {
		l.t.Errorf("%s: compacted up to %d, and the log ends at %d", when, opened.CleanedOffset(), opened.EndOffset())
	}
}

func (l *life) flush() {
	l.t.Helper()
	_, err := l.log.Flush()
	must(l.t, err)
	for rest := readAll(l.t, l.log); len(rest) > 0; {
		b, tail, err := batch.Next(rest)
		must(l.t, err)
		l.synced[b.BaseOffset()], rest = string(b), tail
	}
}

func (l *life) truncate(to epoch.Offset) {
	l.t.Helper()
	for o, b := range l.synced {
		if batch.Batch(b).LastOffset() >= to {
			delete(l.synced, o)
		}
	}
	must(l.t, l.log.TruncateTo(to))
}

func (l *life) setStart(o epoch.Offset) {
	l.t.Helper()
	l.start = max(l.start, o)
	must(l.t, l.log.SetStartOffset(o))
}

func (l *life) empty(at epoch.Offset) {
	l.t.Helper()
	clear(l.synced)
	l.start = max(l.start, at)
	must(l.t, l.log.TruncateFullyAndStartAt(at))
}

// restart closes the log in good order and opens it, with or without the mark.
func (l *life) restart(clean bool) {
	l.t.Helper()
	l.flush()
	must(l.t, l.log.Close())
	must(l.t, l.log.Checkpoint(l.log.EndOffset()))
	l.log, _ = open(l.t, l.fs, l.cfg, clean)
}

// TestEveryPowerCut is the enumeration over lives that hold every operation of the log.
// `go test ./pkg/replica/log -run EveryPowerCut -log.crashes 5000` looks harder.
func TestEveryPowerCut(t *testing.T) {
	cfg := smallSegments(20) // 1440 bytes, three sectors of the disk
	total := 0
	for name, live := range map[string]func(*life){
		"appends, rolls and flushes": func(l *life) {
			l.append(0, 1)
			l.append(0, 20, 60)
			l.flush()
			l.append(1, 90)
			l.append(1, 30, 1, 40)
			l.flush()
			must(l.t, l.log.Checkpoint(100))
			l.append(4, 1)
			must(l.t, l.log.AssignEpoch(6))
			l.append(6, 70)
			l.append(6, 60)
		},
		"truncations": func(l *life) {
			l.append(0, 1, 60)
			l.append(1, 70, 1)
			l.append(1, 90)
			l.flush()
			must(l.t, l.log.Checkpoint(200))
			l.append(2, 1, 1)
			l.truncate(132)
			l.append(3, 60)
			l.truncate(61)
			l.append(5, 80, 1)
			l.append(5, 80)
			l.append(5, 1)
			l.flush()
			must(l.t, l.log.Checkpoint(100))
			l.truncate(0)
			l.append(7, 80)
			l.append(7, 80)
			l.flush()
		},
		"log start and deletion": func(l *life) {
			l.append(0, 1, 60, 1)
			l.append(1, 70, 1)
			l.flush()
			l.setStart(2)
			l.append(2, 50, 1)
			l.setStart(133)
			must(l.t, l.log.Checkpoint(140))
			l.setStart(184)
			l.append(3, 1)
			l.flush()
		},
		"emptied and begun anew": func(l *life) {
			l.append(0, 1, 1, 1, 1)
			l.flush()
			l.empty(20)
			l.append(3, 1, 1)
			l.flush()
			l.empty(20)
			l.append(4, 2)
			l.flush()
		},
		"orderly stops": func(l *life) {
			l.append(0, 1, 1)
			l.restart(true)
			l.append(1, 1, 1)
			l.restart(false)
			l.append(2, 1)
			l.flush()
			must(l.t, l.log.Checkpoint(3))
		},
		"compactions": func(l *life) {
			l.keys = 7
			l.append(0, 1, 40)
			l.append(1, 30, 1, 40)
			l.append(1, 50)
			l.compact()
			l.append(2, 60)
			l.restart(false)
			l.append(4, 60)
			l.compact()
		},
		"compactions, truncations and deletions": func(l *life) {
			l.keys = 5
			l.append(0, 30, 30)
			l.append(1, 50)
			l.append(1, 60)
			l.compact()
			l.truncate(115) // of what no compaction has decided by
			l.setStart(35)
			l.append(3, 60)
			l.append(3, 60)
			l.compact()
		},
		"written anew after a failed sync": func(l *life) {
			l.append(0, 1, 1)
			l.flush()
			l.append(1, 1, 1)
			var once vfs.Faults
			once = append(once, &vfs.Fault{Kind: vfs.OpSync, Name: ".log", Times: 1, Err: &vfs.Dropped{Err: errors.New("EIO")}})
			l.fs.SetFault(func(op vfs.Op) error { return errors.Join(l.before(op), once.Judge(op)) })
			if _, err := l.log.Flush(); !errors.Is(err, ErrFailed) {
				l.t.Fatalf("the sync did not fail: %v", err)
			}
			l.fs.SetFault(l.before)
			l.log, _ = open(l.t, l.fs, l.cfg, false)
			must(l.t, l.log.Rewrite())
			l.flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, cfg)
			live(l)
			l.fs.SetFault(nil)
			t.Logf("%d power cuts before %d operations, up to %d before one", l.cuts, l.operations, l.deepest)
			total += l.cuts
		})
	}
	if total < 10_000 && *crashes >= 30 {
		t.Errorf("only %d power cuts in all", total)
	}
}
