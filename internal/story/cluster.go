package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// cluster is a partition in one goroutine: its replicas, its record, and what is on
// the way between them.
type cluster struct {
	record     epoch.Record
	version    int
	backup     *epoch.Record // of the record, by "record save"
	read       *epoch.Snapshot
	replicas   []*replica
	cuts       map[[2]string]bool
	everyBatch bool
	now        time.Duration

	spent               int
	tokens, connections uint64
	changes             int
	acknowledged        []acknowledged

	out    strings.Builder
	events []Event
}

// acknowledged is a record that was acknowledged with acks=all: it must stay.
type acknowledged struct {
	offset epoch.Offset
	value  string
}

// The ends of a cut that are no replica.
const (
	api   = "api"   // reads, writes and the watch of the record
	watch = "watch" // only the watch
)

// shape is what the command "cluster" says.
type shape struct {
	replicas, minISR int
	firstEpoch       epoch.LeaderEpoch
	everyBatch       bool
}

func newCluster(s shape) *cluster {
	c := &cluster{cuts: map[[2]string]bool{}, everyBatch: s.everyBatch}
	var ids []epoch.ReplicaID
	for i := range s.replicas {
		ids = append(ids, epoch.ReplicaID(i))
		c.replicas = append(c.replicas, newReplica(epoch.ReplicaID(i), s.everyBatch))
	}
	c.record = epoch.New(epoch.UUID{9}, ids, s.minISR, c.changeID())
	// The first election gives epoch 0, as the tables of the protocol notes count,
	// where shipping records begin with 1.
	c.record.LeaderEpoch = s.firstEpoch - 1
	c.version = 1
	return c
}

// maxWork bounds a story: records written, and tenths of a second that pass for each
// replica that fetches.
const maxWork = 20_000

// spend counts work, and refuses a story that would take for ever.
func (c *cluster) spend(work int) error {
	if c.spent += work; c.spent > maxWork {
		return misused("the story is too long: more than %d records and fetches", maxWork)
	}
	return nil
}

func (c *cluster) changeID() epoch.ChangeID {
	c.changes++
	return epoch.ChangeID(fmt.Sprint("c", c.changes))
}

func (c *cluster) snapshot() epoch.Snapshot {
	return epoch.Snapshot{Record: c.record.Clone(), Version: fmt.Sprint(c.version)}
}

// commit stores a changed record; who is up hears of it by see.
func (c *cluster) commit(r epoch.Record) {
	old := c.record
	c.record = r
	c.version++
	if r.LeaderEpoch != old.LeaderEpoch && r.Leader != epoch.NoReplica {
		c.event(Event{Kind: Elected, Replica: nameOf(r.Leader), Epoch: r.LeaderEpoch})
	}
}

// swap is the store's compare-and-swap.
func (c *cluster) swap(base epoch.Snapshot, next epoch.Record) error {
	if base.Version != fmt.Sprint(c.version) {
		return epoch.ErrConflict
	}
	c.commit(next)
	return nil
}

// replica finds a replica, or a process that goes on as a zombie, by name.
func (c *cluster) replica(name string) *replica {
	for _, p := range c.replicas {
		if p.name == name {
			return p
		}
	}
	return nil
}

// addressed is the process that a fetch is sent to: that of the session which the
// sender takes for the leader, or whoever has its address now.
func (c *cluster) addressed(id epoch.ReplicaID, session epoch.Session) *replica {
	var found *replica
	for _, p := range c.replicas {
		if p.id != id {
			continue
		}
		if found == nil || p.up() && p.me.Session == session {
			found = p
		}
	}
	return found
}

func (c *cluster) isCut(a, b string) bool { return c.cuts[[2]string{a, b}] || c.cuts[[2]string{b, a}] }

// see lets everybody who is up and can watch observe the record, and what they make of
// it.
func (c *cluster) see() {
	for range maxRounds {
		seen := c.version
		for _, p := range c.replicas {
			c.observe(p)
		}
		if c.version == seen {
			return
		}
	}
}

func (c *cluster) print(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

// note prints a line and keeps the event that it tells of.
func (c *cluster) note(e Event, format string, args ...any) {
	e.Text = fmt.Sprintf(format, args...)
	c.print("%s", e.Text)
	c.event(e)
}

func (c *cluster) event(e Event) { c.events = append(c.events, e) }

func (c *cluster) names(ids []epoch.ReplicaID) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(nameOf(id))
	}
	return "{" + b.String() + "}"
}
