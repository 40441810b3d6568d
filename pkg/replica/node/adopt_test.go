package node

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// adopt makes the frozen record of a new partition over the disks that are there, and
// recovers it from what the replicas report, as the operator does on request.
func (w *world) adopt() {
	w.t.Helper()
	var ids []epoch.ReplicaID
	for _, p := range w.procs {
		ids = append(ids, p.id)
	}
	w.record = epoch.Snapshot{Record: epoch.Remake(topicID, ids, 2, 1, 0, w.changeID()), Version: string(w.changeID())}
	w.askReports()
	for _, p := range w.procs {
		p.report()
	}
	w.recover()
}

// startAll starts every process, and waits until somebody leads and these are in sync.
func (w *world) startAll(inSync ...epoch.ReplicaID) *proc {
	w.t.Helper()
	for _, p := range w.procs {
		must(w.t.(*testing.T), p.start())
	}
	w.run("all in sync", w.inSync(inSync...))
	leader := w.procs[w.record.Record.Leader]
	w.run("the leader to serve", w.leads(leader.id))
	return leader
}

// goOnFrom brings all three replicas of an adopted log into sync, writes one record more, and
// demands that each holds what was there and that one.
func (w *world) goOnFrom(values ...string) {
	w.t.Helper()
	if _, err := epoch.Assign(w.record.Record, epoch.Assignment{Target: []epoch.ReplicaID{0, 1, 2}, WantedMinISR: 2, Change: "asked"}); !errors.Is(err, epoch.ErrNoChange) {
		w.operate(func(r epoch.Record) (epoch.Record, error) {
			return epoch.Assign(r, epoch.Assignment{Target: []epoch.ReplicaID{0, 1, 2}, WantedMinISR: 2, Change: w.changeID()})
		})
	}
	leader := w.startAll(0, 1, 2)
	out := leader.produce("one more")
	w.run("an acknowledgement", func() bool { return out.Err == nil })
	want := append(slices.Clone(values), "one more")
	for _, p := range w.procs {
		if got := p.values(); !slices.Equal(got, want) {
			w.t.Errorf("replica %d holds %q, want %q", p.id, got, want)
		}
	}
}

func TestALogIsAdoptedWithAllThatItHad(t *testing.T) {
	w := newWorld(t, 3, 2, nil)
	leader := w.startAll(0, 1, 2)
	for _, v := range []string{"a", "b", "c"} {
		out := leader.produce(v)
		w.run("an acknowledgement", func() bool { return out.Err == nil })
	}
	before := w.record.Record
	for _, p := range w.procs {
		must(t, p.stop())
	}
	w.adopt()
	if r := w.record.Record; len(r.ISR) < 2 || r.LeaderEpoch < before.LeaderEpoch+epoch.RecoveryMargin {
		t.Fatalf("adopted with the ISR %v in epoch %d; want those who had stopped last in sync, above epoch %d", r.ISR, r.LeaderEpoch, before.LeaderEpoch)
	}
	w.goOnFrom("a", "b", "c")
}

// imported is a disk with a log that was imported for a replica: what `replica log import`
// leaves.
func imported(t *testing.T, id epoch.ReplicaID, values ...string) *vfs.Mem {
	t.Helper()
	w := newWorld(t, 1, 1, nil)
	source := w.procs[0]
	must(t, source.start())
	w.run("a leader", w.leads(0))
	for _, v := range values {
		out := source.produce(v)
		w.run("an acknowledgement", func() bool { return out.Err == nil })
	}
	must(t, source.stop())
	for _, name := range []string{"meta.properties", "record.json", ".kafka_cleanshutdown", ".every_batch"} {
		if _, err := source.disk.Stat("/data/" + name); err == nil {
			must(t, source.disk.Remove("/data/"+name))
		}
	}
	must(t, volume.Identify(source.disk, "/data", volume.Import{Topic: "orders", TopicID: topicID, Replica: id, LeaderEpoch: 1, ProducerID: -1}))
	return source.disk
}

func TestAnImportedLogIsAdopted(t *testing.T) {
	w := newWorld(t, 3, 2, nil)
	w.procs[1].disk = imported(t, 1, "a", "b", "c")
	w.adopt()
	if r := w.record.Record; !slices.Equal(r.ISR, []epoch.ReplicaID{1}) {
		t.Fatalf("in sync are %v, want replica 1 alone, which has the log", r.ISR)
	}
	w.goOnFrom("a", "b", "c")
}

// An imported log speaks where a record is made of what replicas remember, and nowhere else:
// over a record that is there it is a new follower's.
func TestAnImportedLogDoesNotSpeakAgainstARecord(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	must(t, w.procs[0].start())
	w.run("a leader", func() bool { return w.record.Record.Leader == epoch.NoReplica || w.leads(0)() })
	w.elect(0)
	out := w.procs[0].produceAlone("x")
	w.run("an acknowledgement", func() bool { return out.Err == nil })
	w.procs[1].disk = imported(t, 1, "a", "b", "c")
	must(t, w.procs[1].start())
	w.run("both in sync", w.inSync(0, 1))
	w.run("the same records", func() bool { return slices.Equal(w.procs[1].values(), []string{"x"}) })
	if r := w.record.Record; r.Recovery != nil {
		t.Errorf("the record is frozen: %+v", r.Recovery)
	}
}

// Epochs of a log that was imported have the numbers of other ones here: they tell nothing
// of what it shares with the leader's log.
func TestAnImportedLogOfTheSameEpochsIsNotMixedWithTheOneThatIsThere(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	must(t, w.procs[0].start())
	w.run("a leader", w.leads(0))
	for _, v := range []string{"x", "y", "z"} {
		out := w.procs[0].produceAlone(v)
		w.run("an acknowledgement", func() bool { return out.Err == nil })
	}
	w.procs[1].disk = imported(t, 1, "a", "b")
	must(t, w.procs[1].start())
	w.run("both in sync", w.inSync(0, 1))
	w.run("the same length", func() bool { return w.procs[1].n.Log().EndOffset() == 3 })
	if got, want := w.procs[1].values(), []string{"x", "y", "z"}; !slices.Equal(got, want) {
		t.Errorf("replica 1 holds %q, want %q", got, want)
	}
}

// Whoever imports replica by replica may take logs that are not the same one: Kafka gives
// all partitions of a topic one topic id. The epochs of both have the same numbers.
func TestOfSeveralImportedLogsOneIsAdopted(t *testing.T) {
	w := newWorld(t, 3, 2, nil)
	w.procs[0].disk = imported(t, 0, "x", "y")
	w.procs[1].disk = imported(t, 1, "a", "b", "c")
	w.procs[2].disk = imported(t, 2, "p", "q")
	w.adopt()
	if r := w.record.Record; !slices.Equal(r.ISR, []epoch.ReplicaID{1}) {
		t.Fatalf("in sync are %v, want replica 1 alone, which has the longest log", r.ISR)
	}
	w.goOnFrom("a", "b", "c")
}

// Two of the same length and epochs: their names tell them apart.
func TestOfImportedLogsOfOneLengthOneIsAdopted(t *testing.T) {
	w := newWorld(t, 3, 2, nil)
	logs := [][]string{{"a", "b"}, {"x", "y"}}
	for id, values := range logs {
		w.procs[id].disk = imported(t, epoch.ReplicaID(id), values...)
	}
	w.adopt()
	r := w.record.Record
	if len(r.ISR) != 1 || r.ISR[0] > 1 || !slices.Equal(r.Recovered.Faithful, r.ISR) {
		t.Fatalf("in sync are %v, of the history that won %v; want one of the two with a log", r.ISR, r.Recovered.Faithful)
	}
	w.goOnFrom(logs[r.ISR[0]]...)
}

// A record that went backwards is not made of what replicas remember: an imported log must
// not win over it, whatever its epochs.
func TestAnImportedLogDoesNotSpeakInARecoveryOfARecordThatIsThere(t *testing.T) {
	w := newWorld(t, 2, 1, nil)
	must(t, w.procs[0].start())
	w.run("a leader", w.leads(0))
	restored := w.record.Record.Clone()
	w.elect(0)
	w.procs[0].kill()
	w.record.Record, w.record.Version = restored, string(w.changeID())
	w.procs[0].report()
	w.procs[1].disk = imported(t, 1, "a", "b", "c")
	w.procs[1].report()
	for _, v := range w.record.Record.Recovery.Reports {
		if v.ID == 1 && v.Known != (epoch.Change{}) {
			t.Errorf("the imported log says that it has acted on %+v", v.Known)
		}
	}
}

// An imported log that is not the partition's is left at a start that is killed at any
// operation on its disk, with or without the power: the next one goes on.
func TestAStrangeImportIsLeftWhereverTheStartIsKilled(t *testing.T) {
	for _, power := range []bool{false, true} {
		for n := 0; ; n++ {
			w := newWorld(t, 2, 1, nil)
			must(t, w.procs[0].start())
			w.run("a leader", w.leads(0))
			for _, v := range []string{"x", "y", "z"} {
				out := w.procs[0].produceAlone(v)
				w.run("an acknowledgement", func() bool { return out.Err == nil })
			}
			p := w.procs[1]
			p.disk = imported(t, 1, "a", "b")
			before := p.segment()
			killed := p.startKilledAt(n)
			if _, still, _ := volume.Imported(p.disk, "/data"); still && p.marked() && p.segment() != before {
				t.Fatalf("killed at operation %d: the log was changed under the import's clean mark", n)
			}
			if power {
				p.powerCut(func(m *vfs.Mem) *vfs.Mem { return m.RandomCrash(rand.New(rand.NewPCG(uint64(n), 1))) })
			}
			if !killed && !power {
				break
			}
			if p.n == nil {
				must(t, p.start())
			}
			w.run("both in sync", w.inSync(0, 1))
			w.run("the same length", func() bool { return p.n.Log().EndOffset() == 3 })
			if got, want := p.values(), []string{"x", "y", "z"}; !slices.Equal(got, want) {
				t.Fatalf("killed at operation %d, power cut %t: replica 1 holds %q, want %q", n, power, got, want)
			}
			if !killed {
				break
			}
		}
	}
}

// startKilledAt starts a process that is killed at its n-th operation on the disk, and
// reports whether it got that far.
func (p *proc) startKilledAt(n int) (killed bool) {
	p.w.t.Helper()
	type kill struct{}
	done := 0
	p.disk.SetFault(func(vfs.Op) error {
		if done == n {
			panic(kill{})
		}
		done++
		return nil
	})
	defer func() {
		p.disk.SetFault(nil)
		switch r := recover(); r.(type) {
		case nil:
		case kill:
			killed, p.n = true, nil
		default:
			panic(r)
		}
	}()
	must(p.w.t.(*testing.T), p.start())
	return false
}

// segment is the first segment of a log that is not running, "" if it is not there.
func (p *proc) segment() string {
	b, err := vfs.ReadFile(p.disk, "/data/orders-0/00000000000000000000.log", 1<<20)
	if err != nil {
		return ""
	}
	return string(b)
}

// marked reports a clean mark on the disk.
func (p *proc) marked() bool {
	_, err := p.disk.Stat("/data/.kafka_cleanshutdown")
	return err == nil
}
