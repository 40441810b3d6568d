package core

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Rule 9: a fetch counts only from the registered process on the registered volume,
// however right its leader epoch is. What does not count moves nothing.
func TestOnlyTheRegisteredProcessAcknowledges(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*ReplicaFetch)
		want error
	}{
		{"the registered one", func(*ReplicaFetch) {}, nil},
		{"another start id", func(f *ReplicaFetch) { f.StartID = "guessed" }, ErrUnauthorized},
		{"another volume", func(f *ReplicaFetch) { f.DirectoryID = epoch.UUID{99} }, ErrUnauthorized},
		{"an earlier session", func(f *ReplicaFetch) { f.Session-- }, ErrStaleSession},
		{"a session that this leader has not heard of", func(f *ReplicaFetch) { f.Session++ }, ErrUnknownLeaderEpoch},
		{"a replica that is not assigned", func(f *ReplicaFetch) { f.Replica = 7 }, ErrUnknownLeaderEpoch},
		{"the leader itself", func(f *ReplicaFetch) { f.Replica = 0 }, ErrUnknownLeaderEpoch},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 0)
			b.log.append(1, "m")
			b.core.Appended()
			b.fetchFrom(time.Second, 2)
			p, _ := b.core.Record().Replica(1)
			f := ReplicaFetch{Replica: 1, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID,
				LeaderEpoch: 1, Offset: 1, LastEpoch: 1, Connection: 5}
			tc.edit(&f)
			_, err := b.core.Fetch(time.Second, f)
			if !errors.Is(err, tc.want) {
				t.Errorf("answered %v, want %v", err, tc.want)
			}
			if got, want := b.core.HighWatermark() == 1, tc.want == nil; got != want {
				t.Errorf("the record is committed: %t, want %t", got, want)
			}
		})
	}
}

// KAFKA-12996: below the leader's log start no epoch says where to cut; the follower has
// to begin anew.
func TestFetchBelowTheLogStartIsOutOfRangeWhateverItsEpoch(t *testing.T) {
	for _, last := range []epoch.LeaderEpoch{0, 1, 2, 3, 4} {
		b := newBench(t, 0)
		b.log.start = 10
		cache, err := epoch.NewCache([]epoch.Entry{{Epoch: 0, Start: 10}, {Epoch: 3, Start: 12}})
		if err != nil {
			t.Fatal(err)
		}
		b.log.cache = cache
		b.log.entries = []entry{{0, "a"}, {0, "b"}, {3, "c"}}
		p, _ := b.core.Record().Replica(1)
		a, err := b.core.Fetch(time.Second, ReplicaFetch{Replica: 1, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID,
			LeaderEpoch: 1, Offset: 4, LastEpoch: last, Connection: 5})
		if !errors.Is(err, ErrOffsetOutOfRange) || a.Diverging != nil {
			t.Errorf("last fetched epoch %d: %v, diverging %v, want out of range", last, err, a.Diverging)
		}
	}
}

// A log without a history begins where the leader's does. An old leader that had deleted
// more than its successor by an unclean election ever had would otherwise join without
// the successor's records.
func TestAnEmptyLogBeginsAtTheLeadersLogStart(t *testing.T) {
	leader := newBench(t, 0)
	for _, v := range []string{"a", "b", "c", "d"} {
		leader.log.append(1, v)
	}
	p, _ := leader.core.Record().Replica(1)
	fetch := ReplicaFetch{Replica: 1, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID,
		LeaderEpoch: 1, Offset: 3, LastEpoch: epoch.NoEpoch, LogStartOffset: 3, HighWatermark: 3, Connection: 5}
	if _, err := leader.core.Fetch(time.Second, fetch); err != nil {
		t.Fatalf("a member of the ISR that has deleted more: %v", err)
	}
	out := leader.core.Record().Clone()
	out.ISR, out.PartitionEpoch = []epoch.ReplicaID{0, 2}, out.PartitionEpoch+1
	out.Changes = append(out.Changes, epoch.Change{PartitionEpoch: out.PartitionEpoch, ID: "out", LeaderEpoch: 1})
	leader.core.Observe(time.Second, epoch.Snapshot{Record: out, Version: "out"}, FromRead)
	if _, err := leader.core.Fetch(time.Second, fetch); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("another, from behind the log start and without a history: %v, want out of range", err)
	}

	follower := newBench(t, 1)
	follower.log.start = 3
	q, ok := follower.core.NextFetch()
	if !ok {
		t.Fatal("the follower asks nothing")
	}
	follower.core.OutOfRange(q, 0, 4)
	if e, at := first[TruncateFully](follower.take()); at < 0 || e.StartAt != 0 {
		t.Fatalf("the follower does not begin anew at the leader's log start: %+v", e)
	}
}
