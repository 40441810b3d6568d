package kafka

import (
	"slices"
	"sync"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// leaderHint is what a refusal tells about the leader, so that the client need not
// ask for metadata (KIP-951).
type leaderHint struct {
	id, epoch int32
	// node is nil when the leader has no address.
	node *Node
}

// currentLeader gives the hint for the two refusals that are about leadership.
func (x *exchange) currentLeader(code Code) (leaderHint, bool) {
	if code != CodeNotLeaderOrFollower && code != CodeFencedLeaderEpoch {
		return leaderHint{}, false
	}
	v := x.shown()
	h := leaderHint{id: int32(v.Leader), epoch: int32(v.LeaderEpoch)}
	if n, ok := v.node(v.Leader); ok {
		h.node = &n
	}
	return h, true
}

// node returns a replica that has an address.
func (v View) node(id epoch.ReplicaID) (Node, bool) {
	i := slices.IndexFunc(v.Replicas, func(n Node) bool { return n.ID == id && n.Address.Host != "" })
	if i < 0 {
		return Node{}, false
	}
	return v.Replicas[i], true
}

// epochGuard remembers the newest leader that was told to clients. Clients ignore
// for ever a leader with a lower epoch than one they have seen, and some ignore one
// that changes within an epoch (librdkafka issue 4804); so neither is ever told.
type epochGuard struct {
	mu      sync.Mutex
	topicID epoch.UUID
	epoch   epoch.LeaderEpoch
	leader  epoch.ReplicaID
}

// monotonic returns the view, without its leader and with the newest epoch when it
// contradicts what was told before.
func (g *epochGuard) monotonic(v View) View {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case v.TopicID != g.topicID:
		g.topicID, g.epoch, g.leader = v.TopicID, v.LeaderEpoch, v.Leader
	case v.LeaderEpoch < g.epoch, v.LeaderEpoch == g.epoch && v.Leader != g.leader && v.Leader != epoch.NoReplica && g.leader != epoch.NoReplica:
		v.LeaderEpoch, v.Leader, v.Leads = g.epoch, epoch.NoReplica, false
	case v.LeaderEpoch > g.epoch:
		g.epoch, g.leader = v.LeaderEpoch, v.Leader
	case v.Leader != epoch.NoReplica:
		g.leader = v.Leader
	}
	return v
}
