package replica

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// askDelete sends DeleteRecords to one replica.
func (c *cluster) askDelete(id int, offset int64, timeout time.Duration) (low int64, code kafka.Code) {
	c.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.members[id].cfg.ClientListen))
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "orders", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: offset}}}}
	resp, err := req.RequestWith(c.t.Context(), client.SeedBrokers()[0])
	if err != nil {
		c.t.Fatal(err)
	}
	e := resp.Topics[0].Partitions[0]
	return e.LowWatermark, kafka.Code(e.ErrorCode)
}

// Records that a client deleted must not come back by an election: the answer waits for
// every replica at work.
func TestDeleteRecordsIsAnsweredWhenEveryReplicaHasFollowed(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	leader := int(c.awaitInSync().Leader)
	client := c.producer()
	c.produce(client, "one", "two", "three", "four")
	for _, tc := range []struct {
		name    string
		offset  int64
		wantLow int64
		want    kafka.Code
	}{
		{"in the middle", 2, 2, kafka.CodeNone},
		{"below the start", 1, 2, kafka.CodeNone},
		{"above the high watermark", 5, -1, kafka.CodeOffsetOutOfRange},
		{"all that is committed", -1, 4, kafka.CodeNone},
	} {
		if low, code := c.askDelete(leader, tc.offset, 20*time.Second); low != tc.wantLow || code != tc.want {
			t.Errorf("%s (%d): got %d, %s; want %d, %s", tc.name, tc.offset, low, code, tc.wantLow, tc.want)
		}
	}
	if _, code := c.askDelete((leader+1)%3, -1, time.Second); code != kafka.CodeNotLeaderOrFollower {
		t.Errorf("a follower answers %s, want NOT_LEADER_OR_FOLLOWER", code)
	}
	c.produce(client, "five")
	c.stop(leader) // it hands over: the next leader has the same start
	c.await("another leader", func(r epoch.Record) bool { return r.Leader != epoch.NoReplica && int(r.Leader) != leader })
	if got := c.consume(c.producer(), 1); got[0] != "five" {
		t.Errorf("after the election the first record is %q, want five: what was deleted must not come back", got[0])
	}
	c.start(leader)
	c.awaitInSync()
}

// A replica that is down is not waited for (KIP-107), and takes over the start when it
// is back.
func TestDeleteRecordsDoesNotWaitForAReplicaThatIsDown(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.start(0, 1, 2)
	leader := int(c.awaitInSync().Leader)
	client := c.producer()
	c.produce(client, "one", "two")
	down := (leader + 1) % 3
	c.stop(down)
	if low, code := c.askDelete(leader, 2, 20*time.Second); low != 2 || code != kafka.CodeNone {
		t.Errorf("got %d, %s; want 2, NONE", low, code)
	}
	c.start(down)
	c.awaitInSync()
	if low, code := c.askDelete(leader, 2, 20*time.Second); low != 2 || code != kafka.CodeNone {
		t.Errorf("with all replicas back: got %d, %s; want 2, NONE", low, code)
	}
}
