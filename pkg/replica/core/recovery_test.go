package core

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// bench is one core on a memory log, with a record of three registered replicas.
type bench struct {
	t    *testing.T
	core *Core
	log  *memoryLog
	rec  epoch.Record // of the registration: replica 0 leads epoch 1
	n    int
}

func newBench(t *testing.T, id epoch.ReplicaID, entries ...entry) *bench {
	t.Helper()
	b := &bench{t: t, log: &memoryLog{}, rec: epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1, 2}, 2, "new")}
	for _, e := range entries {
		b.log.append(e.epoch, e.value)
	}
	for q := range epoch.ReplicaID(3) {
		n, err := epoch.Register(b.rec, epoch.Registration{ID: q, DirectoryID: epoch.UUID{byte(q + 1)}, VolumeID: epoch.UUID{byte(q + 1)},
			StartID: startID(q), LastEpoch: epoch.NoEpoch, Change: epoch.ChangeID(fmt.Sprintf("register%d", q))})
		b.rec = b.must(n, err)
	}
	me, _ := b.rec.Replica(id)
	b.core = New(Identity{ID: id, Session: me.Session, StartID: me.StartID, DirectoryID: me.DirectoryID}, Options{}, b.log, 0, b.change)
	b.core.Observe(0, epoch.Snapshot{Record: b.rec, Version: "registered"}, FromWrite)
	if w, at := first[WriteRecord](b.take()); at >= 0 {
		b.core.Written(0, epoch.Snapshot{Record: w.Next, Version: "heartbeat"})
		b.take()
	}
	return b
}

func startID(id epoch.ReplicaID) epoch.StartID { return epoch.StartID(fmt.Sprintf("start%d", id)) }

func (b *bench) change() epoch.ChangeID {
	b.n++
	return epoch.ChangeID(fmt.Sprintf("c%d", b.n))
}

func (b *bench) must(r epoch.Record, err error) epoch.Record {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// take carries out what touches the log, and returns all effects.
func (b *bench) take() []Effect {
	effects := b.core.Take()
	for _, e := range effects {
		switch e := e.(type) {
		case AssignEpoch:
			b.log.cache.Assign(e.Epoch, b.log.EndOffset())
		case Truncate:
			b.log.truncate(e.To)
		}
	}
	return effects
}

func (b *bench) elected(r epoch.Record, id epoch.ReplicaID, change epoch.ChangeID) epoch.Record {
	b.t.Helper()
	n, err := epoch.Elect(r, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{id}, Change: change})
	return b.must(n, err)
}

func (b *bench) frozen(r epoch.Record, by epoch.ReplicaID, known epoch.Record) epoch.Record {
	b.t.Helper()
	n, err := epoch.MarkRecovery(r, epoch.RecoveryOf(by, &known, 0))
	return b.must(n, err)
}

// recovered ends a recovery by a round in which the reports are those that are there.
func (b *bench) recovered(frozen epoch.Record) epoch.Record {
	b.t.Helper()
	n, err := epoch.AskReports(frozen, "round")
	n = b.must(n, err)
	for _, w := range frozen.Recovery.Reports {
		n, err = epoch.MarkRecovery(n, epoch.Recovery{ReportedBy: w.ID, Reports: []epoch.Report{w}})
		n = b.must(n, err)
	}
	n, err = epoch.Recover(n, epoch.RecoveryRequest{PartitionEpoch: n.PartitionEpoch, Round: "round", Change: "recovered"})
	return b.must(n, err)
}

// the first effect of a kind, and where it stands.
func first[T Effect](effects []Effect) (e T, at int) {
	for i, x := range effects {
		if e, ok := x.(T); ok {
			return e, i
		}
	}
	return e, -1
}

func (b *bench) wants(effects []Effect, kinds ...Effect) {
	b.t.Helper()
	for _, k := range kinds {
		if !slices.ContainsFunc(effects, func(e Effect) bool { return reflect.TypeOf(e) == reflect.TypeOf(k) }) {
			b.t.Errorf("no %T among the effects %+v", k, effects)
		}
	}
}

func (b *bench) lacks(effects []Effect, kinds ...Effect) {
	b.t.Helper()
	for _, k := range kinds {
		if slices.ContainsFunc(effects, func(e Effect) bool { return reflect.TypeOf(e) == reflect.TypeOf(k) }) {
			b.t.Errorf("a %T among the effects %+v", k, effects)
		}
	}
}

func TestEveryReplicaReportsToAFrozenRecord(t *testing.T) {
	for _, tc := range []struct {
		name   string
		frozen func(b *bench) (known, frozen epoch.Record)
	}{
		{"it knows a newer record", func(b *bench) (epoch.Record, epoch.Record) {
			newer := b.elected(b.rec, 2, "newer")
			return newer, b.frozen(b.rec, 2, newer)
		}},
		{"it knows this very record", func(b *bench) (epoch.Record, epoch.Record) {
			return b.rec, b.frozen(b.rec, 2, b.elected(b.rec, 2, "newer"))
		}},
		{"it knows an older record", func(b *bench) (epoch.Record, epoch.Record) {
			later := b.elected(b.rec, 1, "later")
			return b.rec, b.frozen(later, 2, b.elected(later, 2, "newer"))
		}},
		{"it knows another history", func(b *bench) (epoch.Record, epoch.Record) {
			other := b.elected(b.elected(b.rec, 2, "other1"), 2, "other2")
			return other, b.frozen(b.elected(b.rec, 1, "fork"), 2, other)
		}},
		{"the object was made anew", func(b *bench) (epoch.Record, epoch.Record) {
			return b.rec, epoch.Remake(b.rec.TopicID, []epoch.ReplicaID{0, 1, 2}, 2, b.rec.PartitionEpoch+3, 9, "remade")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 1)
			known, frozen := tc.frozen(b)
			b.core.Observe(0, epoch.Snapshot{Record: known, Version: "known"}, FromWatch)
			b.take()
			role := b.core.Role()
			b.core.Observe(time.Second, epoch.Snapshot{Record: frozen, Version: "frozen"}, FromWatch)
			effects := b.take()
			b.wants(effects, ReadRecord{})
			b.lacks(effects, PersistRecord{}, WriteRecord{}, Exit{})
			b.core.ReadDone(time.Second, epoch.Snapshot{Record: frozen, Version: "frozen"})
			effects = b.take()
			b.lacks(effects, PersistRecord{}, Exit{})
			w, at := first[WriteRecord](effects)
			if at < 0 {
				t.Fatalf("nothing is reported: %+v", effects)
			}
			i := slices.IndexFunc(w.Next.Recovery.Reports, func(r epoch.Report) bool { return r.ID == 1 })
			if i < 0 || w.Next.Recovery.Reports[i].Known != known.LastChange() || w.Next.PartitionEpoch != frozen.PartitionEpoch {
				t.Errorf("reported %+v at partition epoch %d, want replica 1 to know %+v, and no other change", w.Next.Recovery.Reports, w.Next.PartitionEpoch, known.LastChange())
			}
			if b.core.Role() != role || b.core.Record().PartitionEpoch != known.PartitionEpoch {
				t.Errorf("role %s by partition epoch %d, was %s by %d: a frozen record changes nothing", b.core.Role(), b.core.Record().PartitionEpoch, role, known.PartitionEpoch)
			}
			b.core.Written(time.Second, epoch.Snapshot{Record: w.Next, Version: "reported"})
			b.core.Observe(2*time.Second, epoch.Snapshot{Record: w.Next, Version: "reported"}, FromWatch)
			b.core.Tick(3 * time.Second)
			b.lacks(b.take(), WriteRecord{})
		})
	}
}

// A restored record that has gone on may be past what a replica knows. Without the look
// at its history it would be followed: truncating committed records (rule 7).
func TestAnotherHistoryIsNotFollowedHoweverNewItsEpoch(t *testing.T) {
	b := newBench(t, 1)
	known := b.elected(b.rec, 2, "truth")
	b.core.Observe(0, epoch.Snapshot{Record: known, Version: "known"}, FromWatch)
	b.take()
	fork := b.elected(b.elected(b.elected(b.rec, 1, "fork1"), 1, "fork2"), 1, "fork3")
	b.core.Observe(time.Second, epoch.Snapshot{Record: fork, Version: "fork"}, FromWatch)
	effects := b.take()
	b.wants(effects, ReadRecord{})
	b.lacks(effects, PersistRecord{}, AssignEpoch{})
	b.core.ReadDone(time.Second, epoch.Snapshot{Record: fork, Version: "fork"})
	effects = b.take()
	b.wants(effects, Regression{}, WriteRecord{})
	b.lacks(effects, PersistRecord{}, AssignEpoch{})
	if w, _ := first[WriteRecord](effects); w.Next.Recovery == nil || w.Next.Recovery.Newest.LastChange() != known.LastChange() {
		t.Errorf("the mark %+v does not hold the newest record known", w.Next.Recovery)
	}
}

// Replica 1 led epoch 2 of a history that a recovery set aside, while replica 2 led epoch
// 2 of the one that won: no fetch can tell their records of epoch 2 apart.
func TestASetAsideHistoryIsCutBeforeTheRecoveredRecordIsPersisted(t *testing.T) {
	for _, tc := range []struct {
		name     string
		log      []entry
		faithful bool
		wantEnd  epoch.Offset
		wantCut  bool
	}{
		{"records of the other history go", []entry{{1, "a"}, {1, "b"}, {2, "x"}, {2, "y"}}, false, 2, true},
		{"an epoch in which nothing was written goes", []entry{{1, "a"}, {1, "b"}}, false, 2, true},
		{"the history that won keeps all", []entry{{1, "a"}, {1, "b"}, {2, "c"}}, true, 3, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 1, tc.log...)
			truth := b.elected(b.rec, 2, "truth")
			fork := b.elected(b.rec, 1, "fork")
			known := fork
			if tc.faithful {
				known = truth
			}
			b.core.Observe(0, epoch.Snapshot{Record: known, Version: "known"}, FromWatch)
			b.take()
			frozen := b.frozen(fork, 2, truth)
			for _, id := range []epoch.ReplicaID{0, 1} {
				n, err := epoch.MarkRecovery(frozen, epoch.RecoveryOf(id, &known, 0))
				frozen = b.must(n, err)
			}
			recovered := b.recovered(frozen)
			b.core.Observe(time.Second, epoch.Snapshot{Record: recovered, Version: "recovered"}, FromWatch)
			effects := b.take()
			_, cut := first[Truncate](effects)
			_, persisted := first[PersistRecord](effects)
			if persisted < 0 || tc.wantCut != (cut >= 0) || tc.wantCut && cut > persisted {
				t.Errorf("cut is effect %d and the record is persisted by effect %d: want the cut (%t) first", cut, persisted, tc.wantCut)
			}
			if b.log.EndOffset() != tc.wantEnd || tc.wantCut && b.log.cache.Latest() != 1 || b.core.HighWatermark() > tc.wantEnd {
				t.Errorf("log ends at %d with epochs %s and high watermark %d, want %d and nothing of epoch 2", b.log.EndOffset(), b.log.cache, b.core.HighWatermark(), tc.wantEnd)
			}
			if b.core.Role() != Idle {
				t.Errorf("role %s, want Idle until somebody is elected", b.core.Role())
			}
			b.core.Observe(time.Second, epoch.Snapshot{Record: b.elected(recovered, 2, "go on"), Version: "go on"}, FromWatch)
			b.wants(b.take(), PersistRecord{}, Follow{})
		})
	}
}

// An empty volume reported for replica 1, so the recovered record has it in the ISR still,
// while a process of it goes on in the other history. It must end with all that it knows,
// so that its next start finds out, too.
func TestAProcessInAnotherHistoryLeavesTheISRByANewStart(t *testing.T) {
	b := newBench(t, 1, entry{1, "a"}, entry{2, "x"})
	truth := b.elected(b.rec, 2, "truth")
	fork := b.elected(b.rec, 1, "fork")
	b.core.Observe(0, epoch.Snapshot{Record: fork, Version: "fork"}, FromWatch)
	b.take()
	frozen := b.frozen(b.frozen(b.rec, 0, truth), 2, truth)
	n, err := epoch.MarkRecovery(frozen, epoch.RecoveryOf(1, nil, 0))
	frozen = b.must(n, err)
	recovered := b.elected(b.recovered(frozen), 1, "elected")
	if !recovered.InSync(1) {
		t.Fatalf("the recovered record has the ISR %v: nothing is tested", recovered.ISR)
	}
	b.core.Observe(time.Second, epoch.Snapshot{Record: recovered, Version: "recovered"}, FromWatch)
	effects := b.take()
	b.wants(effects, Exit{})
	b.lacks(effects, PersistRecord{}, AssignEpoch{})
	if b.core.Role() != Idle {
		t.Errorf("role %s, want Idle", b.core.Role())
	}
}

// A session may have been given out twice, in two histories.
func TestAnotherStartOfTheSameSessionEndsThisProcess(t *testing.T) {
	b := newBench(t, 1)
	n := b.elected(b.rec, 2, "next")
	n.Replicas = slices.Clone(n.Replicas)
	n.Replicas[1].StartID = "another"
	b.core.Observe(time.Second, epoch.Snapshot{Record: n, Version: "n"}, FromWatch)
	b.wants(b.take(), Exit{})
}

// The leader answers that it cannot place the follower's last epoch: that is above its
// own. Kafka asks again for ever, or cuts by the leader's end; either is wrong here.
func TestALogNewerThanTheRecordIsReportedAndNotCut(t *testing.T) {
	b := newBench(t, 1, entry{1, "a"}, entry{7, "b"}, entry{7, "c"})
	q, ok := b.core.NextFetch()
	if !ok {
		t.Fatal("the follower does not fetch")
	}
	b.core.OutOfRange(q, 0, 2)
	effects := b.take()
	b.wants(effects, ReadRecord{})
	b.lacks(effects, Truncate{}, TruncateFully{})
	b.core.ReadDone(0, epoch.Snapshot{Record: b.rec, Version: "registered"})
	effects = b.take()
	b.wants(effects, Regression{})
	w, at := first[WriteRecord](effects)
	if at < 0 || w.Next.Recovery == nil || w.Next.Recovery.LeaderEpoch != 7 {
		t.Fatalf("effects %+v: want the record marked with leader epoch 7", effects)
	}
	frozen := b.frozen(b.frozen(w.Next, 0, b.rec), 2, b.rec)
	recovered := b.recovered(frozen)
	if recovered.LeaderEpoch <= 7 {
		t.Errorf("recovered in leader epoch %d: the log's epoch 7 has still no place in it", recovered.LeaderEpoch)
	}
	b.core.Written(0, epoch.Snapshot{Record: w.Next, Version: "marked"})
	b.core.Observe(time.Minute, epoch.Snapshot{Record: b.elected(recovered, 0, "go on"), Version: "go on"}, FromWatch)
	b.take()
	q, ok = b.core.NextFetch()
	if !ok {
		t.Fatal("the follower does not fetch after the recovery")
	}
	b.core.Fetched(time.Minute, q, FetchResponse{Diverging: &epoch.Entry{Epoch: 1, Start: 2}})
	b.take()
	if b.log.EndOffset() != 1 {
		t.Errorf("the log ends at %d, want 1: epoch 7 is not the leader's, and its own epoch 1 ends there", b.log.EndOffset())
	}
}

// A leader that has not heard of the newest record before it was frozen wants to write
// its own, which is refused. It must not do so as fast as the API server answers.
func TestAFrozenRecordIsNotWrittenAgainAtOnce(t *testing.T) {
	b := newBench(t, 0)
	n, err := epoch.Retire(b.rec, 2, b.rec.Replicas[2].Session, "unheard")
	frozen := b.frozen(b.frozen(b.must(n, err), 1, b.rec), 0, b.rec)
	b.core.Tick(5 * time.Second) // nobody has come to fetch
	b.wants(b.take(), WriteRecord{})
	b.core.WriteFailed(5*time.Second, epoch.ErrConflict)
	b.wants(b.take(), ReadRecord{})
	b.core.ReadDone(5*time.Second, epoch.Snapshot{Record: frozen, Version: "frozen"})
	b.lacks(b.take(), WriteRecord{}, ReadRecord{})
	b.core.Tick(5*time.Second + readRetry)
	b.wants(b.take(), WriteRecord{}) // it may be recovered, or put right, at any time
}

// The frozen record names another leader. That a report was written to it is no renewal
// (rule 8).
func TestAReportToAFrozenRecordIsNoRenewal(t *testing.T) {
	b := newBench(t, 0)
	frozen := b.frozen(b.elected(b.rec, 1, "unheard"), 1, b.rec)
	late := b.core.opts.LeaseDuration + 10*time.Second
	b.core.Observe(late, epoch.Snapshot{Record: frozen, Version: "frozen"}, FromWatch)
	b.core.ReadDone(late, epoch.Snapshot{Record: frozen, Version: "frozen"})
	w, at := first[WriteRecord](b.take())
	if at < 0 || w.Next.Recovery == nil {
		t.Fatalf("no report is written: %+v", w)
	}
	b.core.Written(late, epoch.Snapshot{Record: w.Next, Version: "reported"})
	b.take()
	if b.core.MayServe(late) {
		t.Error("a leader that nobody fetches from serves on the strength of its report")
	}
}

// What was reported to a recovery must not grow: an election from before the record was
// frozen, which a lagging watch brings afterwards, is not acted upon, however often the
// frozen record was read meanwhile.
func TestAReportIsFinal(t *testing.T) {
	for reads := range 3 {
		b := newBench(t, 1, entry{1, "a"})
		late := b.elected(b.rec, 1, "late")
		frozen := b.frozen(b.rec, 0, late)
		frozen, err := epoch.AskReports(frozen, "round")
		frozen = b.must(frozen, err)
		now := time.Second
		b.core.Observe(now, epoch.Snapshot{Record: frozen, Version: "frozen"}, FromWatch)
		for i := range reads + 1 {
			now += time.Second // the answer takes longer than the pause between two reads
			b.core.ReadDone(now, epoch.Snapshot{Record: frozen, Version: fmt.Sprint("frozen", i)})
		}
		if w, at := first[WriteRecord](b.take()); at < 0 || w.Next.Recovery == nil {
			t.Fatalf("after %d reads: no report", reads+1)
		}
		b.core.Observe(now, epoch.Snapshot{Record: late, Version: "late"}, FromWatch)
		b.lacks(b.take(), PersistRecord{}, AssignEpoch{})
		if b.core.Role() == Leader {
			t.Errorf("after %d reads it leads by a record that it has not reported", reads+1)
		}
		b.core.ReadDone(now+time.Second, epoch.Snapshot{Record: late, Version: "now"})
		if b.core.Role() != Leader {
			t.Errorf("role %s: a quorum read shows that the record is not frozen any more", b.core.Role())
		}
	}
}
