package epoch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestElectUnclean(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Record)
		ask    func(*UncleanRequest)
		want   ReplicaID
		refuse RefusalReason
	}{
		{"the higher last epoch before the longer log", func(r *Record) { r.Replicas[1].LogEndOffset, r.Replicas[2].LastEpoch = 99, 2 }, nil, 2, ""},
		{"the longer log of equal epochs", func(r *Record) { r.Replicas[2].LogEndOffset = 11 }, nil, 2, ""},
		{"the lower id of equal logs", nil, nil, 1, ""},
		{"what the leader told of this session counts", func(r *Record) {
			r.Progress = &Progress{HighWatermark: 20, Replicas: []ReplicaProgress{{ID: 2, Session: r.Replicas[2].Session, LeaderEpoch: 1, LogEndOffset: 15}}}
		}, nil, 2, ""},
		{"what it told of an earlier session may be of a lost volume", func(r *Record) {
			r.Progress = &Progress{HighWatermark: 20, Replicas: []ReplicaProgress{{ID: 2, Session: r.Replicas[2].Session - 1, LeaderEpoch: 1, LogEndOffset: 15}}}
		}, nil, 1, ""},
		{"the one that the user named, though its log is shorter", func(r *Record) { r.Replicas[1].LogEndOffset = 99 }, func(q *UncleanRequest) { q.Replica = 2 }, 2, ""},
		{"not one that is not live", nil, func(q *UncleanRequest) { q.Live, q.Replica = []ReplicaID{1}, 2 }, 0, RefusedNoCandidate},
		{"not one that has never registered", func(r *Record) { r.Replicas[1].Session, r.Replicas[2].Gone = NoSession, true }, nil, 0, RefusedNoCandidate},
		{"not while a member of the ISR can lead", func(r *Record) { r.ISR = []ReplicaID{0, 2} }, nil, 0, RefusedInvalid},
		{"not for a request that named an earlier epoch", nil, func(q *UncleanRequest) { q.LeaderEpoch-- }, 0, RefusedSuperseded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := registered(t, 3, 1)
			r.ISR = []ReplicaID{0}
			r.Progress = &Progress{HighWatermark: 20}
			if tc.change != nil {
				tc.change(&r)
			}
			q := UncleanRequest{LeaderEpoch: r.LeaderEpoch, Replica: NoReplica, Live: []ReplicaID{1, 2}, Change: "u", Now: time.Unix(3, 0)}
			if tc.ask != nil {
				tc.ask(&q)
			}
			n, err := ElectUnclean(r, q)
			if tc.refuse != "" {
				wantRefusal(t, err, tc.refuse)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u := n.UncleanElection
			if n.Leader != tc.want || !slices.Equal(n.ISR, []ReplicaID{tc.want}) || n.ElectionReason != ReasonUnclean || n.LeaderEpoch != r.LeaderEpoch+1 {
				t.Errorf("leader %d, ISR %v, epoch %d because of %s; want %d alone in epoch %d", n.Leader, n.ISR, n.LeaderEpoch, n.ElectionReason, tc.want, r.LeaderEpoch+1)
			}
			if u == nil || u.Leader != tc.want || u.LeaderEpoch != n.LeaderEpoch || u.HighWatermark != 20 || n.Progress != nil {
				t.Errorf("the record notes %+v and keeps progress %v; want winner, epoch and the old high watermark, and no progress", u, n.Progress)
			}
			if _, err := ElectUnclean(n, q); !RefusedBecause(err, RefusedSuperseded) {
				t.Errorf("the same request fires again: %v", err)
			}
		})
	}
}

func TestTheLossOfAnUncleanElectionIsToldOnce(t *testing.T) {
	r := registered(t, 3, 1)
	r.ISR, r.Progress = []ReplicaID{0}, &Progress{HighWatermark: 20}
	n, err := ElectUnclean(r, UncleanRequest{LeaderEpoch: r.LeaderEpoch, Replica: 2, Live: []ReplicaID{2}, Change: "u"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, known := n.UncleanElection.Lost(); known {
		t.Error("the loss is known before the new leader has taken over")
	}
	if _, err := TellLoss(n, 2, n.LeaderSession-1, 10, "loss"); !RefusedBecause(err, RefusedNotLeader) {
		t.Errorf("another session tells of the loss: %v", err)
	}
	again, err := Elect(n, Election{Reason: ReasonProcessDied, Live: []ReplicaID{2}, Change: "again"})
	if err != nil {
		t.Fatal(err)
	}
	if late, err := TellLoss(again, 2, again.LeaderSession, 10, "loss"); err != nil || late.UncleanElection.LogEndOffset == nil || *late.UncleanElection.LogEndOffset != 10 {
		t.Errorf("told by the leader of a later epoch, since the winner had not: %+v, %v", late.UncleanElection, err)
	}
	told, err := TellLoss(n, 2, n.LeaderSession, 10, "loss")
	if err != nil {
		t.Fatal(err)
	}
	if from, to, known := told.UncleanElection.Lost(); from != 10 || to != 20 || !known || told.PartitionEpoch != n.PartitionEpoch+1 {
		t.Errorf("lost [%d, %d) known %t, partition epoch %d; want [10, 20) in %d", from, to, known, told.PartitionEpoch, n.PartitionEpoch+1)
	}
	if _, err := TellLoss(told, 2, n.LeaderSession, 12, "loss"); !errors.Is(err, ErrNoChange) {
		t.Errorf("the loss is told twice: %v", err)
	}
	next := mustElect(t, told, "next", 2)
	if _, err := TellLoss(next, 2, next.LeaderSession, 30, "loss"); !errors.Is(err, ErrNoChange) {
		t.Errorf("a clean election lost something: %v", err)
	}
}

func TestLostOffsets(t *testing.T) {
	end := func(o Offset) *Offset { return &o }
	for _, tc := range []struct {
		name     string
		u        UncleanElection
		from, to Offset
		known    bool
	}{
		{"a shorter log", UncleanElection{HighWatermark: 20, LogEndOffset: end(10)}, 10, 20, true},
		{"a log that has everything loses nothing", UncleanElection{HighWatermark: 20, LogEndOffset: end(25)}, 20, 20, true},
		{"no high watermark known", UncleanElection{HighWatermark: NoOffset, LogEndOffset: end(10)}, NoOffset, NoOffset, false},
		{"not taken over yet", UncleanElection{HighWatermark: 20}, NoOffset, NoOffset, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if from, to, known := tc.u.Lost(); from != tc.from || to != tc.to || known != tc.known {
				t.Errorf("lost [%d, %d) known %t, want [%d, %d) %t", from, to, known, tc.from, tc.to, tc.known)
			}
		})
	}
}
