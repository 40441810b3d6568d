package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// onSmallDisks gives every replica a disk of its own of so many MiB.
func (c *cluster) onSmallDisks(mib int) {
	c.t.Helper()
	if os.Getuid() != 0 {
		c.t.Skip("only root can mount a small disk")
	}
	for _, m := range c.members {
		dir := m.cfg.DataDir
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
			c.t.Skip("no small disk can be mounted: ", err)
		}
		c.t.Cleanup(func() {
			if err := m.cancelled(); err != nil {
				c.t.Error(err)
			}
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				c.t.Error(err)
			}
		})
	}
}

// Real disks, and a real client: what is acknowledged before the disks are full is there
// afterwards, elections go on when somebody else has filled them to the last byte, and
// writes go on once they are larger.
func TestFullDisksRefuseWritesAndLoseNothing(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.onSmallDisks(16)
	c.start(0, 1, 2)
	first := c.awaitInSync()
	client := c.producer()
	filler := strings.Repeat("x", 500<<10)
	var acked []string
	for {
		value := fmt.Sprintf("%d %s", len(acked), filler)
		record := kgo.StringRecord(value)
		promised := make(chan error, 1)
		client.Produce(t.Context(), record, func(_ *kgo.Record, err error) { promised <- err })
		full := func(r epoch.Record) bool {
			for _, p := range r.Progress.Replicas {
				if p.ID == r.Leader && p.Full {
					return true
				}
			}
			return false
		}
		if err := awaitEither(promised, func() bool { return full(c.record()) }); err == errFull {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		acked = append(acked, value)
	}
	client.Close()
	if len(acked) < 10 {
		t.Fatalf("full after %d records", len(acked))
	}
	for _, m := range c.members { // somebody else takes what was left
		f, err := os.Create(filepath.Join(m.cfg.DataDir, "others"))
		for block := make([]byte, 64<<10); err == nil; {
			_, err = f.Write(block)
		}
		_ = f.Close()
	}
	c.change(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Elect(r, epoch.Election{Reason: epoch.ReasonSwitchover, Live: others(r), Change: newChangeID(), Now: time.Now()})
	})
	c.await("another leader", func(r epoch.Record) bool {
		return r.LeaderEpoch > first.LeaderEpoch && r.Progress != nil && r.Progress.TookOver == r.LeaderEpoch
	})
	for i, got := range c.consume(c.producer(), len(acked)) {
		if got != acked[i] {
			t.Fatalf("record %d is not what was acknowledged", i)
		}
	}
	for _, m := range c.members {
		if err := syscall.Mount("tmpfs", m.cfg.DataDir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	}
	c.produce(c.producer(), "there is space again")
	c.awaitInSync()
}

var errFull = fmt.Errorf("the leader says that its volume is full")

// awaitEither waits for a promise, or for the condition.
func awaitEither(promised <-chan error, ok func() bool) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-promised:
			return err
		case <-ticker.C:
			if ok() {
				return errFull
			}
		}
	}
}

func others(r epoch.Record) []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	for _, id := range r.ISR {
		if id != r.Leader {
			ids = append(ids, id)
		}
	}
	return ids
}
