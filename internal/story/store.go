package story

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

var errTimeout = errors.New("no answer in time")

// writeRecord takes a write of the record to the store: at once, or when the story
// says so.
func (c *cluster) writeRecord(p *replica, e core.WriteRecord) {
	w := write{effect: e}
	switch {
	case p.holding:
		p.writes = append(p.writes, w)
		c.note(Event{Kind: Told, Replica: p.name}, "%s writes %s (held)", p.name, c.wish(e))
	case c.isCut(p.name, api):
		p.core.WriteFailed(c.now, errTimeout)
	default:
		c.land(&w)
		c.tell(p, w)
	}
}

// wish says what a write would change.
func (c *cluster) wish(e core.WriteRecord) string {
	old, n := e.Base.Record, e.Next
	switch {
	case old.LeaderEpoch != n.LeaderEpoch:
		return fmt.Sprintf("leader %s epoch %d", nameOf(n.Leader), n.LeaderEpoch)
	case fmt.Sprint(old.ISR) != fmt.Sprint(n.ISR):
		return "ISR " + c.names(n.ISR)
	case n.Recovery != nil && old.Recovery == nil:
		return "that recovery is needed"
	case old.PartitionEpoch != n.PartitionEpoch:
		return "that it stops"
	}
	return "a heartbeat"
}

// land lets a write reach the store.
func (c *cluster) land(w *write) {
	w.landed = true
	if w.err = c.swap(w.effect.Base, w.effect.Next); w.err == nil {
		w.result = c.snapshot()
	}
}

// tell gives a process the answer to its write.
func (c *cluster) tell(p *replica, w write) {
	if w.err != nil {
		p.core.WriteFailed(c.now, w.err)
		return
	}
	p.core.Written(c.now, w.result)
}

// readRecord is a quorum read.
func (c *cluster) readRecord(p *replica) {
	if c.isCut(p.name, api) {
		p.core.ReadFailed(c.now, errTimeout)
		return
	}
	p.core.ReadDone(c.now, c.snapshot())
}

// writeStep handles the writes of a replica that are on their way.
func (c *cluster) writeStep(p *replica, what string) error {
	switch what {
	case "hold":
		p.holding = true
		return nil
	case "pass":
		p.holding = false
		return nil
	}
	i := slices.IndexFunc(p.writes, func(w write) bool {
		switch what {
		case "land":
			return !w.landed
		case "answer":
			return w.landed
		}
		return !w.timedOut
	})
	if i < 0 {
		return fmt.Errorf("no write of %s is there to %s", p.name, what)
	}
	w := p.writes[i]
	switch what {
	case "land":
		c.landHeld(p, &w)
	case "answer":
		c.tell(p, w)
		w.timedOut = true
	case "timeout":
		w.timedOut = true
		p.core.WriteFailed(c.now, errTimeout)
	}
	p.writes[i] = w
	if w.landed && (w.timedOut || !p.up()) {
		p.writes = slices.Delete(p.writes, i, i+1)
	}
	c.settle(p)
	return nil
}

func (c *cluster) landHeld(p *replica, w *write) {
	c.land(w)
	if w.err != nil {
		c.note(Event{Kind: Refused, Replica: p.name}, "the write of %s is refused: %v", p.name, w.err)
		return
	}
	c.note(Event{Kind: Told, Replica: p.name}, "stored: %s", c.wish(w.effect))
}

// recordStep saves and restores the record, as a backup of etcd would, or lets the
// operator read it.
func (c *cluster) recordStep(what string) error {
	switch what {
	case "save":
		r := c.record.Clone()
		c.backup = &r
	case "restore":
		if c.backup == nil {
			return errors.New("nothing was saved: record save")
		}
		c.record = c.backup.Clone()
		c.version++
		c.note(Event{Kind: Alarm}, "the record is an older one: leader %s epoch %d ISR %s", nameOf(c.record.Leader), c.record.LeaderEpoch, c.names(c.record.ISR))
	case "read":
		s := c.snapshot()
		c.read = &s
	}
	return nil
}

// elect holds an election that p is to win. The operator decides by the record of its
// last "record read" if stale is set.
func (c *cluster) elect(p *replica, unclean, stale bool) error {
	base := c.snapshot()
	if stale {
		if c.read == nil {
			return errors.New("the operator has read nothing: record read")
		}
		base = *c.read
	}
	r, err := c.winner(base.Record, p, unclean)
	if err != nil {
		return err
	}
	if err := c.swap(base, r); err != nil {
		return err
	}
	c.see()
	return nil
}

// winner is the record with p as its leader, by the rules.
func (c *cluster) winner(r epoch.Record, p *replica, unclean bool) (epoch.Record, error) {
	live := []epoch.ReplicaID{p.id}
	if unclean {
		return epoch.ElectUnclean(r, epoch.UncleanRequest{LeaderEpoch: r.LeaderEpoch, Replica: p.id, Live: live, Change: c.changeID()})
	}
	e := epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: live, Change: c.changeID()}
	if old := c.addressed(r.Leader, r.LeaderSession); old != nil && !old.up() {
		e.Reason, e.LeaderEnded = epoch.ReasonProcessDied, true
	}
	return epoch.Elect(r, e)
}

// change applies a rule of the record as the operator would.
func (c *cluster) change(r epoch.Record, err error) error {
	if errors.Is(err, epoch.ErrNoChange) {
		c.print("nothing to change")
		return nil
	}
	if err != nil {
		return err
	}
	c.commit(r)
	c.see()
	return nil
}

// live lists the replicas that are up, as an operator knows them.
func (c *cluster) live() []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	for i, p := range c.replicas {
		if p.up() && p.id == epoch.ReplicaID(i) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// assign makes one step towards an assignment. Replicas that never were get a volume.
func (c *cluster) assign(names string, minISR int) error {
	var target []epoch.ReplicaID
	for _, n := range names {
		id := epoch.ReplicaID(n - 'A')
		for int(id) >= len(c.replicas) {
			c.replicas = append(c.replicas, newReplica(epoch.ReplicaID(len(c.replicas)), c.everyBatch))
		}
		target = append(target, id)
	}
	return c.change(epoch.Assign(c.record, epoch.Assignment{Target: target, WantedMinISR: minISR, Live: c.live(), Change: c.changeID()}))
}
