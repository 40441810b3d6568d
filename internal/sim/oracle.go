package sim

import (
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// oracle knows what nobody in the simulation knows, and judges after every step. The
// names of the invariants are those of the protocol notes: I1 to I14; R and a number is
// a rule of DESIGN.md, J a class of Jepsen's.
type oracle struct {
	w         *world
	committed []commitment // by offset
	place     map[uint32]epoch.Offset
	acked     map[uint32]bool // with acks=all
	single    map[uint32]bool // of idempotent producers: may be in a log once
	lost      map[uint32]int  // disks that lost a record
	deleted   epoch.Offset    // below it, retention may have dropped records
	leaders   map[epoch.LeaderEpoch]*process
	latestBy  epoch.LeaderEpoch
	latestHW  epoch.Offset
	unclean   int // unclean elections so far
	forgiven  epoch.LeaderEpoch
	wished    map[epoch.ChangeID]epoch.LeaderEpoch // of unclean elections: the epoch to be ended
}

// commitment is a record that was below some leader's high watermark.
type commitment struct {
	entry
	by      epoch.LeaderEpoch
	minISR  int  // so many copies at least were there
	deleted bool // before anybody saw it, after an unclean election: it stands for nothing
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, place: map[uint32]epoch.Offset{}, acked: map[uint32]bool{}, single: map[uint32]bool{}, lost: map[uint32]int{},
		leaders: map[epoch.LeaderEpoch]*process{}, wished: map[epoch.ChangeID]epoch.LeaderEpoch{}}
}

// Failure is a broken invariant.
type Failure struct {
	// Invariant names it.
	Invariant string
	// What happened.
	What string
}

// Error implements error.
func (f *Failure) Error() string { return f.Invariant + ": " + f.What }

func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == nil {
		w.failure = &Failure{invariant, fmt.Sprintf(format, args...)}
		w.say("FAILED %s", w.failure)
	}
}

// mayRefuseToStart judges an error at a start: only trouble of the disk explains it.
func (o *oracle) mayRefuseToStart(h *host, err error) {
	if !h.faulty && !o.w.foreign(h) {
		o.w.fail("start", "replica %d does not start on a healthy disk: %v", h.id, err)
	}
}

// opened judges what recovery made of a log: nothing that was there may be gone.
func (o *oracle) opened(h *host, p *process) {
	if before := h.content; !h.faulty {
		for off := max(before.start, p.mirror.start); off < before.end(); off++ {
			e, _ := before.at(off)
			if got, ok := p.mirror.at(off); !ok || got != e {
				o.w.fail("recovery", "%s held %s at offset %d before it was opened again, and holds %v", p, e, off, got)
				return
			}
		}
	}
	o.log(p.mirror)
}

// registered judges the promise of a directory id: who keeps it holds everything.
func (o *oracle) registered(p *process) {
	if p.zombie {
		return // its volume is not the host's any more
	}
	p.host.damaged, p.host.directory = false, p.node.Identity().DirectoryID
}

// regressed: the record may go back only where that is a fault of the run.
func (o *oracle) regressed(p *process) {
	if !o.w.cfg.Faults.Record {
		o.w.fail("R7", "%s sees a regression of a record that never went back", p)
	}
}

// truncatedBelowHW: no committed record may be cut, unless an unclean election was held,
// or what is cut is of a history that does not count.
func (o *oracle) truncatedBelowHW(p *process, to epoch.Offset) {
	if o.unclean == 0 && !p.strayed {
		o.w.fail("I4", "%s truncates to %d, below its high watermark", p, to)
	}
}

// log judges a log by itself (I8).
func (o *oracle) log(m *mirror) {
	last := epoch.NoEpoch
	for i, e := range m.entries {
		off := m.start + epoch.Offset(i)
		if e.epoch < last {
			o.w.fail("I8", "epoch %d follows epoch %d at offset %d", e.epoch, last, off)
			return
		}
		last = e.epoch
		if got := m.cache.EpochAt(off); got != e.epoch {
			o.w.fail("I8", "the epoch cache %s has epoch %d for offset %d, the batch has %d", m.cache, got, off, e.epoch)
			return
		}
	}
	o.matching(m)
	o.noDoubles(m)
}

// matching is log matching (I3): the same epoch at the same offset means the same
// history up to there.
func (o *oracle) matching(m *mirror) {
	if o.w.store.line.left {
		return // two histories may share an epoch until a recovery has set one of them aside
	}
	for _, n := range o.w.mirrors() {
		if n == m {
			continue
		}
		same := false
		for off := min(m.end(), n.end()) - 1; off >= max(m.start, n.start); off-- {
			x, _ := m.at(off)
			y, _ := n.at(off)
			if same = same || x.epoch == y.epoch; same && x != y {
				o.w.fail("I3", "two logs agree behind offset %d, and hold %s and %s there", off, x, y)
				return
			}
		}
	}
}

// noDoubles: an idempotent record is in a log at most once (I13).
func (o *oracle) noDoubles(m *mirror) {
	seen := map[uint32]bool{}
	for i, e := range m.entries {
		if o.single[e.value] && seen[e.value] {
			o.w.fail("I13", "a log holds v%d twice, the second time at offset %d", e.value, m.start+epoch.Offset(i))
			return
		}
		seen[e.value] = true
	}
}

// mirrors are all logs: of the running processes, zombies included, and of the hosts
// that are down.
func (w *world) mirrors() []*mirror {
	out := make([]*mirror, 0, maxReplicas+2)
	for _, p := range w.procs {
		out = append(out, p.mirror)
	}
	for _, h := range w.hosts {
		if h.process == nil {
			out = append(out, h.content)
		}
	}
	return out
}

// counts reports that what a process does is bound by a promise: it stands on the line
// of the record that counts, and no unclean election has ended its leadership.
func (o *oracle) counts(p *process) bool {
	r := p.node.Core().Record()
	return o.w.store.line.has(r) && (p.node.Core().Role() != core.Leader || r.LeaderEpoch >= o.forgiven)
}

// process judges a process after something was done with it. After an unclean election a
// follower may have the high watermark of before it, from its checkpoint, until it fetches:
// no higher than where the epoch of that election began, since it was cut down to there, and
// all that every member of the ISR has had since.
func (o *oracle) process(p *process) {
	c := p.node.Core()
	hw, start, end := c.HighWatermark(), p.mirror.start, p.mirror.end()
	o.deletedBy(p)
	if hw < start || hw > end {
		o.w.fail("I1", "%s: log start %d, high watermark %d, log end %d", p, start, hw, end)
		return
	}
	if !o.counts(p) {
		return
	}
	if c.Role() == core.Leader {
		o.leader(p)
	}
	if p.strayed || o.w.store.line.lost || c.Role() != core.Leader && o.unclean > 0 && p.mirror.cache.Latest() < max(o.forgiven, 1) {
		return // it has followed another history, and does not know yet where that parts
	}
	if int(hw) > len(o.committed) && !(c.Role() != core.Leader && o.beforeUnclean(p.mirror, hw)) {
		o.w.fail("I4", "%s has high watermark %d, but only %d records were ever committed", p, hw, len(o.committed))
		return
	}
	o.holds(p.mirror, hw, "I4", func() string { return fmt.Sprintf("%s, with high watermark %d,", p, hw) })
}

// beforeUnclean reports that a high watermark is no higher than where, in this log, the epoch
// of the last unclean election or one after it begins.
func (o *oracle) beforeUnclean(m *mirror, hw epoch.Offset) bool {
	start, ok := m.cache.StartAfter(o.forgiven - 1)
	return o.unclean > 0 && ok && hw <= start
}

// holds checks that a log has what is committed below an offset.
func (o *oracle) holds(m *mirror, upTo epoch.Offset, invariant string, who func() string) {
	for off := max(m.same, m.start); off < upTo && int(off) < len(o.committed); off++ {
		if e, ok := m.at(off); (!ok || e != o.committed[off].entry) && !o.committed[off].deleted && !o.gone(off) {
			o.w.fail(invariant, "%s has %v at offset %d, where %v is committed", who(), orNothing(e, ok), off, o.committed[off].entry)
			return
		}
		m.same = off + 1
	}
}

func orNothing(e entry, ok bool) any {
	if !ok {
		return "nothing"
	}
	return e
}

// deletedBy notes what a leader's log start leaves out.
func (o *oracle) deletedBy(p *process) {
	if p.node.Core().Role() == core.Leader {
		o.deleted = max(o.deleted, p.mirror.start)
	}
}

// leader judges a leader: I2, I4, I7.
func (o *oracle) leader(p *process) {
	w := o.w
	e := p.node.Core().Record().LeaderEpoch
	// After a restored record, an epoch that only a lost volume knew of may come again.
	if q := o.leaders[e]; q != nil && q != p && !(q.dead && w.store.line.left) {
		w.fail("I7", "%s and %s both lead epoch %d", q, p, e)
	}
	o.leaders[e] = p
	if p.ledEpoch != e {
		p.ledEpoch, p.ledHW = e, 0
		o.forgive(p, e)
	}
	hw := p.node.Core().HighWatermark()
	if hw < p.ledHW {
		w.fail("I2", "%s leads epoch %d and its high watermark fell from %d to %d", p, e, p.ledHW, hw)
	}
	p.ledHW = hw
	o.commit(p, hw)
	o.complete(p, e)
}

// forgive ends what was committed where the winner of an unclean election, or who led
// in its place, knows no more; and where a leader after a recovery lacks what is gone.
func (o *oracle) forgive(p *process, e epoch.LeaderEpoch) {
	off := p.mirror.start
	for ; int(off) < len(o.committed); off++ {
		if got, ok := p.mirror.at(off); !ok || got != o.committed[off].entry {
			break
		}
	}
	lacks := int(off) < len(o.committed)
	u := p.node.Core().Record().UncleanElection
	switch {
	case u != nil && u.LeaderEpoch <= e && o.forgiven < u.LeaderEpoch:
		o.forgiven = u.LeaderEpoch
	case lacks && !o.w.store.line.lost && o.lostWithBearers(off):
		o.forgiven = e
		o.unclean++ // it is as bad as one
	default:
		return
	}
	if !lacks {
		return
	}
	o.w.say("  what was committed is lost from offset %d on", off)
	for _, c := range o.committed[off:] {
		delete(o.place, c.value)
		delete(o.acked, c.value)
	}
	o.committed = o.committed[:off]
	for _, m := range o.w.mirrors() {
		m.same = min(m.same, off)
	}
}

// commit remembers what a leader counts as committed.
func (o *oracle) commit(p *process, hw epoch.Offset) {
	rec := p.node.Core().Record()
	for off := epoch.Offset(len(o.committed)); off < hw; off++ {
		if off < p.mirror.start && o.unclean > 0 {
			o.committed = append(o.committed, commitment{deleted: true})
			continue
		}
		e, ok := p.mirror.at(off)
		if !ok {
			o.w.fail("I4", "%s commits offset %d, which is not in its log", p, off)
			return
		}
		if was, twice := o.place[e.value]; twice && o.single[e.value] && was >= o.deleted {
			o.w.fail("I13", "%s is committed at offsets %d and %d", e, was, off)
		}
		o.place[e.value] = off
		minISR := rec.MinISR
		if o.unclean > 0 { // it may have been committed before, and by fewer
			minISR = min(minISR, len(rec.ISR))
		}
		o.committed = append(o.committed, commitment{entry: e, by: rec.LeaderEpoch, minISR: minISR})
		o.w.say("  %s commits %s at offset %d", p, e, off)
	}
}

// complete is leader completeness (I4): a leader has all that was committed by leaders
// of its epoch and before.
func (o *oracle) complete(p *process, e epoch.LeaderEpoch) {
	if p.mirror.start > o.deleted {
		o.w.fail("I4", "%s starts at %d, retention has dropped only what is below %d", p, p.mirror.start, o.deleted)
	}
	upTo := epoch.Offset(len(o.committed))
	for upTo > 0 && o.committed[upTo-1].by > e {
		upTo--
	}
	o.holds(p.mirror, upTo, "I4", func() string { return fmt.Sprintf("%s, which leads epoch %d,", p, e) })
}

// step judges what any step may have changed: members of the ISR hold all that is
// committed (I5, I6), if the volume that the record knows is the one that they have.
func (o *oracle) step() {
	rec := o.w.store.current().Record
	o.replaced(rec)
	if o.uncleanPending() {
		return
	}
	if rec.Recovery != nil || o.w.store.line.lost {
		return
	}
	for _, id := range rec.ISR {
		h := o.w.hosts[id]
		r, _ := rec.Replica(id)
		if h.damaged || r.DirectoryID.IsZero() || h.process == nil && r.DirectoryID != h.directory {
			continue
		}
		m := h.content
		if p := h.process; p != nil {
			if p.node == nil || p.node.Identity().DirectoryID != r.DirectoryID {
				continue
			}
			m = p.mirror
		}
		o.holds(m, epoch.Offset(len(o.committed)), "I5", func() string { return fmt.Sprintf("replica %d is in the ISR and", id) })
	}
}
