package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// operate changes the record as an operator does.
func (w *world) operate(change func(epoch.Record) (epoch.Record, error)) {
	w.t.Helper()
	n, err := change(w.record.Record)
	if err == nil {
		_, err = w.swap(w.record, n)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) switchover(to epoch.ReplicaID) {
	w.t.Helper()
	w.operate(func(r epoch.Record) (epoch.Record, error) {
		return epoch.RequestSwitchover(r, epoch.SwitchoverRequest{To: to, Reason: "test", Change: w.changeID()})
	})
}

// askReports begins the round that recover goes by.
func (w *world) askReports() {
	w.t.Helper()
	w.operate(func(r epoch.Record) (epoch.Record, error) { return epoch.AskReports(r, "round") })
}

func (w *world) recover() {
	w.t.Helper()
	w.operate(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Recover(r, epoch.RecoveryRequest{PartitionEpoch: r.PartitionEpoch, Round: "round", Change: w.changeID()})
	})
}

func (w *world) elect(id epoch.ReplicaID) {
	w.t.Helper()
	w.operate(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Elect(r, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{id}, Change: w.changeID()})
	})
	w.run(fmt.Sprintf("replica %d to lead", id), func() bool {
		return w.leads(id)() && w.procs[id].n.View().LeaderEpoch == w.record.Record.LeaderEpoch
	})
}

// report is a start that gets no further than telling what the volume knows.
func (p *proc) report() {
	p.w.t.Helper()
	s, err := Open(p.config())
	if err != nil {
		p.w.t.Fatal(err)
	}
	defer s.Close()
	mark, err := s.Compare(p.w.record)
	if err == nil {
		p.w.t.Fatalf("replica %d may register with %+v", p.id, p.w.record.Record)
	}
	if mark != nil {
		_, err := p.w.swap(p.w.record, *mark)
		must(p.w.t.(*testing.T), err)
	}
}

// produceAlone sends one record with acks=1.
func (p *proc) produceAlone(value string) *Produced {
	out := &Produced{Err: errWaiting}
	p.n.Produce([]Produce{{Batch: batch.NewBuilder().Values(value).Build(), Acks: core.AcksOne, Done: func(r Produced) { *out = r }}})
	return out
}

// Rule 7 from end to end. The record is restored to a state from before replica 1 was
// dropped from the ISR; replica 1 is elected by it, into the very epoch that replica 0 led
// before, and writes a record there. Then the others come back. Without the recovery, or
// if its ISR were the restored one, "committed" is lost; without the cut, the logs differ
// at one offset and epoch for ever.
func TestAHistoryThatBeganWithARestoreIsLeft(t *testing.T) {
	for _, tc := range []struct {
		name    string
		restart bool // replica 1 has been killed when the recovery comes
		longer  int  // more elections than the true history had
	}{
		{"by a process that runs", false, 0},
		{"by a process that starts", true, 0},
		{"by a process that runs, from a record with a higher epoch", false, 5},
		{"by a process that starts, from a record with a higher epoch", true, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 3, 2, nil)
			a, b, c := w.procs[0], w.procs[1], w.procs[2]
			for _, p := range w.procs {
				must(t, p.start())
			}
			w.elect(0)
			w.run("all in sync", w.inSync(0, 1, 2))
			one := a.produce("one")
			w.run("the first commit", func() bool { return one.Err == nil })
			for range 10 {
				w.step() // replica 1 learns of it
			}
			saved := w.record.Record.Clone()
			a.n.Disconnected(1, uint64(b.n.Identity().Session))
			b.kill()
			w.run("the ISR to shrink", w.inSync(0, 2))
			w.elect(0)
			two := a.produce("committed")
			w.run("the second commit", func() bool { return two.Err == nil })
			a.kill()
			c.kill()

			w.ids++
			w.record = epoch.Snapshot{Record: saved, Version: fmt.Sprint(w.ids)} // as etcd from a backup
			must(t, b.start())
			w.elect(1)
			if lost := b.produceAlone("fork"); lost.Err != nil {
				t.Fatal(lost.Err)
			}
			for range tc.longer {
				w.elect(1)
			}

			a.report()
			w.askReports()
			a.report()
			c.report()
			w.run("the report of replica 1", func() bool { return len(w.record.Record.Awaited()) == 0 })
			if tc.restart {
				b.kill()
			}
			if err := a.start(); err == nil {
				t.Fatal("replica 0 registers while the record is frozen")
			}
			w.recover()
			if got := w.record.Record.ISR; !slices.Equal(got, []epoch.ReplicaID{0, 2}) {
				t.Fatalf("recovered with the ISR %v, want [0 2]", got)
			}
			w.step()
			if !tc.restart && b.n.Err() == nil {
				t.Error("the process that is registered in the other history only goes on in this one")
			}
			for _, p := range w.procs {
				must(t, p.start())
			}
			w.run("all in sync again", w.inSync(0, 1, 2))
			last := w.procs[w.record.Record.Leader].produce("after")
			w.run("a commit after the recovery", func() bool { return last.Err == nil })
			for range 10 {
				w.step()
			}
			for _, p := range w.procs {
				if got, want := p.values(), []string{"one", "committed", "after"}; !slices.Equal(got, want) {
					t.Errorf("replica %d holds %q, want %q", p.id, got, want)
				}
			}
		})
	}
}

func TestEveryBatchIsNotedOnceAllIsSyncedThatWasAcknowledgedBefore(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("replica 0 to lead", w.leads(0))
	one := p.produce("one")
	w.run("the commit", func() bool { return one.Err == nil })
	s := w.settings
	s.FlushEveryBatch = true
	p.n.Configure(s)
	noted := func() bool {
		on, err := p.n.Volume().EveryBatch()
		return err == nil && on != nil
	}
	if noted() {
		t.Fatal("EveryBatch is noted before the record acknowledged under Never is synced")
	}
	w.run("EveryBatch to be noted", noted)
	if p.n.Log().FlushedOffset() != 1 {
		t.Errorf("noted with everything synced below %d only", p.n.Log().FlushedOffset())
	}
	p.n.Configure(w.settings)
	if noted() {
		t.Error("EveryBatch is still noted, and not in force")
	}
	p.n.Configure(s)
	p.n.Configure(w.settings)
	for range 5 {
		w.step() // the sync begun in between ends
	}
	if noted() {
		t.Error("a sync that was begun under EveryBatch notes it although it is no longer in force")
	}
}

func TestDeletionWaitsForEveryReplicaAtWork(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	a, b := w.procs[0], w.procs[1]
	must(t, a.start())
	must(t, b.start())
	w.run("both in sync", w.inSync(0, 1))
	for _, v := range []string{"one", "two", "three"} {
		r := a.produce(v)
		w.run("the commit of "+v, func() bool { return r.Err == nil })
	}
	ask := func(before epoch.Offset) (low *epoch.Offset, err *error) {
		low, err = new(epoch.Offset), new(error)
		*err = errWaiting
		a.n.Delete(Deletion{Before: before, Timeout: w.settings.LagTimeMax / 4, Done: func(l epoch.Offset, e error) { *low, *err = l, e }})
		return low, err
	}
	if _, err := ask(4); !errors.Is(*err, core.ErrOffsetOutOfRange) {
		t.Errorf("above the high watermark: %v", *err)
	}
	low, err := ask(2)
	if !errors.Is(*err, errWaiting) {
		t.Errorf("answered with %d, %v before replica 1 has followed", *low, *err)
	}
	w.run("the answer", func() bool { return !errors.Is(*err, errWaiting) })
	if *err != nil || *low != 2 || b.n.Log().StartOffset() != 2 {
		t.Errorf("got %d, %v, replica 1 starts at %d; want 2, none, 2", *low, *err, b.n.Log().StartOffset())
	}
	b.following = false // alive, and stuck
	_, err = ask(epoch.NoOffset)
	w.run("the time-out", func() bool { return !errors.Is(*err, errWaiting) })
	if !errors.Is(*err, core.ErrTimedOut) || a.n.Log().StartOffset() != 3 {
		t.Errorf("got %v with the leader's start at %d; want a time-out, and 3", *err, a.n.Log().StartOffset())
	}
	_, err = ask(3)
	w.elect(1)
	if !errors.Is(*err, core.ErrNotLeader) {
		t.Errorf("after a loss of leadership: %v, want not leader", *err)
	}
	if _, err := ask(3); !errors.Is(*err, core.ErrNotLeader) {
		t.Errorf("a follower: %v, want not leader", *err)
	}
}

// A volume was out of reach when the replicas reported, so an empty one spoke for it:
// it remembers nothing. When the volume turns up after all, it must keep neither the
// history that was set aside nor its place in the ISR: it lacks "committed", and holds
// another record in its stead.
func TestAVolumeComesBackThatAnEmptyOneReportedFor(t *testing.T) {
	comesBack(t, 0, nil)
}

// The start that leaves the history dies at every operation of the file system.
func TestKilledWhileItLeavesAHistory(t *testing.T) {
	for name, end := range map[string]func(p *proc){
		"process":   (*proc).kill,
		"power cut": func(p *proc) { p.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 1; comesBack(t, k, end); k++ {
				if t.Failed() {
					t.Fatalf("at operation %d", k)
				}
			}
		})
	}
}

// comesBack plays it, and reports whether the start of the volume that comes back died at
// its k-th operation; 0 lets it live.
func comesBack(t *testing.T, k int, end func(*proc)) (died bool) {
	t.Helper()
	w := newWorld(t, 3, 2, nil)
	a, b, c := w.procs[0], w.procs[1], w.procs[2]
	for _, p := range w.procs {
		must(t, p.start())
	}
	w.elect(0)
	w.run("all in sync", w.inSync(0, 1, 2))
	for range 10 {
		w.step()
	}
	saved := w.record.Record.Clone()
	b.deaf = true
	a.n.Disconnected(2, uint64(c.n.Identity().Session))
	c.kill()
	w.run("the ISR to shrink, of which replica 1 does not hear", w.inSync(0, 1))
	committed := a.produce("committed")
	w.run("the commit", func() bool { return committed.Err == nil })
	a.kill()

	w.ids++
	w.record = epoch.Snapshot{Record: saved, Version: fmt.Sprint(w.ids)} // as etcd from a backup
	must(t, c.start())
	b.deaf = false
	w.elect(2)
	fork := c.produce("fork")
	w.run("a commit in the other history", func() bool { return fork.Err == nil })
	must(t, b.stop())
	disk := b.disk
	b.disk, b.witness = vfs.NewMem(), &volume.PlainMemory{}
	a.report()
	w.askReports()
	a.report()
	b.report()
	w.run("the report of replica 2", func() bool { return len(w.record.Record.Awaited()) == 0 })
	w.recover()
	c.kill()

	b.disk = disk
	if k > 0 {
		died = b.dies(k, end, func() { must(t, b.start()) })
		b.n = nil
	}
	for _, p := range []*proc{b, a, c} {
		must(t, p.start())
	}
	w.run("all in sync again", w.inSync(0, 1, 2))
	last := w.procs[w.record.Record.Leader].produce("after")
	w.run("a commit after the recovery", func() bool { return last.Err == nil })
	for range 10 {
		w.step()
	}
	for _, p := range w.procs {
		if got, want := p.values(), []string{"committed", "after"}; !slices.Equal(got, want) {
			t.Errorf("replica %d holds %q, want %q", p.id, got, want)
		}
	}
	return died
}

// The high watermark of before a recovery is forgotten on the disk, too, before the
// recovered record is on it: a process that is killed right then must not come back with it.
func TestARecoveryForgetsTheHighWatermarkOnTheDiskFirst(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	a, b := w.procs[0], w.procs[1]
	must(t, a.start())
	must(t, b.start())
	w.elect(0)
	w.run("both in sync", w.inSync(0, 1))
	saved := w.record.Record.Clone()
	w.elect(0)
	one := a.produce("one")
	w.run("the commit", func() bool { return one.Err == nil })
	w.run("it to be checkpointed", func() bool { return b.n.Log().CheckpointedHighWatermark() == 1 })
	a.kill()
	w.ids++
	w.record = epoch.Snapshot{Record: saved, Version: fmt.Sprint(w.ids)} // as etcd from a backup
	a.report()
	w.askReports()
	a.report()
	w.run("the report of replica 1", func() bool { return len(w.record.Record.Awaited()) == 0 })
	w.recover()
	w.run("replica 1 to act on it", func() bool { return b.n.Core().Record().Recovered != nil })
	b.kill()
	s, err := Open(b.config())
	must(t, err)
	defer s.Close()
	if hw := s.Log().CheckpointedHighWatermark(); hw != 0 {
		t.Errorf("the next start begins with the high watermark %d, want 0", hw)
	}
}

// The winner of an unclean election is elected once more before it has told what was lost,
// since its next process registered just then. It tells all the same.
func TestTheLossIsToldByWhoeverLeadsNext(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	must(t, w.procs[0].start())
	w.run("it to lead", w.leads(0))
	must(t, w.procs[1].start())
	w.run("both in sync", w.inSync(0, 1))
	for _, v := range []string{"a", "b", "c"} {
		r := w.procs[0].produce(v)
		w.run("a commit", func() bool { return r.Err == nil })
	}
	must(t, w.procs[1].stop())
	w.run("the leader alone in sync", func() bool { return !w.record.Record.InSync(1) })
	r := w.procs[0].produce("lost")
	w.run("a commit alone", func() bool { return r.Err == nil })
	w.run("the record to tell of it", func() bool { return w.record.Record.Progress.HighWatermark == 4 })
	w.procs[0].kill()
	w.operate(func(rec epoch.Record) (epoch.Record, error) {
		return epoch.ElectUnclean(rec, epoch.UncleanRequest{LeaderEpoch: rec.LeaderEpoch, Replica: 1, Live: []epoch.ReplicaID{1}, Change: w.changeID()})
	})
	must(t, w.procs[1].start()) // which elects it anew
	w.run("what was lost", func() bool { return w.record.Record.UncleanElection.LogEndOffset != nil })
	if from, to, known := w.record.Record.UncleanElection.Lost(); !known || from != 3 || to != 4 {
		t.Errorf("lost from %d to %d (known: %t), want 3 to 4", from, to, known)
	}
}
