package epoch

import (
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// Registration is what a process says of itself at its start.
type Registration struct {
	ID          ReplicaID
	DirectoryID UUID
	VolumeID    UUID
	StartID     StartID
	Address     Address
	// PodUID and RestartCount tell which container this is.
	PodUID       string
	RestartCount int32
	// LastEpoch and LogEndOffset are those of the log that was found.
	LastEpoch    LeaderEpoch
	LogEndOffset Offset
	Change       ChangeID
	Now          time.Time
}

// Register enters a process into the record and gives it a session: the partition
// epoch of the record returned. A registration that is already there, by its start
// id, is ErrNoChange: an earlier attempt was written although its answer was lost.
//
// A directory id other than the record's strikes the replica from the ISR and from
// leadership (rule 3, KIP-903): its promise that it holds everything below the high
// watermark does not hold any more. If nobody else leads, the same change may elect
// the replica; a leader that comes back gets a new epoch (rule 2).
func Register(r Record, g Registration) (Record, error) {
	if err := r.frozen(); err != nil {
		return r, err
	}
	p, ok := r.Replica(g.ID)
	if !ok {
		return r, refuse(RefusedNotAssigned, "replica %d is not assigned; the assignment is %v", g.ID, r.ids())
	}
	if g.DirectoryID.IsZero() || g.StartID == "" {
		return r, refuse(RefusedInvalid, "replica %d registers without directory id or start id", g.ID)
	}
	for _, q := range r.Replicas {
		if q.ID != g.ID && q.DirectoryID == g.DirectoryID && !guard.Off(guard.DirectoryUsedOnce) {
			return r, refuse(RefusedDirectoryUsed, "directory %s is registered by replica %d; a volume cannot serve two replicas", g.DirectoryID, q.ID)
		}
	}
	if p.StartID == g.StartID {
		return r, ErrNoChange
	}
	n := r.Clone()
	struck := !p.DirectoryID.IsZero() && p.DirectoryID != g.DirectoryID
	n.setReplica(g.ID, func(p *Replica) {
		*p = Replica{ID: g.ID, DirectoryID: g.DirectoryID, VolumeID: g.VolumeID, Session: Session(r.PartitionEpoch + 1), StartID: g.StartID,
			Address: g.Address, PodUID: g.PodUID, RestartCount: g.RestartCount, LastEpoch: g.LastEpoch, LogEndOffset: g.LogEndOffset,
			Adding: p.Adding, Removing: p.Removing}
	})
	if struck && !guard.Off(guard.StrikeOtherDirectory) {
		n.ISR = slices.DeleteFunc(n.ISR, func(id ReplicaID) bool { return id == g.ID })
	}
	if n.Leader == NoReplica || n.Leader == g.ID {
		n.dethrone()
		if n.InSync(g.ID) {
			reason := ReasonRegistered
			if r.LeaderEpoch == 0 {
				reason = ReasonFirstLeader
			}
			n.enthrone(g.ID, reason, g.Now)
		}
	}
	return n.next(g.Change), nil
}

func (r Record) ids() []ReplicaID {
	ids := make([]ReplicaID, len(r.Replicas))
	for i, p := range r.Replicas {
		ids[i] = p.ID
	}
	return ids
}
