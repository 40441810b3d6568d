package epoch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// dir is the directory id of a replica's n-th volume content.
func dir(id, n int) UUID { return UUID{byte(id + 1), byte(n)} }

// registered gives a record of n replicas that have all registered once, replica 0
// leading since it came first.
func registered(t *testing.T, n, minISR int) Record {
	t.Helper()
	var ids []ReplicaID
	for i := range n {
		ids = append(ids, ReplicaID(i))
	}
	r := New(UUID{1}, ids, minISR, "new")
	for i := range n {
		r = mustRegister(t, r, i, 1, "first")
	}
	return r
}

func mustRegister(t *testing.T, r Record, id, volume int, start string) Record {
	t.Helper()
	n, err := Register(r, registration(id, volume, start))
	if err != nil {
		t.Fatalf("register replica %d: %v", id, err)
	}
	return n
}

func registration(id, volume int, start string) Registration {
	return Registration{ID: ReplicaID(id), DirectoryID: dir(id, volume), VolumeID: UUID{byte(id + 1)}, StartID: StartID(start) + StartID(rune('0'+id)),
		LastEpoch: 1, LogEndOffset: 10, Change: ChangeID("register" + start), Now: time.Unix(1, 0)}
}

func wantRefusal(t *testing.T, err error, reason RefusalReason) {
	t.Helper()
	if !RefusedBecause(err, reason) {
		t.Errorf("got error %v, want a refusal because of %s", err, reason)
	}
}

func TestFirstRegisteredReplicaLeads(t *testing.T) {
	r := registered(t, 3, 2)
	if r.Leader != 0 || r.LeaderEpoch != 1 || r.ElectionReason != ReasonFirstLeader {
		t.Errorf("leader %d of epoch %d because of %s, want 0 of 1 because of FirstLeader", r.Leader, r.LeaderEpoch, r.ElectionReason)
	}
	if r.LeaderSession != r.Replicas[0].Session {
		t.Errorf("leader session %d, replica 0 has session %d", r.LeaderSession, r.Replicas[0].Session)
	}
	if got, want := r.ISR, []ReplicaID{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("ISR %v, want %v: an empty log has everything below high watermark 0", got, want)
	}
}

func TestRegisterAgain(t *testing.T) {
	for _, tc := range []struct {
		name       string
		id, volume int
		wantLeader ReplicaID
		wantEpoch  LeaderEpoch
		wantISR    []ReplicaID
	}{
		{"a leader on its directory leads a new epoch (rule 2)", 0, 1, 0, 2, []ReplicaID{0, 1, 2}},
		{"a leader on another directory is struck and leads no more (rule 3)", 0, 2, NoReplica, 1, []ReplicaID{1, 2}},
		{"a follower on its directory stays in the ISR", 1, 1, 0, 1, []ReplicaID{0, 1, 2}},
		{"a follower on another directory is struck (KIP-903)", 1, 2, 0, 1, []ReplicaID{0, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := registered(t, 3, 2)
			r := mustRegister(t, before, tc.id, tc.volume, "again")
			if r.Leader != tc.wantLeader || r.LeaderEpoch != tc.wantEpoch || !slices.Equal(r.ISR, tc.wantISR) {
				t.Errorf("leader %d epoch %d ISR %v, want %d, %d, %v", r.Leader, r.LeaderEpoch, r.ISR, tc.wantLeader, tc.wantEpoch, tc.wantISR)
			}
			if p, _ := r.Replica(ReplicaID(tc.id)); p.Session != Session(r.PartitionEpoch) || r.PartitionEpoch != before.PartitionEpoch+1 {
				t.Errorf("session %d at partition epoch %d: a session is the partition epoch of its registration", p.Session, r.PartitionEpoch)
			}
		})
	}
}

func TestRegisterIsIdempotent(t *testing.T) {
	r := registered(t, 3, 2)
	if _, err := Register(r, registration(1, 1, "first")); !errors.Is(err, ErrNoChange) {
		t.Errorf("registering the same start twice: %v, want ErrNoChange (a lost answer must not make a second session)", err)
	}
}

func TestRegisterRefusals(t *testing.T) {
	r := registered(t, 3, 2)
	other := registration(1, 1, "again")
	other.DirectoryID = dir(2, 1)
	_, err := Register(r, other)
	wantRefusal(t, err, RefusedDirectoryUsed)
	_, err = Register(r, registration(7, 1, "x"))
	wantRefusal(t, err, RefusedNotAssigned)
	frozen, _ := MarkRecovery(r, Recovery{PartitionEpoch: 99, LeaderEpoch: 9})
	_, err = Register(frozen, registration(1, 1, "again"))
	wantRefusal(t, err, RefusedRecovery)
}

func TestElect(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Record)
		live   []ReplicaID
		want   ReplicaID
		refuse RefusalReason
	}{
		{"next in cyclic order", nil, []ReplicaID{1, 2}, 1, ""},
		{"a dead one is passed over", nil, []ReplicaID{2}, 2, ""},
		{"the leader itself comes last", nil, []ReplicaID{0}, 0, ""},
		{"nobody outside of the ISR (rule 6)", func(r *Record) { r.ISR = []ReplicaID{0} }, []ReplicaID{1, 2}, 0, RefusedNoCandidate},
		{"one that is stopping only if alone", func(r *Record) { r.Replicas[1].Stopping = true }, []ReplicaID{1, 2}, 2, ""},
		{"one that is stopping if alone", func(r *Record) { r.Replicas[1].Stopping = true }, []ReplicaID{1}, 1, ""},
		{"nobody who has not registered", func(r *Record) { r.Replicas[1].Session = NoSession }, []ReplicaID{1}, 0, RefusedNoCandidate},
		{"nobody whose process has ended", func(r *Record) { r.Replicas[1].Gone = true }, []ReplicaID{1}, 0, RefusedNoCandidate},
		{"nobody live", nil, nil, 0, RefusedNoCandidate},
		{"nothing while recovery is pending (rule 7)", func(r *Record) { r.Recovery = &Recovery{} }, []ReplicaID{1}, 0, RefusedRecovery},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := registered(t, 3, 2)
			if tc.change != nil {
				tc.change(&r)
			}
			n, err := Elect(r, Election{Reason: ReasonProcessDied, Live: tc.live, LeaderEnded: true, Change: "e", Now: time.Unix(5, 0)})
			if tc.refuse != "" {
				wantRefusal(t, err, tc.refuse)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n.Leader != tc.want || n.LeaderEpoch != r.LeaderEpoch+1 || n.PartitionEpoch != r.PartitionEpoch+1 {
				t.Errorf("leader %d, leader epoch %d, partition epoch %d; want %d and both epochs one higher than %d, %d",
					n.Leader, n.LeaderEpoch, n.PartitionEpoch, tc.want, r.LeaderEpoch, r.PartitionEpoch)
			}
			if old, _ := n.Replica(0); old.Gone != (tc.want != 0) {
				t.Errorf("the ended leader is marked as gone: %t", old.Gone)
			}
		})
	}
}

func isrChange(r Record, ids ...ReplicaID) ISRChange {
	c := ISRChange{Leader: r.Leader, Session: r.LeaderSession, LeaderEpoch: r.LeaderEpoch, Change: "isr"}
	for _, id := range ids {
		p, _ := r.Replica(id)
		c.ISR = append(c.ISR, Member{id, p.Session})
	}
	return c
}

func TestChangeISR(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Record)
		wanted func(Record) ISRChange
		want   []ReplicaID
		refuse RefusalReason
	}{
		{"shrink to min ISR", nil, func(r Record) ISRChange { return isrChange(r, 0, 2) }, []ReplicaID{0, 2}, ""},
		{"never below min ISR (rule 5)", nil, func(r Record) ISRChange { return isrChange(r, 0) }, nil, RefusedBelowMinISR},
		{"growing while below min ISR is fine", func(r *Record) { r.ISR, r.WantedMinISR = []ReplicaID{0}, 3 },
			func(r Record) ISRChange { return isrChange(r, 0, 1) }, []ReplicaID{0, 1}, ""},
		{"the leader stays in", nil, func(r Record) ISRChange { return isrChange(r, 1, 2) }, nil, RefusedInvalid},
		{"a session that was replaced does not join (KIP-903)", func(r *Record) { r.ISR = []ReplicaID{0, 1} }, func(r Record) ISRChange {
			c := isrChange(r, 0, 1, 2)
			c.ISR[2].Session--
			return c
		}, nil, RefusedIneligible},
		{"one that is stopping does not join (KIP-841)", func(r *Record) { r.ISR = []ReplicaID{0, 1}; r.Replicas[2].Stopping = true },
			func(r Record) ISRChange { return isrChange(r, 0, 1, 2) }, nil, RefusedIneligible},
		{"a deposed leader changes nothing", nil, func(r Record) ISRChange {
			c := isrChange(r, 0, 1)
			c.LeaderEpoch--
			return c
		}, nil, RefusedNotLeader},
		{"another session of the leader changes nothing", nil, func(r Record) ISRChange {
			c := isrChange(r, 0, 1)
			c.Session--
			return c
		}, nil, RefusedNotLeader},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := registered(t, 3, 2)
			if tc.change != nil {
				tc.change(&r)
				r.MinISR = r.MinISRWith(nil)
			}
			n, err := ChangeISR(r, tc.wanted(r))
			if tc.refuse != "" {
				wantRefusal(t, err, tc.refuse)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(n.ISR, tc.want) || n.LeaderEpoch != r.LeaderEpoch {
				t.Errorf("ISR %v epoch %d, want %v and the epoch kept", n.ISR, n.LeaderEpoch, tc.want)
			}
		})
	}
}

func TestGrowingFromOneReplicaToThree(t *testing.T) {
	r := registered(t, 1, 2)
	if r.MinISR != 1 {
		t.Fatalf("effective min ISR %d with one replica, want 1", r.MinISR)
	}
	target := Assignment{Target: []ReplicaID{0, 1, 2}, WantedMinISR: 2, Live: []ReplicaID{0}, Change: "grow"}
	r = mustAssign(t, r, target)
	if r.MinISR != 1 || r.InSync(1) {
		t.Errorf("min ISR %d, ISR %v: replicas being added count for neither", r.MinISR, r.ISR)
	}
	r = mustRegister(t, mustRegister(t, r, 1, 1, "first"), 2, 1, "first")
	r, err := ChangeISR(r, isrChange(r, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := r.Replica(1); p.Adding || r.MinISR != 2 {
		t.Errorf("adding %t, min ISR %d: joining the ISR ends the adding and raises the effective min ISR", p.Adding, r.MinISR)
	}
	target.Live = []ReplicaID{0, 1}
	if _, err := Assign(r, target); !errors.Is(err, ErrNoChange) {
		t.Errorf("a second step: %v, want ErrNoChange", err)
	}
}

func mustAssign(t *testing.T, r Record, a Assignment) Record {
	t.Helper()
	n, err := Assign(r, a)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestShrinkingDropsDeadReplicasFirstAndNeverTooMany(t *testing.T) {
	r := registered(t, 3, 2)
	a := Assignment{Target: []ReplicaID{1}, WantedMinISR: 1, Live: []ReplicaID{0, 1}, Change: "shrink", Now: time.Unix(9, 0)}
	r = mustAssign(t, r, a) // marks
	if p, _ := r.Replica(2); !p.Removing {
		t.Fatalf("replica 2 is not marked as being removed: %+v", p)
	}
	epochBefore := r.LeaderEpoch
	r = mustAssign(t, r, a)
	if _, ok := r.Replica(2); ok || r.Leader != 0 || r.LeaderEpoch != epochBefore+1 {
		t.Errorf("first the dead replica 2 goes, with a new leader epoch; got replicas %v, leader %d, epoch %d", r.ids(), r.Leader, r.LeaderEpoch)
	}
	if _, err := Assign(r, Assignment{Target: []ReplicaID{1}, WantedMinISR: 1, Live: []ReplicaID{0}, Change: "x"}); !RefusedBecause(err, RefusedBelowMinISR) {
		t.Errorf("dropping the leader while the one that stays is dead: %v", err)
	}
	r = mustAssign(t, r, a)
	if !slices.Equal(r.ids(), []ReplicaID{1}) || r.Leader != 1 || !slices.Equal(r.ISR, []ReplicaID{1}) {
		t.Errorf("replicas %v, leader %d, ISR %v; want replica 1 alone, leading", r.ids(), r.Leader, r.ISR)
	}
}

func TestHandOverMarksTheOldLeaderAsStopping(t *testing.T) {
	r := registered(t, 3, 2)
	n, err := HandOver(r, 0, r.LeaderSession, 2, "h", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if old, _ := n.Replica(0); n.Leader != 2 || !old.Stopping || n.ElectionReason != ReasonSwitchover {
		t.Errorf("leader %d, old leader stopping %t, reason %s", n.Leader, old.Stopping, n.ElectionReason)
	}
	if _, err := HandOver(n, 0, r.LeaderSession, 1, "h", time.Unix(1, 0)); !RefusedBecause(err, RefusedNotLeader) {
		t.Errorf("handing over a leadership that is gone: %v", err)
	}
}

func TestLastKnownLeader(t *testing.T) {
	empty := func(t *testing.T) Record {
		r := registered(t, 2, 1)
		r = mustRegister(t, r, 0, 2, "again") // power cut: both lost their promise
		return mustRegister(t, r, 1, 2, "again")
	}
	t.Run("back on its volume", func(t *testing.T) {
		n, err := ElectLastKnown(empty(t), []ReplicaID{0, 1}, "u", time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		if n.Leader != 0 || !slices.Equal(n.ISR, []ReplicaID{0}) || n.UncleanElection == nil {
			t.Errorf("leader %d, ISR %v, unclean %v; want 0, [0] and reported", n.Leader, n.ISR, n.UncleanElection)
		}
	})
	t.Run("not on another volume", func(t *testing.T) {
		r := empty(t)
		r.Replicas[0].VolumeID = UUID{77}
		_, err := ElectLastKnown(r, []ReplicaID{0, 1}, "u", time.Unix(1, 0))
		wantRefusal(t, err, RefusedNoCandidate)
	})
	t.Run("not while another has a longer log", func(t *testing.T) {
		r := empty(t)
		r.Replicas[1].LogEndOffset++
		_, err := ElectLastKnown(r, []ReplicaID{0, 1}, "u", time.Unix(1, 0))
		wantRefusal(t, err, RefusedNoCandidate)
	})
	t.Run("not while the ISR has members", func(t *testing.T) {
		_, err := ElectLastKnown(registered(t, 2, 1), []ReplicaID{0, 1}, "u", time.Unix(1, 0))
		wantRefusal(t, err, RefusedInvalid)
	})
}

func TestSeesTellsHistoriesApart(t *testing.T) {
	r := registered(t, 3, 2)
	known := r.LastChange()
	next, _ := Elect(r, Election{Live: []ReplicaID{1}, Change: "a"})
	if !next.Sees(known) {
		t.Error("a record that went on does not know its own past")
	}
	other, _ := Elect(r, Election{Live: []ReplicaID{1}, Change: "b"})
	if other.Sees(next.LastChange()) {
		t.Error("a record of another history with the same counters passes for the same")
	}
}

func TestRulesNeverChangeTheirInput(t *testing.T) {
	r := registered(t, 3, 2)
	before := r.Clone()
	_, _ = Elect(r, Election{Live: []ReplicaID{1}, LeaderEnded: true, Change: "x"})
	_, _ = ChangeISR(r, isrChange(r, 0, 1))
	_, _ = Register(r, registration(0, 2, "again"))
	_, _ = Assign(r, Assignment{Target: []ReplicaID{0}, WantedMinISR: 1, Live: []ReplicaID{0, 1, 2}, Change: "x"})
	_, _ = Retire(r, 1, r.Replicas[1].Session, "x")
	if r.LeaderEpoch != before.LeaderEpoch || !slices.Equal(r.ISR, before.ISR) || !slices.Equal(r.Replicas, before.Replicas) || !slices.Equal(r.Changes, before.Changes) {
		t.Errorf("the record changed in place: %+v, was %+v", r, before)
	}
}

func TestSeesNoChangeFromTheFuture(t *testing.T) {
	r := registered(t, 3, 2)
	next, _ := Elect(r, Election{Live: []ReplicaID{1}, Change: "a"})
	if r.Sees(next.LastChange()) {
		t.Error("an older record passes for one that goes on from a newer one")
	}
	if !r.Sees(Change{}) {
		t.Error("whoever knows nothing must accept any record")
	}
}
