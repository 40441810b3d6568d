package epoch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// lineages makes two histories that part after a common record: the true one, which
// shrank the ISR and elected, and what a restored record went through since.
func lineages(t *testing.T) (common, truth, fork Record) {
	t.Helper()
	common = registered(t, 3, 2)
	truth, err := ChangeISR(common, isrChange(common, 0, 2))
	if err != nil {
		t.Fatal(err)
	}
	truth = mustElect(t, truth, "truth", 2)
	fork = mustElect(t, common, "fork1", 1)
	for _, change := range []ChangeID{"fork2", "fork3"} { // more changes than the truth has
		fork = mustElect(t, fork, change, 1)
	}
	return common, truth, fork
}

func mustElect(t *testing.T, r Record, change ChangeID, live ...ReplicaID) Record {
	t.Helper()
	n, err := Elect(r, Election{Reason: ReasonLeaseExpired, Live: live, Change: change, Now: time.Unix(7, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// frozenBy freezes r by the first of the reports, and begins a round in which they are
// all made, in this order.
func frozenBy(t *testing.T, r Record, reports ...Recovery) Record {
	t.Helper()
	n, err := MarkRecovery(r, reports[0])
	if err != nil && !errors.Is(err, ErrNoChange) {
		t.Fatal(err)
	}
	if r, err = AskReports(n, "round"); err != nil {
		t.Fatal(err)
	}
	for _, v := range reports {
		n, err := MarkRecovery(r, v)
		if err != nil && !errors.Is(err, ErrNoChange) {
			t.Fatal(err)
		}
		r = n
	}
	return r
}

func TestRecover(t *testing.T) {
	common, truth, fork := lineages(t)
	grown := mustAssign(t, truth, Assignment{Target: []ReplicaID{0, 1, 2, 3}, WantedMinISR: 2, Live: []ReplicaID{0, 1, 2}, Change: "grow"})
	remade := Remake(common.TopicID, []ReplicaID{0, 1, 2}, 2, truth.PartitionEpoch, truth.LeaderEpoch, "remade")
	for _, tc := range []struct {
		name    string
		frozen  Record
		reports []Recovery
		at      PartitionEpoch // 0: the frozen record's
		wantISR []ReplicaID
		from    Record
		refuse  RefusalReason
	}{
		{"the newest record reported wins over the restored one", common,
			[]Recovery{RecoveryOf(0, &truth, 0), RecoveryOf(1, &common, 0), RecoveryOf(2, &truth, 0)}, 0, []ReplicaID{0, 2}, truth, ""},
		{"a shorter true history wins over a longer one that began with the restore; who followed that leaves the ISR", fork,
			[]Recovery{RecoveryOf(0, &truth, 0), RecoveryOf(1, &fork, 0), RecoveryOf(2, &fork, 0)}, 0, []ReplicaID{0}, truth, ""},
		{"who remembers nothing is judged when it registers", common,
			[]Recovery{RecoveryOf(0, &truth, 0), RecoveryOf(1, nil, 0), RecoveryOf(2, nil, 0)}, 0, []ReplicaID{0, 2}, truth, ""},
		{"the restored record goes on if nobody knew more", fork,
			[]Recovery{RecoveryOf(0, &common, 0), RecoveryOf(1, &fork, 0), RecoveryOf(2, &common, 0)}, 0, []ReplicaID{0, 1, 2}, fork, ""},
		{"a Lease made anew counts for nothing, whatever its epoch", remade,
			[]Recovery{RecoveryOf(0, &common, 0), RecoveryOf(1, &common, 0), RecoveryOf(2, &common, 0)}, 0, []ReplicaID{0, 1, 2}, common, ""},
		{"not from a Lease made anew if nobody remembers", remade,
			[]Recovery{RecoveryOf(0, nil, 0), RecoveryOf(1, nil, 0), RecoveryOf(2, nil, 0)}, 0, nil, Record{}, RefusedRecovery},
		{"not before every replica of the restored record has reported", common,
			[]Recovery{RecoveryOf(0, &truth, 0), RecoveryOf(2, &truth, 0)}, 0, nil, Record{}, RefusedRecovery},
		{"not before every replica of a reported record has reported", common,
			[]Recovery{RecoveryOf(0, &grown, 0), RecoveryOf(1, &common, 0), RecoveryOf(2, &truth, 0)}, 0, nil, Record{}, RefusedRecovery},
		{"not for a request that named another regression", common,
			[]Recovery{RecoveryOf(0, &truth, 0), RecoveryOf(1, &common, 0), RecoveryOf(2, &truth, 0)}, common.PartitionEpoch - 1, nil, Record{}, RefusedSuperseded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := frozenBy(t, tc.frozen, tc.reports...)
			if tc.at == 0 {
				tc.at = r.PartitionEpoch
			}
			n, err := Recover(r, RecoveryRequest{PartitionEpoch: tc.at, Round: "round", Change: "recovered"})
			if tc.refuse != "" {
				wantRefusal(t, err, tc.refuse)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(n.ISR, tc.wantISR) || n.Leader != NoReplica || n.Recovery != nil || n.Recovered.From != tc.from.LastChange() {
				t.Errorf("ISR %v, leader %d, recovery %v, from %+v; want %v, none, none, %+v", n.ISR, n.Leader, n.Recovery, n.Recovered.From, tc.wantISR, tc.from.LastChange())
			}
			for _, known := range []Record{common, truth, fork} {
				if slices.ContainsFunc(tc.reports, func(v Recovery) bool { return v.PartitionEpoch == known.PartitionEpoch }) &&
					(n.PartitionEpoch < known.PartitionEpoch+RecoveryMargin || n.LeaderEpoch < known.LeaderEpoch+RecoveryMargin) {
					t.Errorf("epochs %d, %d: want both %d above %d, %d, which were reported", n.PartitionEpoch, n.LeaderEpoch, RecoveryMargin, known.PartitionEpoch, known.LeaderEpoch)
				}
				if !n.Sees(known.LastChange()) {
					t.Errorf("the recovered record passes for older than %+v, which was known before", known.LastChange())
				}
			}
			if _, err := Recover(n, RecoveryRequest{PartitionEpoch: tc.at, Round: "round", Change: "again"}); !errors.Is(err, ErrNoChange) {
				t.Errorf("the same request once more: %v, want ErrNoChange", err)
			}
		})
	}
}

func TestReportsDoNotHangOnTheirOrder(t *testing.T) {
	common, truth, fork := lineages(t)
	a, b, c := RecoveryOf(0, &truth, 0), RecoveryOf(1, &fork, 0), RecoveryOf(2, nil, 0)
	want := frozenBy(t, common, a, b, c)
	for _, order := range [][]Recovery{{a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}, {a, b, c, a, c}} {
		got := frozenBy(t, common, order...)
		if !slices.Equal(got.Recovery.Reports, want.Recovery.Reports) || got.Recovery.Newest.LastChange() != want.Recovery.Newest.LastChange() ||
			got.Recovery.PartitionEpoch != want.Recovery.PartitionEpoch || !slices.Equal(got.Recovery.Assigned, want.Recovery.Assigned) {
			t.Errorf("reports in another order give %+v, want %+v", got.Recovery, want.Recovery)
		}
	}
}

func TestAVolumePutBackDoesNotHideWhatItKnew(t *testing.T) {
	common, truth, _ := lineages(t)
	r := frozenBy(t, common, RecoveryOf(0, &truth, 0))
	if _, err := MarkRecovery(r, RecoveryOf(0, &common, 0)); !errors.Is(err, ErrNoChange) {
		t.Errorf("a lesser report of the same replica: %v, want ErrNoChange", err)
	}
}

func TestNothingChangesWhileFrozen(t *testing.T) {
	common, truth, _ := lineages(t)
	r := frozenBy(t, common, RecoveryOf(0, &truth, 0), RecoveryOf(1, &truth, 0), RecoveryOf(2, &truth, 0))
	for name, change := range map[string]func() (Record, error){
		"elect": func() (Record, error) { return Elect(r, Election{Live: []ReplicaID{1}, Change: "x"}) },
		"unclean": func() (Record, error) {
			return ElectUnclean(r, UncleanRequest{LeaderEpoch: r.LeaderEpoch, Replica: NoReplica})
		},
		"last known": func() (Record, error) { return ElectLastKnown(r, nil, "x", time.Time{}) },
		"register":   func() (Record, error) { return Register(r, registration(1, 1, "again")) },
		"ISR":        func() (Record, error) { return ChangeISR(r, isrChange(r, 0, 1)) },
		"assign":     func() (Record, error) { return Assign(r, Assignment{Target: []ReplicaID{0}, WantedMinISR: 1}) },
		"retire":     func() (Record, error) { return Retire(r, 1, r.Replicas[1].Session, "x") },
		"switchover": func() (Record, error) { return RequestSwitchover(r, SwitchoverRequest{To: NoReplica, Change: "x"}) },
		"loss":       func() (Record, error) { return TellLoss(r, 0, r.LeaderSession, 1, "x") },
	} {
		if _, err := change(); !RefusedBecause(err, RefusedRecovery) {
			t.Errorf("%s: %v, want a refusal because of %s", name, err, RefusedRecovery)
		}
	}
}

func TestSetAside(t *testing.T) {
	common, truth, fork := lineages(t)
	r := frozenBy(t, fork, RecoveryOf(0, &truth, 0), RecoveryOf(1, &fork, 0), RecoveryOf(2, &common, 0))
	n, err := Recover(r, RecoveryRequest{PartitionEpoch: r.PartitionEpoch, Round: "round", Change: "recovered"})
	if err != nil {
		t.Fatal(err)
	}
	later := n
	for range MaxChanges + 1 {
		later = mustElect(t, later, "later", 0)
	}
	other := registered(t, 3, 2)
	for i := range other.Changes {
		other.Changes[i].ID = "elsewhere"
	}
	for _, tc := range []struct {
		name  string
		now   Record
		id    ReplicaID
		known Record
		want  LeaderEpoch
		aside bool
	}{
		{"the history that won", n, 0, truth, NoEpoch, false},
		{"an older record of it", n, 2, common, NoEpoch, false},
		{"the other history is cut after the last epoch that both share", n, 1, fork, common.LeaderEpoch, true},
		{"nothing in common: nothing stays", n, 1, other, NoEpoch, true},
		{"a volume that remembers nothing", n, 1, Record{}, NoEpoch, false},
		{"one that has taken in the recovery", n, 1, n, NoEpoch, false},
		{"faithful, and away for more changes than a record remembers", later, 2, common, NoEpoch, false},
		{"not faithful, and away for so long", later, 1, fork, NoEpoch, true},
		{"another volume had reported, of the history that won", n, 2, fork, common.LeaderEpoch, true},
		{"likewise, away for so long", later, 2, fork, NoEpoch, true},
		{"no recovery, no cut", truth, 1, fork, NoEpoch, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, aside := tc.now.SetAside(tc.id, tc.known)
			if got != tc.want || aside != tc.aside {
				t.Errorf("shared epoch %d, set aside %t; want %d, %t", got, aside, tc.want, tc.aside)
			}
		})
	}
}

// What the ISR knew to be committed outlives the leader's progress, which goes with the
// record: a member whose volume ends below it is not the one that counts.
func TestRecoveryKeepsTheHighWatermark(t *testing.T) {
	common, truth, fork := lineages(t)
	for _, tc := range []struct {
		name    string
		reports []Recovery
		want    Offset
	}{
		{"the highest of the ISR that won", []Recovery{RecoveryOf(0, &truth, 7), RecoveryOf(1, &common, 0), RecoveryOf(2, &truth, 9)}, 9},
		{"not one of another history", []Recovery{RecoveryOf(0, &truth, 7), RecoveryOf(1, &common, 0), RecoveryOf(2, &fork, 9)}, 7},
		{"not one from outside of the ISR", []Recovery{RecoveryOf(0, &truth, 7), RecoveryOf(1, &common, 9), RecoveryOf(2, &truth, 7)}, 7},
		{"none is known", []Recovery{RecoveryOf(0, &truth, NoOffset), RecoveryOf(1, nil, NoOffset), RecoveryOf(2, nil, NoOffset)}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := frozenBy(t, fork, tc.reports...)
			n, err := Recover(r, RecoveryRequest{PartitionEpoch: r.PartitionEpoch, Round: "round", Change: "recovered"})
			if err != nil {
				t.Fatal(err)
			}
			if n.HighestKnown() != tc.want {
				t.Errorf("the highest known is %d, want %d", n.HighestKnown(), tc.want)
			}
			n.Progress = &Progress{HighWatermark: 12}
			if n.HighestKnown() != 12 {
				t.Errorf("the highest known is %d once the leader has told 12", n.HighestKnown())
			}
			if n = n.crown(1, ReasonUnclean, "unclean", time.Unix(8, 0)); n.HighestKnown() > 0 {
				t.Errorf("the highest known is %d after an unclean election, whose winner may not have it", n.HighestKnown())
			}
		})
	}
}

// A leader of the frozen record commits until its lease ends. What it says in a new round counts.
func TestAReportOfANewRoundRaisesTheHighWatermark(t *testing.T) {
	common, truth, _ := lineages(t)
	r := frozenBy(t, common, RecoveryOf(0, &truth, 7))
	if _, err := MarkRecovery(r, RecoveryOf(0, &truth, 8)); !errors.Is(err, ErrNoChange) {
		t.Errorf("once more in the same round: %v, want ErrNoChange", err)
	}
	r, err := AskReports(r, "second")
	if err != nil {
		t.Fatal(err)
	}
	for _, hw := range []Offset{9, 3} { // the second is of a volume that was put back
		if r, err = MarkRecovery(r, RecoveryOf(0, &truth, hw)); err != nil {
			t.Fatal(err)
		}
		if got := r.Recovery.Reports[0].HighWatermark; got != 9 {
			t.Errorf("after a report of %d the high watermark is %d, want 9", hw, got)
		}
		if r, err = AskReports(r, ChangeID(fmt.Sprint("after ", hw))); err != nil {
			t.Fatal(err)
		}
	}
}

// The record that was put back had itself been frozen, and every replica had reported
// then. What was acknowledged since counts all the same.
func TestReportsFromABackupOfAFrozenRecordAreNotBelieved(t *testing.T) {
	common, truth, _ := lineages(t)
	backup := frozenBy(t, common, RecoveryOf(0, &truth, 0), RecoveryOf(1, &common, 0), RecoveryOf(2, &truth, 0))
	n, err := Recover(backup, RecoveryRequest{PartitionEpoch: backup.PartitionEpoch, Round: "round", Change: "recovered"})
	if err != nil {
		t.Fatal(err)
	}
	now := mustElect(t, n, "since", 2)

	if _, err := Recover(backup, RecoveryRequest{PartitionEpoch: backup.PartitionEpoch, Change: "again"}); !RefusedBecause(err, RefusedSuperseded) {
		t.Errorf("by no round: %v, want a refusal because of %s", err, RefusedSuperseded)
	}
	asked, err := AskReports(backup, "second")
	if err != nil {
		t.Fatal(err)
	}
	request := RecoveryRequest{PartitionEpoch: backup.PartitionEpoch, Round: "second", Change: "again"}
	if _, err := Recover(asked, request); !RefusedBecause(err, RefusedRecovery) {
		t.Errorf("by the reports in the backup: %v, want a refusal because of %s", err, RefusedRecovery)
	}
	for id := range ReplicaID(3) {
		if asked, err = MarkRecovery(asked, RecoveryOf(id, &now, 0)); err != nil {
			t.Fatalf("the report of replica %d: %v", id, err)
		}
	}
	if n, err = Recover(asked, request); err != nil || n.Recovered.From != now.LastChange() {
		t.Errorf("recovered from %+v (%v), want %+v, the newest by now", n.Recovered, err, now.LastChange())
	}
}
