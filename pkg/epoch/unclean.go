package epoch

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// UncleanElection records an election that may have lost committed records: those
// from the offset at which the new leader's epoch begins up to the high watermark
// known before.
type UncleanElection struct {
	LeaderEpoch LeaderEpoch `json:"leaderEpoch"`
	Leader      ReplicaID   `json:"leader"`
	// HighWatermark is the last one known before it, NoOffset if none was.
	HighWatermark Offset `json:"highWatermark"`
	// LogEndOffset is where the new leader's epoch begins; nil until it has taken over.
	LogEndOffset *Offset `json:"logEndOffset,omitempty"`
}

// Lost is the range of the committed offsets that were lost, [from, to); empty if from
// is not below to. It is not known before the leader has taken over, nor if no high
// watermark was known.
func (u UncleanElection) Lost() (from, to Offset, known bool) {
	if u.LogEndOffset == nil || u.HighWatermark == NoOffset {
		return NoOffset, NoOffset, false
	}
	return min(*u.LogEndOffset, u.HighWatermark), u.HighWatermark, true
}

// UncleanRequest is a user's wish for a leader from outside of the ISR.
type UncleanRequest struct {
	// LeaderEpoch is the epoch that the user has seen, and wants to end: a request that
	// was forgotten never applies again.
	LeaderEpoch LeaderEpoch
	// Replica is the one to be elected, NoReplica for the one with the longest log.
	Replica ReplicaID
	// Live are the replicas that the caller knows to be at work. If a member of the ISR
	// that can lead is among them there is nothing to be lost, and the request is
	// refused: Elect will do.
	Live   []ReplicaID
	Change ChangeID
	Now    time.Time
}

// ElectUnclean elects from outside of the ISR, on a user's request (rule 6): the live
// registered replica whose log is longest, by (last epoch, log end). Everything
// committed beyond that log's end is lost; the record says so. The ISR is then the
// winner alone: nobody else is known to agree with it.
func ElectUnclean(r Record, q UncleanRequest) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	if q.LeaderEpoch != r.LeaderEpoch && !guard.Off(guard.UncleanNamesEpoch) {
		return r, refuse(RefusedSuperseded, "an unclean election was asked for in leader epoch %d, and the record is in %d", q.LeaderEpoch, r.LeaderEpoch)
	}
	if id, ok := r.candidate(q.Live); ok {
		return r, refuse(RefusedInvalid, "replica %d of the ISR %v can lead without a loss", id, r.ISR)
	}
	winner, ok := r.longest(q)
	if !ok {
		return r, refuse(RefusedNoCandidate, "no replica that could be elected is registered and live (live: %v, asked for: %d)", q.Live, q.Replica)
	}
	return r.crown(winner, ReasonUnclean, q.Change, q.Now), nil
}

// UncleanWinner is whom ElectUnclean would elect, with the end of its log as far as it
// is known, so that a user can be told before what would be lost.
func UncleanWinner(r Record, q UncleanRequest) (id ReplicaID, end Offset, ok bool) {
	id, ok = r.longest(q)
	if !ok {
		return NoReplica, NoOffset, false
	}
	p, _ := r.Replica(id)
	_, end = r.knownLog(p)
	return id, end, true
}

func (r Record) longest(q UncleanRequest) (ReplicaID, bool) {
	var live []Replica
	for _, p := range r.Replicas {
		if p.Session != NoSession && !p.Gone && slices.Contains(q.Live, p.ID) && (q.Replica == NoReplica || q.Replica == p.ID) {
			live = append(live, p)
		}
	}
	if len(live) == 0 {
		return NoReplica, false
	}
	return slices.MaxFunc(live, func(a, b Replica) int {
		ae, ao := r.knownLog(a)
		be, bo := r.knownLog(b)
		return cmp.Or(cmp.Compare(ae, be), cmp.Compare(ao, bo), int(b.ID-a.ID))
	}).ID, true
}

// knownLog is the end of a replica's log as its registration or, if that is more, the
// last leader's progress tells. What is told of an earlier session may be of a volume
// that is gone.
func (r Record) knownLog(p Replica) (LeaderEpoch, Offset) {
	e, end := p.LastEpoch, p.LogEndOffset
	if r.Progress == nil {
		return e, end
	}
	for _, q := range r.Progress.Replicas {
		if q.ID == p.ID && q.Session == p.Session && cmp.Or(cmp.Compare(q.LeaderEpoch, e), cmp.Compare(q.LogEndOffset, end)) > 0 {
			return q.LeaderEpoch, q.LogEndOffset
		}
	}
	return e, end
}

// crown makes a replica from outside of the ISR the leader, and the record tell of it.
// Progress goes, and what the last recovery knew to be committed: a high watermark that
// may be beyond the new leader's log would void the promise of every replica that starts.
func (r Record) crown(id ReplicaID, reason ElectionReason, change ChangeID, now time.Time) Record {
	n := r.Clone()
	n.UncleanElection = &UncleanElection{LeaderEpoch: r.LeaderEpoch + 1, Leader: id, HighWatermark: NoOffset}
	if r.Progress != nil {
		n.UncleanElection.HighWatermark = r.Progress.HighWatermark
	}
	n.ISR = []ReplicaID{id}
	n.setReplica(id, func(p *Replica) { p.Adding = false })
	n.Progress = nil
	if n.Recovered != nil {
		n.Recovered.HighWatermark = 0
	}
	n.enthrone(id, reason, now)
	return n.next(change)
}

// TellLoss is written once by the leader that was elected uncleanly, when it has taken over,
// or by one elected after it, if it had not told: its epoch begins at start, so every
// committed record from there on is lost.
func TellLoss(r Record, leader ReplicaID, session Session, start Offset, change ChangeID) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	u := r.UncleanElection
	switch {
	case r.Leader != leader || r.LeaderSession != session:
		return r, refuse(RefusedNotLeader, "replica %d of session %d does not lead", leader, session)
	case u == nil || u.LeaderEpoch > r.LeaderEpoch || u.LogEndOffset != nil:
		return r, ErrNoChange
	}
	n := r.Clone()
	n.UncleanElection.LogEndOffset = &start
	return n.next(change), nil
}
