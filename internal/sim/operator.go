package sim

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// operator decides by what it has read, which may be old, and by what it believes to be
// alive, which may be wrong. There are two, as during a hand-over of their own.
type operator struct {
	w     *world
	name  string
	round epoch.ChangeID // of reports, that it has begun in a frozen record
}

func (o *operator) String() string { return o.name }

// answered implements caller: an operator reads again before it decides anything.
func (*operator) answered(*call, epoch.Snapshot, error) {}

// base is what the operator has read.
func (o *operator) base() epoch.Snapshot {
	s := o.w.store
	i := len(s.versions) - 1
	if o.w.chance(15) {
		return s.versions[max(0, i-1-o.w.rng.IntN(2))]
	}
	return s.versions[i]
}

// live is what it believes: mostly right.
func (w *world) live() []epoch.ReplicaID {
	var ids []epoch.ReplicaID
	guess := !w.healing && w.chance(30)
	for _, h := range w.hosts {
		up := h.process != nil && h.process.node != nil && !h.process.stopping
		if guess && w.chance(50) || !guess && up {
			ids = append(ids, h.id)
		}
	}
	return ids
}

// propose writes a change, unless a rule forbids it.
func (o *operator) propose(what string, base epoch.Snapshot, next epoch.Record, err error) {
	if err != nil {
		return
	}
	o.w.say("%s wants %s", o.name, what)
	o.w.store.write(o, base, next)
}

// The operators' moves.

func (w *world) electSome() {
	o, _ := pick(w, w.operators[:])
	base := o.base()
	r, err := epoch.Elect(base.Record, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: w.live(), LeaderEnded: w.leaderEnded(base.Record), Change: w.newChangeID()})
	o.propose("an election", base, r, err)
}

// leaderEnded: an operator says so only of a session whose process has ended.
func (w *world) leaderEnded(r epoch.Record) bool {
	for _, p := range w.procs {
		if p.node != nil && p.id == r.Leader && p.node.Identity().Session == r.LeaderSession {
			return false
		}
	}
	return w.chance(70)
}

func (w *world) switchoverSome() {
	o, _ := pick(w, w.operators[:])
	base := o.base()
	q := epoch.SwitchoverRequest{To: epoch.NoReplica, Reason: "simulation", Change: w.newChangeID()}
	if w.chance(50) {
		q.To, _ = pick(w, base.Record.ISR)
	}
	r, err := epoch.RequestSwitchover(base.Record, q)
	o.propose("a switchover", base, r, err)
}

func (w *world) assignSome() {
	if w.target == nil || w.chance(20) {
		w.target = nil
		for i := range maxReplicas {
			if w.chance(60) {
				w.target = append(w.target, epoch.ReplicaID(i))
			}
		}
		w.minISR = 1 + w.rng.IntN(3)
	}
	w.assign()
}

// assign makes an operator's next step towards the assignment that is wanted.
func (w *world) assign() {
	if len(w.target) == 0 {
		return
	}
	o, _ := pick(w, w.operators[:])
	base := o.base()
	live := w.live()
	r, err := epoch.Assign(base.Record, epoch.Assignment{Target: w.target, WantedMinISR: w.minISR, Live: live, Change: w.newChangeID(), Now: time.Time{}})
	if err == nil {
		w.oracle.drops(base.Record, r, live)
	}
	o.propose("a step of a reassignment", base, r, err)
}
