package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func everyBatch(s *Settings) { s.FlushEveryBatch = true }

func TestAnOrderlyStopIsProvenAtTheNextStart(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	a, b := w.procs[0], w.procs[1]
	must(t, a.start())
	w.run("replica 0 to lead", w.leads(0))
	must(t, b.start())
	r := a.produce("one")
	w.run("the commit", func() bool { return r.Err == nil })
	id := b.n.Identity()
	must(t, b.stop())
	if w.record.Record.InSync(1) {
		t.Error("it stopped as a member of the ISR")
	}
	b.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
	must(t, b.start())
	if got := b.n.Identity(); got.DirectoryID != id.DirectoryID || got.Session <= id.Session {
		t.Errorf("%+v came back as %+v", id, got)
	}
	w.run("replica 1 to be in sync", w.inSync(0, 1))
	if got := b.values(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("replica 1 holds %q", got)
	}
}

// The record is on the disk before anything that follows from it is done, and the
// epoch's start before the first append.
func TestEffectsKeepTheirOrder(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	if want := []string{"core.PersistRecord", "core.AssignEpoch"}; len(p.effects) < 2 || !slices.Equal(p.effects[:2], want) {
		t.Errorf("the first effects were %q, want %q", p.effects, want)
	}
	if got := p.n.Log().EpochCache().Latest(); got != w.record.Record.LeaderEpoch {
		t.Errorf("the log's newest epoch is %d, the record's %d", got, w.record.Record.LeaderEpoch)
	}
	v := p.n.View()
	if v.Role != core.Leader || v.LeaderEpoch != w.record.Record.LeaderEpoch || !v.MayServe {
		t.Errorf("published: %+v", v)
	}
}

// killAt makes the process panic at the k-th change of its disk.
type killed struct{}

func killAt(m *vfs.Mem, k int) {
	seen := 0
	m.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen {
			return nil
		}
		if seen++; seen == k {
			panic(killed{})
		}
		return nil
	})
}

// survive runs life until it ends or is killed, and says which.
func survive(life func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	life()
	return false
}

// One replica by itself: whatever it acknowledged is there after a kill or a power cut
// at any operation of its disk, with another one during the start after it, and it
// leads again.
func TestKilledAtEveryOperation(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Settings)
		end   func(p *proc, rng *rand.Rand)
		seeds int
	}{
		{"process, witness", func(*Settings) {}, func(p *proc, _ *rand.Rand) { p.kill() }, 1},
		{"power cut, every batch", everyBatch, func(p *proc, _ *rand.Rand) {
			p.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
		}, 1},
		{"power cut at random, every batch", everyBatch, func(p *proc, rng *rand.Rand) {
			p.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.RandomCrash(rng) })
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				died := true
				for seed := range c.seeds {
					rng := rand.New(rand.NewPCG(uint64(k), uint64(seed)))
					died = killedAt(t, k, 1+rng.IntN(40), c.edit, func(p *proc) { c.end(p, rng) })
				}
				if !died {
					if k < 100 {
						t.Errorf("only %d operations", k)
					}
					return
				}
			}
		})
	}
}

// killedAt runs a life that dies at its k-th operation, unless it has fewer, and then
// once more at the again-th of the next start.
func killedAt(t *testing.T, k, again int, edit func(*Settings), end func(*proc)) (died bool) {
	t.Helper()
	w := newWorld(t, 1, 1, func(s *Settings) { s.SegmentBytes = 200; edit(s) })
	p := w.procs[0]
	var sent []*Produced
	died = p.dies(k, end, func() {
		must(t, p.start())
		for i := range 12 {
			r := p.produce(fmt.Sprint("r", i))
			sent = append(sent, r)
			w.run("the commit", func() bool { return r.Err == nil })
		}
		must(t, p.stop())
	})
	p.dies(again, end, func() {
		must(t, p.start())
		w.run("it to lead", w.leads(0))
	})
	p.n = nil
	if err := p.start(); err != nil {
		t.Fatalf("operations %d and %d: the next start: %v", k, again, err)
	}
	w.run("it to lead again", w.leads(0))
	got := p.values()
	for i, r := range sent {
		if r.Err == nil && (i >= len(got) || got[i] != fmt.Sprint("r", i)) {
			t.Fatalf("operations %d and %d: record %d was acknowledged, and the log holds %q", k, again, i, got)
		}
	}
	return died
}

// dies runs life, with a kill at its k-th operation and then end; it reports false if
// there were fewer.
func (p *proc) dies(k int, end func(*proc), life func()) bool {
	killAt(p.disk, k)
	died := survive(life)
	p.disk.SetFault(nil)
	p.w.calls = nil
	if died {
		end(p)
	}
	return died
}

// fsyncgate: the sync after the one that failed succeeds, and means nothing. What counts
// afterwards must be written again first, under a new directory id or, where the disk
// took no error mark and the witness went with the pod, under the old one.
func TestRecordsThatAFailedSyncDroppedAreWrittenAgain(t *testing.T) {
	for name, unmarked := range map[string]bool{"marked": false, "neither mark nor witness": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 2, everyBatch)
			a, b := w.procs[0], w.procs[1]
			must(t, a.start())
			w.run("replica 0 to lead", w.leads(0))
			must(t, b.start())
			w.run("both in sync", func() bool { return len(a.n.View().LiveISR) == 2 })
			first := a.produce("first")
			w.run("the first commit", func() bool { return first.Err == nil })
			id := b.n.Identity().DirectoryID
			dropped := false
			b.disk.SetFault(func(op vfs.Op) error {
				if !dropped && op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
					dropped = true
					return &vfs.Dropped{Err: syscall.EIO}
				}
				if dropped && unmarked {
					return syscall.EIO
				}
				return nil
			})
			second := a.produce("second")
			w.run("the follower to end", func() bool { return b.n.Err() != nil })
			if !errors.Is(b.n.Err(), syscall.EIO) {
				t.Fatalf("it ended with %v", b.n.Err())
			}
			if b.n.End() == nil {
				t.Error("End forgot why")
			}
			b.n.Close()
			b.disk.SetFault(nil)
			if unmarked {
				b.witness = &volume.PlainMemory{}
			}
			must(t, b.start())
			if kept := b.n.Identity().DirectoryID == id; kept != unmarked {
				t.Errorf("the directory id was kept: %v", kept)
			}
			w.run("the commit on both", func() bool { return second.Err == nil })
			b.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
			must(t, b.start())
			if got := b.values(); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("a power cut left %q of what was acknowledged", got)
			}
		})
	}
}

// The same where nothing is synced before it is acknowledged, but an orderly stop vouches
// for the log by its clean mark: it must not do so on the word of a sync that wrote
// nothing. The disk took no error mark, and the witness went with the pod.
func TestACleanMarkIsNotBuiltOnASyncThatWroteNothing(t *testing.T) {
	w := newWorld(t, 2, 2, nil)
	a, b := w.procs[0], w.procs[1]
	must(t, a.start())
	must(t, b.start())
	w.run("both in sync", func() bool { return len(a.n.View().LiveISR) == 2 })
	pages := strings.Repeat("first", 10000)
	first := a.produce(pages)
	w.run("the first commit", func() bool { return first.Err == nil })
	dropped := false
	b.disk.SetFault(func(op vfs.Op) error {
		if !dropped && op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
			dropped = true
			return &vfs.Dropped{Err: syscall.EIO}
		}
		if dropped {
			return syscall.EIO
		}
		return nil
	})
	w.run("the follower to end", func() bool { return b.n.Err() != nil })
	_ = b.n.End()
	b.n.Close()
	b.disk.SetFault(nil)
	b.witness = &volume.PlainMemory{}
	must(t, b.start())
	w.run("both in sync again", w.inSync(0, 1))
	second := a.produce("second")
	w.run("the second commit", func() bool { return second.Err == nil })
	must(t, b.stop())
	b.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
	mine, _ := w.record.Record.Replica(1)
	must(t, b.start())
	if got := b.values(); b.n.Identity().DirectoryID == mine.DirectoryID && !slices.Equal(got, []string{pages, "second"}) {
		t.Errorf("after a clean stop and a power cut, under the same directory id, it holds %d records, not those that were acknowledged", len(got))
	}
}

func TestAfterAFailureEverythingIsRefused(t *testing.T) {
	w := newWorld(t, 1, 1, everyBatch)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	waiting := p.produce("waits for its sync")
	p.disk.SetFault(vfs.Faults{{Kind: vfs.OpSync, Err: syscall.EIO}}.Judge)
	w.run("the failure", func() bool { return p.n.Err() != nil })
	if !errors.Is(waiting.Err, core.ErrStorage) {
		t.Errorf("who waited was told %v", waiting.Err)
	}
	if r := p.produce("late"); !errors.Is(r.Err, core.ErrNotLeader) || r.BaseOffset != epoch.NoOffset {
		t.Errorf("a later produce was answered %+v", r)
	}
	p.n.ReplicaFetch(&Fetch{Answer: func(_ core.FetchAnswer, err error) {
		if !errors.Is(err, core.ErrNotLeader) {
			t.Errorf("a later fetch was answered %v", err)
		}
	}})
	if _, ok := p.n.NextFetch(); ok {
		t.Error("it would fetch")
	}
}

// A disk that is full may have space again. One that cannot cut off what it had begun to
// write either has failed, and more space is no help.
func TestAFullDiskThatFailsEndsTheProcess(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	must(t, p.produce("fits").Err)
	p.disk.SetCapacity(p.disk.Used() + 10)
	p.disk.SetFault(vfs.Faults{{Kind: vfs.OpTruncate, Err: syscall.EIO}}.Judge)
	if r := p.produce("does not fit"); !errors.Is(r.Err, core.ErrStorage) {
		t.Errorf("answered %v", r.Err)
	}
	if !errors.Is(p.n.Err(), syscall.EIO) {
		t.Errorf("the process goes on with a failed log: it has ended by %v", p.n.Err())
	}
}

func TestAFullDiskRefusesAppendsAndKeepsThePromise(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	must(t, p.produce("fits").Err)
	p.disk.SetCapacity(p.disk.Used() + 10)
	if r := p.produce("does not fit"); !errors.Is(r.Err, core.ErrStorage) {
		t.Errorf("answered %v", r.Err)
	}
	p.disk.SetCapacity(-1)
	must(t, p.produce("fits again").Err)
	if got := p.values(); !slices.Equal(got, []string{"fits", "fits again"}) {
		t.Errorf("the log holds %q", got)
	}
	id := p.n.Identity().DirectoryID
	p.kill()
	must(t, p.start())
	if p.n.Identity().DirectoryID != id {
		t.Error("the directory id was given up")
	}
}

// The answer of the swap was lost: the next attempt finds the registration there.
func TestARegistrationWhoseAnswerWasLostIsFound(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	s, err := Open(w.procs[0].config())
	must(t, err)
	defer s.Close()
	next, err := s.Begin(w.record)
	must(t, err)
	if _, err := w.swap(w.record, next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(w.record); !errors.Is(err, epoch.ErrNoChange) {
		t.Errorf("the second attempt returned %v", err)
	}
	if me := s.Identity(w.record); me.Session != w.record.Record.Replicas[0].Session || me.DirectoryID != s.Volume().DirectoryID() {
		t.Errorf("%+v", me)
	}
}

func TestOnlyOneProcessHasAVolume(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	cfg := w.procs[0].config()
	held := false
	cfg.Volume.Lock = func(string, string) (func(), error) {
		if held {
			return nil, errors.New("held by another process")
		}
		held = true
		return func() { held = false }, nil
	}
	first, err := Open(cfg)
	must(t, err)
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process got %v", err)
	}
	first.Close()
	again, err := Open(cfg)
	must(t, err)
	again.Close()
}

// A snapshot of the volume, restored under a witness that knows better.
func TestAnOlderDiskIsNoticedByTheWitness(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	must(t, p.produce("first").Err)
	older := p.disk.Clone()
	must(t, p.produce("second").Err)
	id := p.n.Identity().DirectoryID
	p.kill()
	p.disk = older
	must(t, p.start())
	if p.n.Identity().DirectoryID == id {
		t.Error("the directory id was kept although an acknowledged record is gone")
	}
	if w.record.Record.InSync(0) {
		t.Error("it is still in the ISR")
	}
}

// What was written and not synced may be gone with the machine, so its promise is.
func TestAPowerCutTakesThePromise(t *testing.T) {
	for name, settings := range map[string]func(*Settings){"never synced": func(*Settings) {}, "no more synced with every batch": everyBatch} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 1, settings)
			a, b := w.procs[0], w.procs[1]
			must(t, a.start())
			w.run("replica 0 to lead", w.leads(0))
			must(t, b.start())
			w.run("both to be live", func() bool { return len(a.n.View().LiveISR) == 2 })
			for _, p := range w.procs {
				s := w.settings
				s.FlushEveryBatch = false
				p.n.Configure(s)
			}
			r := a.produce("one")
			w.run("the commit", func() bool { return r.Err == nil && slices.Equal(b.values(), []string{"one"}) })
			id, witness := b.n.Identity(), b.witness
			b.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) })
			b.witness = witness // as if it were not in memory
			must(t, b.start())
			if got := b.n.Identity(); got.DirectoryID == id.DirectoryID {
				t.Errorf("the directory id was kept with %q of what was acknowledged", b.values())
			}
			w.run("the replica to have all again", func() bool { return slices.Equal(b.values(), []string{"one"}) && w.inSync(0, 1)() })
		})
	}
}
