package core

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A follower in the ISR takes the place of a leader whose process has ended, without an
// operator.
func TestAFollowerSucceedsALeaderWhoseProcessHasEnded(t *testing.T) {
	b := newBench(t, 1)
	b.core.LeaderEnded(time.Second, 1)
	w, at := first[WriteRecord](b.take())
	if at < 0 || w.Next.Leader != 1 || w.Next.LeaderEpoch != 2 || w.Next.ElectionReason != epoch.ReasonProcessDied {
		t.Fatalf("it writes %+v, want itself in epoch 2", w.Next)
	}
	if old, _ := w.Next.Replica(0); !old.Gone {
		t.Error("the next leader would wait for the one that has ended")
	}
	b.core.Written(time.Second, epoch.Snapshot{Record: w.Next, Version: "elected"})
	if b.core.Role() != Leader {
		t.Errorf("it is %s after its election", b.core.Role())
	}
}

func TestAFollowerThatLostARaceLooksAgain(t *testing.T) {
	b := newBench(t, 1)
	b.core.LeaderEnded(time.Second, 1)
	b.take()
	b.core.WriteFailed(time.Second, epoch.ErrConflict)
	if _, at := first[ReadRecord](b.take()); at < 0 {
		t.Fatal("it does not look who was quicker")
	}
	t.Run("a last heartbeat", func(t *testing.T) {
		b.core.ReadDone(time.Second, epoch.Snapshot{Record: epoch.Renew(b.rec, time.Unix(9, 0), time.Second, epoch.Progress{}), Version: "renewed"})
		w, at := first[WriteRecord](b.take())
		if at < 0 || w.Next.Leader != 1 || w.Base.Version != "renewed" {
			t.Fatalf("it writes %+v upon %q, want itself upon the heartbeat", w.Next, w.Base.Version)
		}
		b.core.WriteFailed(2*time.Second, epoch.ErrConflict)
		b.take()
	})
	t.Run("another successor", func(t *testing.T) {
		n, err := epoch.Elect(b.rec, epoch.Election{Reason: epoch.ReasonProcessDied, Live: []epoch.ReplicaID{2}, Change: "other"})
		b.core.ReadDone(2*time.Second, epoch.Snapshot{Record: b.must(n, err), Version: "other"})
		b.core.Tick(3 * time.Second)
		if w, at := first[WriteRecord](b.take()); at >= 0 || b.core.Role() != Follower {
			t.Errorf("it is %s and writes %+v; want it to follow replica 2", b.core.Role(), w.Next)
		}
	})
}

func TestWhoDoesNotSucceed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*epoch.Record)
		before func(*Core)
		epoch  epoch.LeaderEpoch
	}{
		{name: "one that is not in sync", change: func(r *epoch.Record) { r.ISR = []epoch.ReplicaID{0, 2} }},
		{name: "one that is to be removed", change: func(r *epoch.Record) { r.Replicas[1].Removing = true }},
		{name: "one that has said that it stops", change: func(r *epoch.Record) { r.Replicas[1].Stopping = true }},
		{name: "one whose volume is full", before: func(c *Core) { c.NoteTrouble(epoch.Trouble{Full: true}) }},
		{name: "one whose log is damaged", before: func(c *Core) { c.NoteTrouble(epoch.Trouble{Damaged: true}) }},
		{name: "anybody in a frozen record", change: func(r *epoch.Record) { r.Recovery = &epoch.Recovery{} }},
		{name: "anybody for the end of an earlier leader", epoch: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 1)
			r := b.rec.Clone()
			if tc.change != nil {
				tc.change(&r)
			}
			n, err := epoch.Elect(r, epoch.Election{Reason: epoch.ReasonSwitchover, Live: []epoch.ReplicaID{0}, Change: "again"})
			if r.Recovery == nil {
				r = b.must(n, err)
			}
			b.core.Observe(time.Second, epoch.Snapshot{Record: r, Version: "changed"}, FromWatch)
			if tc.before != nil {
				tc.before(b.core)
			}
			b.take()
			e := r.LeaderEpoch
			if tc.epoch != 0 {
				e = tc.epoch
			}
			b.core.LeaderEnded(time.Second, e)
			b.core.Tick(2 * time.Second)
			if w, at := first[WriteRecord](b.take()); at >= 0 {
				t.Errorf("it writes %+v", w.Next)
			}
		})
	}
	t.Run("one that is being stopped only says that it goes", func(t *testing.T) {
		b := newBench(t, 1)
		b.core.Stop(time.Second)
		b.core.LeaderEnded(time.Second, 1)
		if w, _ := first[WriteRecord](b.take()); w.Next.Leader != 0 {
			t.Errorf("it makes %d the leader", w.Next.Leader)
		}
	})
}

// A follower whose process has ended leaves the ISR at once; one that only closed its
// connection has a moment to come back.
func TestAFollowerWhoseProcessHasEndedIsNotWaitedFor(t *testing.T) {
	out := func(b *bench) bool {
		b.t.Helper()
		w, at := first[WriteRecord](b.take())
		return at >= 0 && !w.Next.InSync(1)
	}
	connected := func(t *testing.T) *bench {
		b := newBench(t, 0)
		b.fetchFrom(time.Second, 1)
		b.fetchFrom(time.Second, 2)
		b.take()
		return b
	}
	t.Run("closed", func(t *testing.T) {
		b := connected(t)
		b.core.Disconnected(time.Second, 1, 2)
		b.core.Tick(time.Second)
		if out(b) {
			t.Error("it was not given a moment to come back")
		}
	})
	t.Run("closed and refused", func(t *testing.T) {
		b := connected(t)
		b.core.Disconnected(time.Second, 1, 2)
		b.core.Refused(time.Second, 1, 2)
		if !out(b) {
			t.Error("it is waited for")
		}
	})
	t.Run("refused, back, and closed again", func(t *testing.T) {
		b := connected(t)
		b.core.Disconnected(time.Second, 1, 2)
		b.core.Refused(time.Second, 1, 2)
		b.take() // the change is under way, and fails
		b.fetchFrom(time.Second, 1)
		b.core.Disconnected(time.Second, 1, 2)
		b.core.WriteFailed(time.Second, epoch.ErrConflict)
		b.core.ReadDone(time.Second, epoch.Snapshot{Record: b.core.Record(), Version: "read"})
		b.core.Tick(time.Second)
		if out(b) {
			t.Error("what was found once is held against it for ever")
		}
	})
	t.Run("refused, and back on another connection", func(t *testing.T) {
		b := connected(t)
		b.core.Disconnected(time.Second, 1, 2)
		p, _ := b.core.Record().Replica(1)
		if _, err := b.core.Fetch(time.Second, ReplicaFetch{Replica: 1, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID,
			LeaderEpoch: 1, Offset: b.log.EndOffset(), LastEpoch: b.log.cache.Latest(), Connection: 9}); err != nil {
			t.Fatal(err)
		}
		b.core.Refused(time.Second, 1, 2)
		if out(b) {
			t.Error("what was found of an old connection was held against a new one")
		}
	})
}
