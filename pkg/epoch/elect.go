package epoch

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// Election asks for a new leader, by whoever has found that one is needed. It is
// safe at any moment: what makes it safe is that the change is a compare-and-swap
// on the very object that the old leader must swap to change the ISR.
type Election struct {
	Reason ElectionReason
	// Live are the replicas that the caller knows to be at work. It is a hint for
	// liveness: nobody outside of the ISR is ever elected for being live.
	Live []ReplicaID
	// LeaderEnded says that the caller knows the process of the leader's session to
	// have ended, so that the next leader need not wait for it.
	LeaderEnded bool
	Change      ChangeID
	Now         time.Time
}

// Elect makes the next live member of the ISR the leader, in cyclic order of id
// after the last leader, who thus comes last. The leader epoch grows by one even
// if the same replica wins.
func Elect(r Record, e Election) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	winner, ok := r.candidate(e.Live)
	if !ok {
		return r, refuse(RefusedNoCandidate, "no member of the ISR %v is registered and live (live: %v)", r.ISR, e.Live)
	}
	n := r.Clone()
	if e.LeaderEnded && winner != r.Leader {
		n.setReplica(r.Leader, func(p *Replica) { p.Gone = true })
	}
	n.enthrone(winner, e.Reason, e.Now)
	return n.next(e.Change), nil
}

// HandOver is an election by the leader itself, which is about to stop: it names
// the successor, which must be in the ISR, and marks itself as stopping in the
// same change.
func HandOver(r Record, from ReplicaID, session Session, successor ReplicaID, change ChangeID, now time.Time) (Record, error) {
	if r.Leader != from || r.LeaderSession != session {
		return r, refuse(RefusedNotLeader, "replica %d of session %d does not lead", from, session)
	}
	if successor == from {
		return r, refuse(RefusedInvalid, "replica %d cannot hand over to itself", from)
	}
	n, err := Elect(r, Election{Reason: ReasonSwitchover, Live: []ReplicaID{successor}, Change: change, Now: now})
	if err != nil {
		return r, err
	}
	n.setReplica(from, func(p *Replica) { p.Stopping = true })
	return n, nil
}

// Retire marks a replica as stopping: its process of that session will end soon
// and in good order, and asks to be taken out of the ISR before.
func Retire(r Record, id ReplicaID, session Session, change ChangeID) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	p, ok := r.Replica(id)
	switch {
	case !ok:
		return r, refuse(RefusedNotAssigned, "replica %d is not assigned", id)
	case p.Session != session:
		return r, refuse(RefusedSuperseded, "replica %d has registered again as session %d", id, p.Session)
	case p.Stopping:
		return r, ErrNoChange
	}
	n := r.Clone()
	n.setReplica(id, func(p *Replica) { p.Stopping = true })
	return n.next(change), nil
}

// SwitchoverRequest asks the leader's present session to hand over.
type SwitchoverRequest struct {
	// To is who is to lead, NoReplica for whom the leader finds fittest.
	To     ReplicaID
	Reason string
	Change ChangeID
}

// RequestSwitchover asks the leader's present session to hand over, in place of what it
// was asked before. Nothing is lost by it: the leader goes on until it can.
func RequestSwitchover(r Record, q SwitchoverRequest) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	if r.Leader == NoReplica {
		return r, refuse(RefusedNotLeader, "nobody leads")
	}
	wanted := Switchover{Session: r.LeaderSession, Reason: q.Reason}
	if q.To != NoReplica {
		if err := r.maySucceed(q.To); err != nil {
			return r, err
		}
		wanted.To = &q.To
	}
	if r.Switchover != nil && r.Switchover.Session == r.LeaderSession && (wanted.To == nil || r.Switchover.To != nil && *r.Switchover.To == q.To) {
		return r, ErrNoChange
	}
	n := r.Clone()
	n.Switchover = &wanted
	return n.next(q.Change), nil
}

// maySucceed says why a replica cannot take over from a leader that is well.
func (r Record) maySucceed(id ReplicaID) error {
	p, ok := r.Replica(id)
	switch {
	case !ok:
		return refuse(RefusedNotAssigned, "replica %d is not assigned; the assignment is %v", id, r.ids())
	case id == r.Leader:
		return ErrNoChange
	case !r.InSync(id):
		return refuse(RefusedNoCandidate, "replica %d is not in sync; the ISR is %v", id, r.ISR)
	case p.Session == NoSession || p.Gone || p.Stopping:
		return refuse(RefusedNoCandidate, "replica %d is not at work", id)
	case p.Removing:
		return refuse(RefusedNoCandidate, "replica %d is being removed", id)
	}
	return nil
}

// SwitchoverIsolated is the reason of a leader that asks to be replaced since too few
// members of the ISR fetch from it. It cannot hand over by itself, to nobody that it
// reaches; whoever sees more elects.
const SwitchoverIsolated = string(ReasonLeaderStuck)

// Isolated reports that the leader itself asked, for SwitchoverIsolated.
func (s *Switchover) Isolated() bool { return s != nil && s.Reason == SwitchoverIsolated }

// WithdrawSwitchover takes back what the leader's session was asked for.
func WithdrawSwitchover(r Record, leader ReplicaID, session Session, change ChangeID) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	switch {
	case r.Leader != leader || r.LeaderSession != session:
		return r, refuse(RefusedNotLeader, "replica %d of session %d does not lead", leader, session)
	case r.Switchover == nil:
		return r, ErrNoChange
	}
	n := r.Clone()
	n.Switchover = nil
	return n.next(change), nil
}

// ElectLastKnown elects the last leader from an empty ISR, for a user who has
// allowed that with leaderElection.unclean: LastKnownLeader. It must be back on
// the volume that it led with, and no registered replica may have a longer log.
// Committed records may be lost: the record says so.
func ElectLastKnown(r Record, live []ReplicaID, change ChangeID, now time.Time) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	if len(r.ISR) > 0 || r.Leader != NoReplica {
		return r, refuse(RefusedInvalid, "the last known leader is elected only from an empty ISR; it is %v", r.ISR)
	}
	p, ok := r.Replica(r.LastLeader.ID)
	if !ok || p.Session == NoSession || !slices.Contains(live, p.ID) {
		return r, refuse(RefusedNoCandidate, "the last leader, replica %d, is not back", r.LastLeader.ID)
	}
	if r.LastLeader.VolumeID.IsZero() || p.VolumeID != r.LastLeader.VolumeID {
		return r, refuse(RefusedNoCandidate, "the last leader, replica %d, came back on another volume", p.ID)
	}
	for _, q := range r.Replicas {
		if cmp.Or(cmp.Compare(q.LastEpoch, p.LastEpoch), cmp.Compare(q.LogEndOffset, p.LogEndOffset)) > 0 {
			return r, refuse(RefusedNoCandidate, "replica %d registered with a longer log (epoch %d, end %d) than the last leader, replica %d (epoch %d, end %d)",
				q.ID, q.LastEpoch, q.LogEndOffset, p.ID, p.LastEpoch, p.LogEndOffset)
		}
	}
	return r.crown(p.ID, ReasonLastKnownLeader, change, now), nil
}

// candidate picks whom Elect makes the leader. A replica that is stopping or being
// removed is taken only if there is no other, one whose process is known to have ended
// never: that session would not take the office, and its next one registers first.
func (r Record) candidate(live []ReplicaID) (ReplicaID, bool) {
	last := r.LastLeader.ID
	var all, willing []ReplicaID
	for _, p := range r.Replicas {
		if !r.InSync(p.ID) && !guard.Off(guard.ElectFromISR) || p.Session == NoSession || p.Gone || !slices.Contains(live, p.ID) {
			continue
		}
		all = append(all, p.ID)
		if !p.Stopping && !p.Removing {
			willing = append(willing, p.ID)
		}
	}
	if len(willing) > 0 {
		all = willing
	}
	if len(all) == 0 {
		return NoReplica, false
	}
	for _, id := range all {
		if id > last {
			return id, true
		}
	}
	return all[0], true
}

// enthrone makes id the leader of a new epoch.
func (r *Record) enthrone(id ReplicaID, reason ElectionReason, now time.Time) {
	p, _ := r.Replica(id)
	r.Leader, r.LeaderSession = id, p.Session
	if id != r.LastLeader.ID || !guard.Off(guard.NewEpochWithSameWinner) {
		r.LeaderEpoch++
	}
	r.ElectionReason = reason
	r.Switchover = nil
	r.LastLeader = LastLeader{ID: id, VolumeID: p.VolumeID, LeaderEpoch: r.LeaderEpoch}
	r.Heartbeat.Acquired, r.Heartbeat.Renewed = now, now
}

// dethrone leaves the partition without a leader. The epoch stays: nobody has won.
func (r *Record) dethrone() {
	r.Leader, r.LeaderSession, r.Switchover = NoReplica, NoSession, nil
}

func (r *Record) setReplica(id ReplicaID, change func(*Replica)) {
	for i := range r.Replicas {
		if r.Replicas[i].ID == id {
			change(&r.Replicas[i])
		}
	}
}
