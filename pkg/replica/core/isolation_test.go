package core

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// fetchFrom is a fetch of a registered replica that has everything.
func (b *bench) fetchFrom(now time.Duration, id epoch.ReplicaID) {
	b.t.Helper()
	p, _ := b.core.Record().Replica(id)
	_, err := b.core.Fetch(now, ReplicaFetch{Replica: id, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID,
		LeaderEpoch: b.core.Record().LeaderEpoch, Offset: b.log.EndOffset(), LastEpoch: b.log.cache.Latest(), Connection: uint64(id) + 1})
	if err != nil {
		b.t.Fatalf("fetch of replica %d: %v", id, err)
	}
}

// run lets time pass until then, and grants every write of the record; it returns what
// the leader's switchover requests were, as they came and went.
func (b *bench) run(from, until time.Duration, fetching ...epoch.ReplicaID) (asked, withdrawn int) {
	b.t.Helper()
	for now := from; now <= until; now += time.Second {
		for _, id := range fetching {
			b.fetchFrom(now, id)
		}
		b.core.Tick(now)
		for w, at := first[WriteRecord](b.take()); at >= 0; w, at = first[WriteRecord](b.take()) {
			was, is := w.Base.Record.Switchover, w.Next.Switchover
			if was == nil && is.Isolated() {
				asked++
			}
			if was != nil && is == nil {
				withdrawn++
			}
			b.core.Written(now, epoch.Snapshot{Record: w.Next, Version: string(b.change())})
		}
	}
	return asked, withdrawn
}

func TestALeaderWithoutFetchesAsksToBeReplaced(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fetching []epoch.ReplicaID
		until    time.Duration
		asked    int
	}{
		{"all fetch", []epoch.ReplicaID{1, 2}, 5 * time.Minute, 0},
		{"enough fetch", []epoch.ReplicaID{1}, 5 * time.Minute, 0},
		{"nobody fetches, for less than the lag time", nil, 9 * time.Second, 0},
		{"nobody fetches", nil, 15 * time.Second, 1},
		{"nobody fetches, and nobody else is elected: it has asked and waits", nil, 5 * time.Minute, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 0)
			asked, withdrawn := b.run(time.Second, tc.until, tc.fetching...)
			if asked != tc.asked || withdrawn != 0 {
				t.Errorf("asked %d times and took it back %d times, want %d and 0", asked, withdrawn, tc.asked)
			}
		})
	}
}

func TestALeaderThatIsFetchedFromAgainTakesItsRequestBack(t *testing.T) {
	b := newBench(t, 0)
	b.run(time.Second, 15*time.Second)
	if !b.core.Record().Switchover.Isolated() {
		t.Fatalf("switchover %+v: it has not asked", b.core.Record().Switchover)
	}
	asked, withdrawn := b.run(16*time.Second, 20*time.Second, 1, 2)
	if asked != 0 || withdrawn != 1 || b.core.Role() != Leader || b.core.Record().LeaderEpoch != 1 {
		t.Errorf("asked %d, withdrawn %d, %s of epoch %d; want the request gone and the leader kept", asked, withdrawn, b.core.Role(), b.core.Record().LeaderEpoch)
	}
}

func TestALeaderAsksAgainOnlyAfterProgressOrALongerAndLongerWait(t *testing.T) {
	// Each silence lasts 12 s, each time of fetches 2 s: without the back-off the leader
	// would ask in every round.
	rounds := func(produce bool) (asked int) {
		b := newBench(t, 0)
		now := time.Second
		for range 12 {
			a, _ := b.run(now, now+12*time.Second)
			now += 13 * time.Second
			if produce {
				b.log.append(1, "x")
				b.core.Appended()
			}
			b.run(now, now+time.Second, 1, 2)
			now += 2 * time.Second
			asked += a
		}
		return asked
	}
	if got := rounds(true); got != 12 {
		t.Errorf("the high watermark moves in between: asked %d times in 12 rounds, want 12", got)
	}
	if got := rounds(false); got < 2 || got > 4 {
		t.Errorf("it stands still: asked %d times in 180 s, want after 10 s, 20 s later, 40 s later, and so on", got)
	}
}

func TestALeaderAfterAnUncleanElectionTellsTheLossOnce(t *testing.T) {
	b := newBench(t, 1, entry{1, "a"}, entry{1, "b"})
	alone := b.rec
	alone.ISR = []epoch.ReplicaID{0}
	alone.Progress = &epoch.Progress{HighWatermark: 5}
	n, err := epoch.ElectUnclean(alone, epoch.UncleanRequest{LeaderEpoch: 1, Replica: 1, Live: []epoch.ReplicaID{1, 2}, Change: "unclean"})
	b.core.Observe(time.Second, epoch.Snapshot{Record: b.must(n, err), Version: "unclean"}, FromWatch)
	told := 0
	for w, at := first[WriteRecord](b.take()); at >= 0; w, at = first[WriteRecord](b.take()) {
		if w.Base.Record.UncleanElection.LogEndOffset == nil && w.Next.UncleanElection.LogEndOffset != nil {
			told++
		}
		b.core.Written(time.Second, epoch.Snapshot{Record: w.Next, Version: string(b.change())})
	}
	from, to, known := b.core.Record().UncleanElection.Lost()
	if told != 1 || from != 2 || to != 5 || !known {
		t.Errorf("told %d times that [%d, %d) are lost (known: %t), want once [2, 5)", told, from, to, known)
	}
}

// A caller that looked at its clock before another one did must not make a replica look
// older than it is known to be.
func TestTheLagClockNeverGoesBack(t *testing.T) {
	b := newBench(t, 0)
	b.fetchFrom(20*time.Second, 1)
	b.fetchFrom(2*time.Second, 1)
	b.core.Disconnected(time.Second, 1, 2)
	if !b.core.Live(20*time.Second, 1) {
		t.Error("replica 1 fetched and disconnected just now, and counts as gone for long")
	}
	b.core.Tick(3 * time.Second)
	b.log.append(1, "x")
	b.core.Appended()
	b.fetchFrom(4*time.Second, 1)
	if !b.core.Live(25*time.Second, 1) {
		t.Error("replica 1 was caught up 5 s ago, and does not count as live")
	}
}
