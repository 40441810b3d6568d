package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// process is one process of a replica: first a node.Starting, then a node.Node. A
// zombie has lost its volume to a newer process of the same id, and goes on with what
// it remembers.
type process struct {
	w        *world
	host     *host
	id       epoch.ReplicaID
	name     string
	startID  epoch.StartID
	pod      int
	starting *node.Starting
	node     *node.Node
	dead     bool
	zombie   bool
	stopping bool
	waiting  bool // for a refused registration to be tried again
	paused   bool // stopped, or stuck in a write: it does nothing, and nothing reaches it
	strayed  bool // it has acted on a record of lost ground, or fetched from one that had
	every    bool // it syncs every batch

	rate    float64       // of its clock, against the world's
	offset  time.Duration // of its clock
	watched int           // how far it has seen the record's history

	following  epoch.ReplicaID
	fetching   bool
	awaiting   bool // a fetch is outstanding
	asked      core.FetchRequest
	connection uint64

	flush func() error // under way

	mirror   *mirror
	ledEpoch epoch.LeaderEpoch
	ledHW    epoch.Offset
	// Of its own clock: since when there is a newer leader epoch than the one that it
	// leads, 0 if there is none, and when it was last fetched from.
	replaced, fetched time.Duration
	replacedIn        epoch.LeaderEpoch
	shown             string // in the trace
}

func (p *process) String() string {
	switch {
	case p.zombie:
		return p.name + "(zombie)"
	case p.node == nil:
		return p.name + "(starting)"
	}
	return p.name
}

func (p *process) clock() time.Duration {
	return time.Duration(float64(p.w.now)*p.rate) + p.offset
}

var epochBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// settings are the same for all processes of a run.
func (w *world) settings() node.Settings {
	s := node.DefaultSettings()
	s.SegmentBytes, s.FlushEveryBatch, s.LagTimeMax, s.LeaseDuration = w.cfg.SegmentBytes, w.cfg.EveryBatch, w.cfg.LagTime, w.cfg.Lease
	if w.cfg.Faults.Retain {
		s.RetentionBytes = 500
	}
	return s
}

// start starts a process on a host. It may fail at once: the volume is what it is.
func (w *world) start(h *host) {
	w.counters.starts++
	p := &process{w: w, host: h, id: h.id, name: fmt.Sprintf("%d#%d", h.id, w.counters.starts), pod: h.pod, startID: epoch.StartID(fmt.Sprint("s", w.counters.starts)), rate: 1, mirror: &mirror{}, every: w.cfg.EveryBatch, strayed: h.strayed}
	if !w.healing && w.chance(30) {
		p.rate = 0.5 + w.rng.Float64()
	}
	foreign := w.foreign(h)
	starting, err := node.Open(node.Config{
		NoSpaceMargin: true, // the disk itself is to say when it is full
		Volume: volume.Config{Dir: "/v", Topic: "t", TopicID: topicID, ReplicaID: h.id, BootID: fmt.Sprint("boot", h.boot), PodUID: fmt.Sprint("pod", h.pod),
			FS: h.disk, Memory: h.memory, NewUUID: w.newUUID, Patiently: func(work func(), _ time.Duration) { work() }},
		StartID: p.startID, Address: epoch.Address{Host: p.name, ClientPort: 1, ReplicationPort: 2},
		RestartCount: int32(w.counters.starts), Settings: w.settings(), Now: p.clock,
		Wall: func() time.Time { return epochBegin.Add(p.clock()) }, NewChangeID: w.newChangeID,
	})
	if err != nil {
		w.say("a process of %d does not start: %v", h.id, err)
		w.oracle.mayRefuseToStart(h, err)
		return
	}
	if foreign {
		w.fail("volume", "a process of replica %d starts on another's volume", h.id)
	}
	p.starting = starting
	w.say("%s opens its volume: log %d..%d, cache %s, recovery %+v", p.name, starting.Log().StartOffset(), starting.Log().EndOffset(), starting.Log().EpochCache(), starting.Recovery())
	h.process = p
	w.procs = append(w.procs, p)
	w.looking = true
	p.mirror.readAll(starting.Log())
	w.looking = false
	w.oracle.opened(h, p)
	w.store.read(p)
}

// answered implements caller: the record's answers to the registration, and later to
// the core.
func (p *process) answered(c *call, s epoch.Snapshot, err error) {
	if p.dead {
		return
	}
	if p.node == nil {
		p.register(c, s, err)
		return
	}
	switch {
	case c.next != nil && err != nil:
		p.node.WriteFailed(err)
	case c.next != nil:
		p.node.Written(s)
	case err != nil:
		p.node.ReadFailed(err)
	default:
		p.node.ReadDone(s)
	}
	p.w.after(p)
}

// register takes the next step of the registration.
func (p *process) register(c *call, s epoch.Snapshot, err error) {
	w := p.w
	recovering := c.next != nil && c.next.Recovery != nil
	switch {
	case err != nil, recovering:
		w.store.read(p)
		return
	case c.next != nil:
		p.serve(s)
		return
	}
	mark, err := p.starting.Compare(s)
	if mark != nil {
		w.say("%s: %v", p, err)
		w.store.write(p, s, *mark)
		return
	}
	if err != nil {
		p.waiting = true
		return
	}
	if p.pod != p.host.pod || p.zombie {
		w.say("%s ends: its pod was replaced", p)
		w.kill(p)
		return
	}
	next, err := p.starting.Begin(s)
	w.looking = true
	p.mirror.readAll(p.starting.Log()) // it may have left a history that was set aside
	w.looking = false
	switch {
	case errors.Is(err, epoch.ErrNoChange):
		p.serve(s)
	case errors.As(err, new(*epoch.Refusal)):
		p.waiting = true
	case err != nil:
		w.say("%s does not register: %v", p, err)
		if s.Record.Recovery != nil {
			p.waiting = true
			return
		}
		w.kill(p)
	default:
		w.store.write(p, s, next)
	}
}

// serve makes it a registered process.
func (p *process) serve(s epoch.Snapshot) {
	w := p.w
	mine, ok := s.Record.Replica(p.id)
	if !ok {
		p.waiting = true
		return
	}
	p.name = fmt.Sprintf("%d.%d", p.id, mine.Session)
	w.say("%s is registered with directory id %x", p.name, mine.DirectoryID[:2])
	p.node = p.starting.Serve(s, node.Ports{
		Records: records{p}, Fetcher: fetcher{p}, Flush: func(work func() error) { p.flush = work },
		Effect: p.effect, Regressed: func(epoch.Record, epoch.Record) { w.oracle.regressed(p) },
	})
	p.starting = nil
	p.watched = max(0, len(w.store.versions)-1-w.rng.IntN(3))
	w.oracle.registered(p)
	p.node.Start()
	w.after(p)
}

// effect watches what the core does.
func (p *process) effect(e core.Effect) {
	switch e := e.(type) {
	case core.Truncate:
		p.w.say("  %s truncates to %d", p, e.To)
		if e.BelowHighWatermark {
			p.w.oracle.truncatedBelowHW(p, e.To)
		}
	case core.TruncateFully:
		p.w.say("  %s empties its log and begins at %d", p, e.StartAt)
	case core.AssignEpoch:
		p.w.say("  %s begins epoch %d", p, e.Epoch)
	case core.Exit:
		p.w.say("  %s ends: %s", p, e.Reason)
	}
}

// records and fetcher are the node's ports.
type records struct{ p *process }

func (r records) Write(base epoch.Snapshot, next epoch.Record) { r.p.w.store.write(r.p, base, next) }
func (r records) Read()                                        { r.p.w.store.read(r.p) }

type fetcher struct{ p *process }

func (f fetcher) Follow(leader epoch.ReplicaID, _ epoch.Address, _ epoch.LeaderEpoch) {
	f.Stop()
	f.p.following, f.p.fetching = leader, true
	f.p.connect()
}

func (f fetcher) Stop() {
	if f.p.fetching {
		f.p.disconnect()
	}
	f.p.fetching = false
}

func (fetcher) Wake()                        {}
func (fetcher) Backoff()                     {}
func (fetcher) Configure(time.Duration, int) {}

func (p *process) connect() {
	p.w.counters.connections++
	p.connection, p.awaiting = uint64(p.w.counters.connections), false
}

// disconnect lets the leader know, some time.
func (p *process) disconnect() {
	p.w.send(&closePacket{from: p.id, to: p.following, connection: p.connection})
}

// reconnect gives up what is outstanding.
func (p *process) reconnect() {
	p.disconnect()
	if p.awaiting {
		if p.refused() {
			p.w.say("%s is refused where replica %d led", p, p.following)
			p.node.LeaderEnded(p.asked.LeaderEpoch)
		}
		p.node.FetchFailed(p.asked, false)
	}
	p.connect()
}

// refused reports that nobody listens where this process fetched from. A firewall may say so
// while the leader lives.
func (p *process) refused() bool {
	for _, q := range p.w.procs {
		if q.id == p.following && !q.dead {
			return !p.w.healing && p.w.chance(5)
		}
	}
	return p.w.chance(50)
}

// ask sends the next fetch, or reads the record again for a registration that waits.
// A fetch that is outstanding is given up now and then.
func (p *process) ask() {
	if p.waiting {
		p.waiting = false
		p.w.store.read(p)
	}
	if p.node == nil || !p.fetching {
		return
	}
	if p.awaiting {
		if p.w.chance(80) {
			return
		}
		p.reconnect()
		if p.dead || !p.fetching {
			return
		}
	}
	q, ok := p.node.NextFetch()
	if !ok {
		return
	}
	me := p.node.Identity()
	p.asked, p.awaiting = q, true
	p.w.say("%s asks %d: %s", p, p.following, fetchName(q))
	p.w.send(&fetchPacket{from: p, to: p.following, query: q, fetch: core.ReplicaFetch{
		Replica: p.id, Session: me.Session, StartID: me.StartID, DirectoryID: me.DirectoryID, LeaderEpoch: q.LeaderEpoch, Offset: q.Offset,
		LastEpoch: q.LastEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: p.connection}})
}

// kill ends a process without a word.
func (w *world) kill(p *process) {
	if p.dead {
		return
	}
	w.say("%s dies", p)
	p.dead = true
	w.procs = slices.DeleteFunc(w.procs, func(q *process) bool { return q == p })
	w.store.drop(p)
	if p.fetching {
		p.disconnect()
	}
	if p.host.process == p {
		p.host.process = nil
		p.host.content = p.mirror
		p.host.strayed = p.strayed
		p.host.led = p.node != nil && p.node.Core().Role() == core.Leader
	}
	if p.zombie {
		w.oracle.missing(p.mirror, p.host)
	}
}

// after looks at a process that something was done with.
func (w *world) after(p *process) {
	if p.dead || p.node == nil {
		return
	}
	if err := p.node.Err(); err != nil {
		w.say("%s must end: %v", p, err)
		_ = p.node.End() // Err said it
		w.look(p)
		w.oracle.deletedBy(p)
		w.kill(p)
		p.host.damaged = p.host.damaged || p.host.faulty && p.host.process == nil // the promise may have ended
		return
	}
	p.stray()
	w.look(p)
	w.oracle.process(p)
}

// stray notes whether the process has acted on a record of lost ground, or fetched from
// one that had, until what it has fetched since a recovery shows that it is back.
func (p *process) stray() {
	switch line := &p.w.store.line; {
	case !line.has(p.node.Core().Record()):
		p.strayed = true
	case !line.lost && p.node.Log().EpochCache().Latest() >= line.resumed:
		p.strayed = false
	}
}

// look brings the mirror in line with the log.
func (w *world) look(p *process) {
	w.looking = true
	p.mirror.update(p.node.Log(), w)
	w.looking = false
}
