package log

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// seq is a batch of n records of producer 1.
func seq(producerEpoch int16, first int32, n int) batch.Batch {
	return batch.NewBuilder().Producer(1, producerEpoch, first).Values(make([]string, n)...).Build()
}

// produce does what a leader does with the batches of one round: judge each against
// the stage, append those that are new with one call.
func produce(t *testing.T, l *Log, batches ...batch.Batch) (dups []Duplicate, errs []error) {
	t.Helper()
	g := l.Producers().Stage(l.EndOffset())
	var accepted []batch.Batch
	for _, b := range batches {
		d, dup, err := g.Check(b)
		switch {
		case err != nil:
			errs = append(errs, err)
		case dup:
			dups = append(dups, d)
		default:
			g.Add(b)
			accepted = append(accepted, b)
		}
	}
	_, err := l.Append(0, accepted)
	must(t, err)
	if g.Next() != l.EndOffset() {
		t.Fatalf("stage expected the log to end at %d, it ends at %d", g.Next(), l.EndOffset())
	}
	return dups, errs
}

func TestProducerRules(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before []batch.Batch
		in     batch.Batch
		dup    *Duplicate
		want   error
	}{
		{"first ever", nil, seq(0, 0, 2), nil, nil},
		{"unknown producer in mid-sequence (F10)", nil, seq(3, 17, 1), nil, nil},
		{"next", []batch.Batch{seq(0, 0, 2)}, seq(0, 2, 1), nil, nil},
		{"gap", []batch.Batch{seq(0, 0, 2)}, seq(0, 3, 1), nil, ErrOutOfOrderSequence},
		{"sent again", []batch.Batch{seq(0, 0, 2)}, seq(0, 0, 2), &Duplicate{Base: 0, Last: 1}, nil},
		{"same start, other length (F15)", []batch.Batch{seq(0, 0, 2)}, seq(0, 0, 1), nil, ErrOutOfOrderSequence},
		{"overlap (F15)", []batch.Batch{seq(0, 0, 2)}, seq(0, 1, 2), nil, ErrOutOfOrderSequence},
		{"fifth last sent again", sixBatches(), seq(0, 1, 1), &Duplicate{Base: 1, Last: 1}, nil},
		{"sixth last sent again (F02)", sixBatches(), seq(0, 0, 1), nil, ErrOutOfOrderSequence},
		{"older epoch", []batch.Batch{seq(2, 0, 1)}, seq(1, 1, 1), nil, ErrInvalidProducerEpoch},
		{"newer epoch from 0", []batch.Batch{seq(0, 0, 9)}, seq(1, 0, 1), nil, nil},
		{"newer epoch not from 0 (F04)", []batch.Batch{seq(0, 0, 9)}, seq(1, 9, 1), nil, ErrOutOfOrderSequence},
		{"range of the epoch before", []batch.Batch{seq(0, 0, 2), seq(1, 0, 1)}, seq(0, 0, 2), nil, ErrInvalidProducerEpoch},
		{"wraps between batches (F06)", []batch.Batch{seq(0, math.MaxInt32, 1)}, seq(0, 0, 1), nil, nil},
		{"wraps inside of a batch (F06)", []batch.Batch{seq(0, math.MaxInt32-1, 4)}, seq(0, 2, 1), nil, nil},
		{"not idempotent", []batch.Batch{seq(0, 0, 2)}, one(0), nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := func(d Duplicate, dup bool, err error, staged bool) {
				t.Helper()
				if !errors.Is(err, tc.want) || dup != (tc.dup != nil) {
					t.Fatalf("got duplicate %v (%+v), %v", dup, d, err)
				}
				if dup && (d.Base != tc.dup.Base || d.Last != tc.dup.Last || d.Staged != staged) {
					t.Fatalf("duplicate of %+v, want %+v, staged %v", d, *tc.dup, staged)
				}
			}
			// Once with what came before in the log, once in the same stage.
			l, _ := open(t, newMem(t), config(), true)
			g := l.Producers().Stage(0)
			for _, b := range tc.before {
				g.Add(b)
			}
			d, dup, err := g.Check(tc.in)
			check(d, dup, err, true)
			for _, b := range tc.before {
				_, err := l.Append(0, []batch.Batch{b})
				must(t, err)
			}
			d, dup, err = l.Producers().Check(tc.in)
			check(d, dup, err, false)
		})
	}
}

func sixBatches() (out []batch.Batch) {
	for i := range int32(6) {
		out = append(out, seq(0, i, 1))
	}
	return out
}

func TestFivePipelinedBatchesGoIntoOneAppend(t *testing.T) {
	l, _ := open(t, newMem(t), config(), true)
	five := func() []batch.Batch {
		return []batch.Batch{seq(0, 0, 2), seq(0, 2, 1), seq(0, 3, 3), seq(0, 6, 1), seq(0, 7, 1)}
	}
	if dups, errs := produce(t, l, append(five(), seq(0, 9, 1), seq(0, 3, 3))...); len(errs) != 1 || len(dups) != 1 || !dups[0].Staged || dups[0].Base != 3 {
		t.Fatalf("duplicates %+v, errors %v; want the sixth refused and the seventh a duplicate", dups, errs)
	}
	wantOffsets(t, l, 0, 8)
	dups, errs := produce(t, l, five()...)
	if len(errs) != 0 || len(dups) != 5 {
		t.Fatalf("sent again: duplicates %+v, errors %v", dups, errs)
	}
	for i, want := range []epoch.Offset{0, 2, 3, 6, 7} {
		if dups[i].Base != want || dups[i].Staged {
			t.Errorf("duplicate %d at %+v, want %d", i, dups[i], want)
		}
	}
	wantOffsets(t, l, 0, 8)
}

// F12, KAFKA-6683.
func TestFailedAppendLeavesProducersAlone(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	produce(t, l, seq(0, 0, 1))
	m.SetCapacity(m.Used())
	if _, err := l.Append(0, []batch.Batch{seq(0, 1, 1)}); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	m.SetCapacity(-1)
	if dups, errs := produce(t, l, seq(0, 1, 1)); len(dups) != 0 || len(errs) != 0 {
		t.Fatalf("the retry: %v %v", dups, errs)
	}
	wantOffsets(t, l, 0, 2)
}

// F07: the follower that takes over knows the batches that it replicated; F08: one
// that was truncated away is new again.
func TestFollowerKnowsProducersOfWhatItHolds(t *testing.T) {
	leader, _ := open(t, newMem(t), config(), true)
	produce(t, leader, seq(0, 0, 2), seq(0, 2, 1))
	follower, _ := open(t, newMem(t), config(), true)
	_, err := follower.AppendFetched(readAll(t, leader), 0)
	must(t, err)
	if d, dup, err := follower.Producers().Check(seq(0, 2, 1)); !dup || d.Base != 2 || err != nil {
		t.Fatalf("%+v %v %v", d, dup, err)
	}
	must(t, follower.TruncateTo(2))
	if _, dup, err := follower.Producers().Check(seq(0, 2, 1)); dup || err != nil {
		t.Fatalf("after truncation: %v %v", dup, err)
	}
}

// After a restart a client's five batches in flight are recognised, although the
// snapshot has only the last.
func TestRestartRemembersFiveBatches(t *testing.T) {
	for _, clean := range []bool{true, false} {
		m := newMem(t)
		l, _ := open(t, m, smallSegments(3), true)
		produce(t, l, sixBatches()...)
		want := dump(l.Producers())
		if clean {
			must(t, l.Close())
		}
		l, _ = open(t, m.Crash(vfs.ProcessCrash()), smallSegments(3), clean)
		if got := dump(l.Producers()); got != want {
			t.Fatalf("clean %v: %s, want %s", clean, got, want)
		}
	}
}

func TestBrokenSnapshotIsPassedOver(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, config(), true)
	produce(t, l, sixBatches()...)
	want := dump(l.Producers())
	must(t, l.Close())
	name := in("00000000000000000006.snapshot")
	b := content(t, m, name)
	overwrite(t, m, name, b[:len(b)-1])
	l, _ = open(t, m, config(), true)
	if got := dump(l.Producers()); got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

// A producer whose batches were removed is known from the snapshot.
func TestProducerOutlivesItsBatches(t *testing.T) {
	m := newMem(t)
	l, _ := open(t, m, smallSegments(2), true)
	produce(t, l, seq(4, 0, 1))
	appendOne(t, l, 0, 1, 2, 3, 4, 5)
	must(t, l.SetStartOffset(4))
	must(t, l.Close())
	l, _ = open(t, m, smallSegments(2), true)
	if _, _, err := l.Producers().Check(seq(3, 0, 1)); !errors.Is(err, ErrInvalidProducerEpoch) {
		t.Fatalf("got %v", err)
	}
}

// The timestamps of an import may be years old; its retries come now all the same.
func TestProducersExpireByTheirSilenceNotByTheirTimestamps(t *testing.T) {
	cfg := config()
	cfg.ProducerExpiry = time.Hour
	m := newMem(t)
	l, _ := open(t, m, cfg, true)
	write := func(id int64, sequence int32) {
		t.Helper()
		_, err := l.Append(0, []batch.Batch{batch.NewBuilder().Producer(id, 0, sequence).Record(0, nil, nil).Build()}) // of 1970
		must(t, err)
	}
	known := func(step, want string) {
		t.Helper()
		if got := fmt.Sprint(slices.Sorted(maps.Keys(l.Producers().producers))); got != want {
			t.Errorf("%s: producers %s, want %s", step, got, want)
		}
	}
	now := time.UnixMilli(1_700_000_000_000)
	write(1, 0)
	write(2, 0)
	l.ExpireProducers(now)
	known("both have just written", "[1 2]")
	write(2, 1)
	l.ExpireProducers(now.Add(59 * time.Minute))
	known("nearly an hour later", "[1 2]")
	l.ExpireProducers(now.Add(60 * time.Minute))
	known("an hour after the first has written", "[2]")
	l.ExpireProducers(now.Add(118 * time.Minute))
	known("nearly an hour after the second was seen to have written", "[2]")
	must(t, l.Close())
	l, _ = open(t, m, cfg, true)
	known("after a restart, from the batches", "[1 2]")
	l.ExpireProducers(now.Add(1000 * time.Hour))
	known("the first look after a restart", "[1 2]")
	l.ExpireProducers(now.Add(1001 * time.Hour))
	known("an hour after the first look", "[]")
}
