package replica

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// view is what the loop publishes: connections read it without asking the loop. It
// is never written again.
type view struct {
	kafka.View
	role           core.Role
	highWatermark  epoch.Offset
	logStart       epoch.Offset
	logEnd         epoch.Offset
	epochStart     epoch.Offset
	cache          epoch.Cache
	partitionEpoch epoch.PartitionEpoch
	// mayServe is rule 8 for reads and acks 0 and 1.
	mayServe bool
	// changed is closed when a newer view is published.
	changed chan struct{}
}

// sameButForTime reports that no reader could tell the two apart.
func (v *view) sameButForTime(w *view) bool {
	return v.role == w.role && v.highWatermark == w.highWatermark && v.logStart == w.logStart && v.logEnd == w.logEnd &&
		v.partitionEpoch == w.partitionEpoch && v.mayServe == w.mayServe && v.cache.Equal(w.cache) &&
		v.LeaderEpoch == w.LeaderEpoch && slices.Equal(v.LiveISR, w.LiveISR)
}

// publish makes the newest state visible, and wakes who waits for a change.
func (n *node) publish() {
	rec := n.core.Record()
	now := n.now()
	v := &view{
		role: n.core.Role(), highWatermark: n.core.HighWatermark(), epochStart: n.core.EpochStart(),
		logStart: n.log.StartOffset(), logEnd: n.log.EndOffset(), cache: n.log.EpochCache(),
		partitionEpoch: rec.PartitionEpoch, mayServe: n.core.MayServe(now), changed: make(chan struct{}),
		View: kafka.View{Topic: n.cfg.Topic, TopicID: n.cfg.TopicID, Self: n.cfg.ID, Leader: rec.Leader, LeaderEpoch: rec.LeaderEpoch},
	}
	v.Leads = v.role == core.Leader
	v.LiveISR = n.liveISR(rec, v.Leads)
	old := n.published.Load()
	if old != nil && old.sameButForTime(v) {
		return
	}
	if old != nil && old.partitionEpoch == v.partitionEpoch {
		v.Replicas = old.Replicas
	} else {
		for _, p := range rec.Replicas {
			v.Replicas = append(v.Replicas, kafka.Node{ID: p.ID, Address: p.Address})
		}
	}
	for _, p := range v.Replicas {
		if !slices.Contains(v.LiveISR, p.ID) && !n.liveOutside(rec, p.ID, v.Leads) {
			v.Offline = append(v.Offline, p.ID)
		}
	}
	n.published.Store(v)
	if old != nil {
		close(old.changed)
	}
}

// liveISR is what the leader knows by its own fetches, and a follower by the leader's
// last heartbeat.
func (n *node) liveISR(rec epoch.Record, leads bool) []epoch.ReplicaID {
	if leads {
		return n.core.LiveISR(n.now())
	}
	var ids []epoch.ReplicaID
	for _, id := range rec.ISR {
		if id == rec.Leader || id == n.cfg.ID || n.liveOutside(rec, id, false) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (n *node) liveOutside(rec epoch.Record, id epoch.ReplicaID, leads bool) bool {
	if leads {
		return n.core.Live(n.now(), id)
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
