package epoch

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// Member is a replica with the session that proved its position: the session of
// the fetch that counted. The leader's is its own.
type Member struct {
	ID      ReplicaID
	Session Session
}

// ISRChange is the leader's wish for another ISR, Kafka's AlterPartition.
type ISRChange struct {
	Leader      ReplicaID
	Session     Session
	LeaderEpoch LeaderEpoch
	ISR         []Member
	Change      ChangeID
}

// ChangeISR shrinks or expands the ISR, or both. Who joins must be registered with
// the session that it fetched with (KIP-903), and not be stopping or removed
// (KIP-841). Members are never taken out below the effective min ISR (rule 5):
// those that are dead stay listed, freeze the high watermark, and may lead again.
func ChangeISR(r Record, c ISRChange) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	if r.Leader != c.Leader || r.LeaderSession != c.Session || r.LeaderEpoch != c.LeaderEpoch {
		return r, refuse(RefusedNotLeader, "replica %d of session %d does not lead epoch %d: replica %d of session %d leads epoch %d",
			c.Leader, c.Session, c.LeaderEpoch, r.Leader, r.LeaderSession, r.LeaderEpoch)
	}
	isr := make([]ReplicaID, 0, len(c.ISR))
	for _, m := range c.ISR {
		if err := r.mayBeMember(m); err != nil {
			return r, err
		}
		isr = append(isr, m.ID)
	}
	slices.Sort(isr)
	isr = slices.Compact(isr)
	if !slices.Contains(isr, c.Leader) {
		return r, refuse(RefusedInvalid, "the ISR %v lacks the leader, replica %d", isr, c.Leader)
	}
	if slices.Equal(isr, r.ISR) {
		return r, ErrNoChange
	}
	n := r.Clone()
	n.ISR = isr
	for _, id := range isr {
		n.setReplica(id, func(p *Replica) { p.Adding = false })
	}
	n = n.next(c.Change)
	if shrinks := slices.ContainsFunc(r.ISR, func(id ReplicaID) bool { return !slices.Contains(isr, id) }); shrinks && len(isr) < n.MinISR && !guard.Off(guard.NeverBelowMinISR) {
		return r, refuse(RefusedBelowMinISR, "the ISR %v would have fewer than %d members, the effective min ISR", isr, n.MinISR)
	}
	return n, nil
}

func (r Record) mayBeMember(m Member) error {
	p, ok := r.Replica(m.ID)
	switch {
	case !ok:
		return refuse(RefusedIneligible, "replica %d is not assigned", m.ID)
	case r.InSync(m.ID):
		return nil
	case (p.Session != m.Session || m.Session == NoSession) && !guard.Off(guard.JoinWithFetchSession):
		return refuse(RefusedIneligible, "replica %d fetched as session %d and is registered as session %d", m.ID, m.Session, p.Session)
	case (p.Stopping || p.Removing || p.Gone) && !guard.Off(guard.JoinOnlyToStay):
		return refuse(RefusedIneligible, "replica %d is stopping, gone or being removed", m.ID)
	}
	return nil
}

// Renew is the leader's heartbeat. It is no change of state: both epochs stay.
func Renew(r Record, now time.Time, duration time.Duration, p Progress) Record {
	n := r.Clone()
	n.Heartbeat.Renewed, n.Heartbeat.Duration = now, duration
	n.Progress = &p
	return n
}
