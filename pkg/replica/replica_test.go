package replica

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestRecordsReachEveryReplica(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	c.awaitInSync()
	client := c.producer()
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("record", i))
	}
	c.produce(client, want...)
	if got := c.consume(client, len(want)); !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	c.await("every replica holds and knows 20 committed records", func(r epoch.Record) bool {
		return r.Progress != nil && !slices.ContainsFunc(r.Progress.Replicas, func(p epoch.ReplicaProgress) bool { return p.LogEndOffset != 20 || p.HighWatermark != 20 })
	})
	var logs [][]byte
	for i, m := range c.members {
		c.stop(i)
		b, err := os.ReadFile(filepath.Join(m.cfg.DataDir, "orders-0", "00000000000000000000.log"))
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, b)
	}
	if !slices.Equal(logs[0], logs[1]) || !slices.Equal(logs[0], logs[2]) {
		t.Error("the replicas' logs differ")
	}
}

func TestStoppingTheLeaderHandsOverAndFailsNoRecord(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	c.awaitInSync()
	client := c.producer()
	var want []string
	for round := range 3 {
		before := c.awaitInSync()
		failed := make(chan error, 100)
		for i := range 50 {
			v := fmt.Sprintf("%d-%d", round, i)
			want = append(want, v)
			client.Produce(t.Context(), kgo.StringRecord(v), func(_ *kgo.Record, err error) { failed <- err })
		}
		c.stop(int(before.Leader))
		for range 50 {
			if err := <-failed; err != nil {
				t.Errorf("a record failed while the leader handed over: %v", err)
			}
		}
		after := c.record()
		if after.Leader == before.Leader || after.ElectionReason != epoch.ReasonSwitchover {
			t.Errorf("leader %d because of %s, want another than %d because of Switchover", after.Leader, after.ElectionReason, before.Leader)
		}
		if after.InSync(before.Leader) {
			t.Errorf("the stopped replica %d is still in the ISR %v: acks=all would wait for it", before.Leader, after.ISR)
		}
		c.start(int(before.Leader))
	}
	if got := c.consume(client, len(want)); !slices.Equal(got, want) {
		t.Errorf("read %d records, want %d in order", len(got), len(want))
	}
}

// Rule 8: an outage of the record's store stops nothing that works.
func TestRecordStoreAwayForLongerThanTheLease(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	before := c.awaitInSync()
	client := c.producer()
	c.produce(client, "before")
	c.records.set(func(s *trouble) { s.fail = errUnreachable })
	end := time.Now().Add(3 * c.members[0].cfg.Settings.LeaseDuration)
	n := 1
	for ; time.Now().Before(end); n++ {
		c.produce(client, fmt.Sprint("during", n))
	}
	c.records.set(func(s *trouble) { s.fail = nil })
	c.produce(client, "after")
	if got := c.consume(client, n+1); got[0] != "before" || got[n] != "after" {
		t.Errorf("read %d records from %s to %s", len(got), got[0], got[n])
	}
	if after := c.record(); after.LeaderEpoch != before.LeaderEpoch {
		t.Errorf("leader epoch %d, was %d: there was no reason for an election", after.LeaderEpoch, before.LeaderEpoch)
	}
}

// Rule 4: the answer to a write of the ISR is lost, the write lands. The leader finds out
// and goes on.
func TestLostAnswerToAnISRChange(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	before := c.awaitInSync()
	client := c.producer()
	c.produce(client, "one")
	follower := (int(before.Leader) + 1) % 3
	c.records.set(func(s *trouble) { s.loseAnswer = true })
	c.stop(follower)
	c.await("the stopped follower to leave the ISR", func(r epoch.Record) bool { return !r.InSync(epoch.ReplicaID(follower)) })
	c.produce(client, "two")
	c.records.set(func(s *trouble) { s.loseAnswer = true })
	c.start(follower)
	c.awaitInSync()
	c.produce(client, "three")
	if got, want := c.consume(client, 3), []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// A machine crash takes the witness along: without another proof the replica begins
// anew under another directory id, out of the ISR until it has caught up.
func TestReplicaWithoutProofLeavesTheISRAndComesBack(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	before := c.awaitInSync()
	client := c.producer()
	c.produce(client, "one")
	follower := (int(before.Leader) + 1) % 3
	c.stop(follower)
	m := c.members[follower]
	for _, name := range []string{filepath.Join(m.cfg.DataDir, ".kafka_cleanshutdown")} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	m.cfg.BootID = "another boot"
	was, _ := c.record().Replica(epoch.ReplicaID(follower))
	c.start(follower)
	after := c.awaitInSync()
	is, _ := after.Replica(epoch.ReplicaID(follower))
	if is.DirectoryID == was.DirectoryID {
		t.Error("the directory id was kept without a proof")
	}
	if is.VolumeID != was.VolumeID {
		t.Error("the volume got another id")
	}
}

func TestReplicaWithACleanMarkKeepsItsDirectoryID(t *testing.T) {
	c := newTestCluster(t, 2, 1)
	c.start(0, 1)
	c.awaitInSync()
	was := c.record()
	c.stop(1)
	c.members[1].cfg.BootID = "another boot" // the witness says nothing any more
	c.start(1)
	is := c.awaitInSync()
	if was.Replicas[1].DirectoryID != is.Replicas[1].DirectoryID {
		t.Error("the directory id changed although the stop was orderly")
	}
}

// Rule 7: a record that goes back is marked and changed no more; what works goes on.
func TestRecordThatGoesBackIsMarkedForRecovery(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	first := c.awaitInSync()
	client := c.producer()
	c.produce(client, "one")
	old, err := c.file.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follower := (int(first.Leader) + 1) % 3
	c.stop(follower)
	now := c.await("the ISR to shrink", func(r epoch.Record) bool { return len(r.ISR) == 2 })
	current, err := c.file.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.file.Update(t.Context(), current, old.Record); err != nil { // as a restored backup
		t.Fatal(err)
	}
	marked := c.await("the record to be marked", func(r epoch.Record) bool { return r.Recovery != nil })
	if marked.Recovery.PartitionEpoch < now.PartitionEpoch {
		t.Errorf("marked with partition epoch %d, the highest known was %d", marked.Recovery.PartitionEpoch, now.PartitionEpoch)
	}
	c.produce(client, "two")
	if r := c.record(); r.PartitionEpoch != old.Record.PartitionEpoch {
		t.Errorf("the record was changed to partition epoch %d while it waits for recovery", r.PartitionEpoch)
	}
}

// A process that finds its replica id registered by another ends by itself.
func TestSupersededProcessEnds(t *testing.T) {
	c := newTestCluster(t, 2, 1)
	c.start(0) // it leads, and stays the leader: nobody here holds elections
	c.await("replica 0 to lead", func(r epoch.Record) bool { return r.Leader == 0 })
	c.start(1)
	c.awaitInSync()
	second := c.newMember(1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, second.cfg) }()
	defer func() {
		cancel()
		<-done
	}()
	err := <-c.members[1].done
	c.members[1].cancel = nil
	if err == nil || !strings.Contains(err.Error(), "only a new registration can count again") {
		t.Errorf("the first process ended with %v, want: only a new registration can count again", err)
	}
	c.awaitInSync()
}

// Clients ask any broker for a producer id, and librdkafka never asks another one.
func TestEveryReplicaGivesOutProducerIDsThatAreNeverGivenTwice(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	c.awaitInSync()
	seen := map[int64]bool{}
	ask := func(id int) {
		t.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(c.members[id].cfg.ClientListen))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for range 3 {
			resp, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(t.Context(), client.SeedBrokers()[0])
			if err != nil || resp.ErrorCode != 0 {
				t.Fatalf("replica %d: %v, error code %d", id, err, resp.ErrorCode)
			}
			if seen[resp.ProducerID] || resp.ProducerID < 0 {
				t.Errorf("replica %d gave out producer id %d, seen before: %t", id, resp.ProducerID, seen[resp.ProducerID])
			}
			seen[resp.ProducerID] = true
		}
	}
	for id := range 3 {
		ask(id)
	}
	c.stop(1)
	c.start(1)
	c.awaitInSync()
	ask(1)
}

// With its partition deleted, a replica may neither hand over nor read the record: it
// does not wait for either.
func TestStoppingWhileTheRecordIsClosedDoesNotWait(t *testing.T) {
	for name, err := range map[string]error{"deleted": epoch.ErrNotFound, "forbidden": epoch.ErrRejected} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 3, 2)
			for _, m := range c.members {
				m.cfg.StopTimeout = 10 * time.Minute // longer than the test may take
			}
			c.start(0, 1, 2)
			c.awaitInSync()
			c.records.set(func(s *trouble) { s.fail = err })
			for id := range c.members {
				c.stop(id)
			}
		})
	}
}

// Rule 7 to its end: every replica reports, the one that starts too; on request the
// newest record goes on, and nothing that was acknowledged is lost.
func TestRecoveryGoesOnFromTheNewestRecord(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	first := c.awaitInSync()
	client := c.producer()
	c.produce(client, "one")
	old, err := c.file.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	absent := (int(first.Leader) + 1) % 3
	c.stop(absent)
	newest := c.await("the ISR to shrink", func(r epoch.Record) bool { return len(r.ISR) == 2 })
	c.produce(client, "two")
	c.change(func(epoch.Record) (epoch.Record, error) { return old.Record, nil }) // as a restored backup
	c.await("two reports", func(r epoch.Record) bool { return r.Recovery != nil && len(r.Recovery.Reports) == 2 })
	c.start(absent)
	c.await("three reports", func(r epoch.Record) bool { return len(r.Awaited()) == 0 })
	c.change(func(r epoch.Record) (epoch.Record, error) { return epoch.AskReports(r, "round") })
	c.await("three reports in that round", func(r epoch.Record) bool { return len(r.Awaited()) == 0 })
	c.change(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Recover(r, epoch.RecoveryRequest{PartitionEpoch: old.Record.PartitionEpoch, Round: "round", Change: newChangeID()})
	})
	c.change(func(r epoch.Record) (epoch.Record, error) {
		if slices.Contains(r.ISR, epoch.ReplicaID(absent)) || r.Recovered.From != newest.LastChange() {
			t.Errorf("recovered with the ISR %v from %+v, want the newest record, %+v, without replica %d", r.ISR, r.Recovered.From, newest.LastChange(), absent)
		}
		return epoch.Elect(r, epoch.Election{Reason: epoch.ReasonProcessDied, Live: r.ISR, Change: newChangeID(), Now: time.Now()})
	})
	if r := c.awaitInSync(); r.LeaderEpoch <= newest.LeaderEpoch+epoch.RecoveryMargin {
		t.Errorf("leader epoch %d, want more than %d above %d", r.LeaderEpoch, epoch.RecoveryMargin, newest.LeaderEpoch)
	}
	c.produce(client, "three")
	if got, want := c.consume(client, 3), []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("the log holds %v, want %v", got, want)
	}
}
