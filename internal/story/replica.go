package story

import (
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// replica is what survives a process, and the process.
type replica struct {
	name string
	id   epoch.ReplicaID
	// on the volume
	log        *log
	checkpoint epoch.Offset // the checkpointed high watermark
	directory  epoch.UUID
	volume     epoch.UUID
	persisted  epoch.Record
	saved      *log // a snapshot of the volume
	// the process
	core       *core.Core // nil while it is down
	me         core.Identity
	starts     int
	connection uint64
	waiting    map[uint64]string // values of produce requests that wait, by token
	held       []answer          // on their way to this replica
	sent       []question        // on their way from this replica
	writes     []write           // on their way to the store, or their answers back
	holding    bool              // writes of the record wait for the story
	ledHW      epoch.Offset
	ledEpoch   epoch.LeaderEpoch
}

// question is a fetch on its way.
type question struct {
	request core.FetchRequest
	fetch   core.ReplicaFetch
	leader  epoch.ReplicaID
	session epoch.Session
}

// answer is a fetch response on its way.
type answer struct {
	request  core.FetchRequest
	response core.FetchResponse
	from     string
}

// write is a swap of the record on its way: the store may not have decided yet.
type write struct {
	effect   core.WriteRecord
	landed   bool
	timedOut bool // its writer has given up, or has its answer
	err      error
	result   epoch.Snapshot
}

func newReplica(id epoch.ReplicaID, lazy bool) *replica {
	return &replica{name: nameOf(id), id: id, log: &log{lazy: lazy}, directory: epoch.UUID{byte(id + 1), 1}, volume: epoch.UUID{byte(id + 1)},
		waiting: map[uint64]string{}, ledEpoch: epoch.NoEpoch}
}

func nameOf(id epoch.ReplicaID) string {
	if id == epoch.NoReplica {
		return "none"
	}
	return string(rune('A' + id))
}

// up reports that a process runs.
func (p *replica) up() bool { return p.core != nil }

// leads reports that a process runs and leads.
func (p *replica) leads() bool { return p.core != nil && p.core.Role() == core.Leader }

// breakPromise gives the volume a new directory id: what was acknowledged under the old
// one may be gone.
func (p *replica) breakPromise() { p.directory[1]++ }

// zombie is the process that goes on when another one of the same replica starts
// elsewhere: it keeps what it had.
func (p *replica) zombie() *replica {
	z := *p
	z.name = string(rune('a' + p.id))
	z.waiting = map[uint64]string{}
	z.sent, z.held, z.writes = nil, nil, nil
	p.core = nil
	p.log = p.log.copy()
	return &z
}

// inheritCuts leaves the cuts of a node to the process that lives on there: the new one
// is elsewhere.
func (c *cluster) inheritCuts(from, to string) {
	for pair := range c.cuts {
		moved := pair
		for i := range moved {
			if moved[i] == from {
				moved[i] = to
			}
		}
		if moved != pair {
			delete(c.cuts, pair)
			c.cuts[moved] = true
		}
	}
}

// start registers a new process, which then observes the record.
func (c *cluster) start(p *replica) error {
	if p.up() {
		return fmt.Errorf("%s is up already", p.name)
	}
	if c.isCut(p.name, api) {
		return fmt.Errorf("%s cannot reach the record, and does not start", p.name)
	}
	p.starts++
	g := epoch.Registration{ID: p.id, DirectoryID: p.directory, VolumeID: p.volume, StartID: epoch.StartID(fmt.Sprint(p.name, p.starts)),
		Change: c.changeID(), LastEpoch: p.log.cache.Latest(), LogEndOffset: p.log.EndOffset()}
	r, err := epoch.Register(c.record, g)
	if err != nil {
		return c.report(p, err)
	}
	struck := c.record.InSync(p.id) && !r.InSync(p.id)
	c.event(Event{Kind: Started, Replica: p.name})
	c.commit(r)
	if struck {
		c.note(Event{Kind: Struck, Replica: p.name}, "%s comes back under another directory id and is struck from the ISR", p.name)
	}
	mine, _ := r.Replica(p.id)
	p.me = core.Identity{ID: p.id, Session: mine.Session, StartID: g.StartID, DirectoryID: p.directory}
	p.core = core.New(p.me, core.Options{FlushEveryBatch: c.everyBatch}, p.log, p.checkpoint, c.changeID)
	c.reconnect(p)
	p.core.Observe(c.now, c.snapshot(), core.FromWrite)
	c.settle(p)
	c.see()
	return nil
}

// report is what a starting process does when the record waits for recovery: it adds
// what its volume remembers, and does not start.
func (c *cluster) report(p *replica, refused error) error {
	if !epoch.RefusedBecause(refused, epoch.RefusedRecovery) {
		return refused
	}
	known := p.persisted
	if r, err := epoch.MarkRecovery(c.record, epoch.RecoveryOf(p.id, &known, 0)); err == nil {
		c.commit(r)
		c.note(Event{Kind: Told, Replica: p.name}, "%s reports what it knows: partition epoch %d", p.name, known.PartitionEpoch)
	}
	return refused
}

// stop ends a process; who had a connection to it sees that close.
func (c *cluster) stop(p *replica) {
	p.core = nil
	p.held, p.writes, p.holding = nil, undecided(p.writes), false
	clear(p.waiting)
	c.disconnect(p, "")
}

// undecided keeps the writes that may still reach the store.
func undecided(ws []write) []write {
	var keep []write
	for _, w := range ws {
		if !w.landed {
			keep = append(keep, w)
		}
	}
	return keep
}

// disconnect closes the fetch connection of p to the replica named, or to all.
func (c *cluster) disconnect(p *replica, from string) {
	for _, q := range c.replicas {
		if q.up() && q != p && (from == "" || q.name == from) {
			q.core.Disconnected(c.now, p.id, p.connection)
		}
	}
	c.reconnect(p)
}

func (c *cluster) reconnect(p *replica) {
	c.connections++
	p.connection = c.connections
}
