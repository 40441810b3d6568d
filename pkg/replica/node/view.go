package node

import (
	"slices"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// View is the partition as this replica knows it. It is never written again.
type View struct {
	Role           core.Role
	Leader         epoch.ReplicaID // NoReplica while there is none
	LeaderEpoch    epoch.LeaderEpoch
	PartitionEpoch epoch.PartitionEpoch
	MinISR         int // the effective one
	HighWatermark  epoch.Offset
	LogStartOffset epoch.Offset
	LogEndOffset   epoch.Offset
	EpochStart     epoch.Offset // where the epoch of this leader begins
	EpochCache     epoch.Cache
	// MayServe is rule 8 for reads and acks 0 and 1.
	MayServe bool
	// Trouble is what is wrong with this replica's volume.
	Trouble epoch.Trouble
	// Replicas is the assignment; LiveISR are the members of the ISR that are alive,
	// Offline the assigned replicas that are not.
	Replicas []epoch.Replica
	LiveISR  []epoch.ReplicaID
	Offline  []epoch.ReplicaID
}

// View is the newest published. It is never nil.
func (n *Node) View() *View { return n.published.Load() }

// Leads is what every client's read needs (rule 8), with the epoch checked before
// the leadership (KAFKA-14078). NoEpoch skips the check.
func (v *View) Leads(current epoch.LeaderEpoch) error {
	switch {
	case current != epoch.NoEpoch && current < v.LeaderEpoch:
		return core.ErrFencedLeaderEpoch
	case current != epoch.NoEpoch && current > v.LeaderEpoch:
		return core.ErrUnknownLeaderEpoch
	case v.Role != core.Leader || !v.MayServe:
		return core.ErrNotLeader
	}
	return nil
}

// Behind reports that the high watermark has not reached the epoch's start yet
// (KIP-207).
func (v *View) Behind() bool {
	return v.HighWatermark < v.EpochStart && !guard.Off(guard.OffsetNotAvailable)
}

// sameButForTime reports that no reader could tell the two apart.
func (v *View) sameButForTime(w *View) bool {
	return v.Role == w.Role && v.HighWatermark == w.HighWatermark && v.LogStartOffset == w.LogStartOffset && v.LogEndOffset == w.LogEndOffset &&
		v.PartitionEpoch == w.PartitionEpoch && v.MayServe == w.MayServe && v.EpochCache.Equal(w.EpochCache) &&
		v.LeaderEpoch == w.LeaderEpoch && v.Trouble == w.Trouble && slices.Equal(v.LiveISR, w.LiveISR)
}

// publish makes the newest state visible.
func (n *Node) publish() {
	rec := n.core.Record()
	v := &View{
		Role: n.core.Role(), Leader: rec.Leader, LeaderEpoch: rec.LeaderEpoch, PartitionEpoch: rec.PartitionEpoch, MinISR: rec.MinISR, Replicas: rec.Replicas,
		HighWatermark: n.core.HighWatermark(), EpochStart: n.core.EpochStart(), LogStartOffset: n.log.StartOffset(), LogEndOffset: n.log.EndOffset(),
		EpochCache: n.log.EpochCache(), MayServe: n.core.MayServe(n.cfg.Now()), Trouble: n.core.Trouble(),
	}
	leads := v.Role == core.Leader
	v.LiveISR = n.liveISR(rec, leads)
	if old := n.published.Load(); old != nil && old.sameButForTime(v) {
		return
	}
	for _, p := range rec.Replicas {
		if !slices.Contains(v.LiveISR, p.ID) && !n.liveOutside(rec, p.ID, leads) {
			v.Offline = append(v.Offline, p.ID)
		}
	}
	n.published.Store(v)
	if n.ports.Published != nil {
		n.ports.Published(v)
	}
}

// liveISR is what the leader knows by its own fetches, and a follower by the leader's
// last heartbeat.
func (n *Node) liveISR(rec epoch.Record, leads bool) []epoch.ReplicaID {
	if leads {
		return n.core.LiveISR(n.cfg.Now())
	}
	var ids []epoch.ReplicaID
	for _, id := range rec.ISR {
		if id == rec.Leader || id == n.me.ID || n.liveOutside(rec, id, false) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (n *Node) liveOutside(rec epoch.Record, id epoch.ReplicaID, leads bool) bool {
	if leads {
		return n.core.Live(n.cfg.Now(), id)
	}
	if rec.Progress == nil {
		return true
	}
	for _, p := range rec.Progress.Replicas {
		if p.ID == id {
			return p.Live
		}
	}
	return false
}
