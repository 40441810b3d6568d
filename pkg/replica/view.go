package replica

import (
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// view is what the node publishes, and how clients see it: connections read it without
// asking the loop. It is never written again.
type view struct {
	*node.View
	client kafka.View
	// changed is closed when a newer view is published.
	changed chan struct{}
}

// publish takes over what the node has published, and wakes who waits for a change.
func (r *Replica) publish(v *node.View) {
	next := &view{View: v, changed: make(chan struct{}), client: kafka.View{Topic: r.topic, TopicID: r.topicID, Self: r.identity.ID,
		Leads: v.Role == core.Leader, Leader: v.Leader, LeaderEpoch: v.LeaderEpoch, LiveISR: v.LiveISR, Offline: v.Offline}}
	old := r.published.Load()
	if old != nil && old.PartitionEpoch == v.PartitionEpoch {
		next.client.Replicas = old.client.Replicas
	} else {
		for _, p := range v.Replicas {
			next.client.Replicas = append(next.client.Replicas, kafka.Node{ID: p.ID, Address: p.Address})
		}
	}
	r.published.Store(next)
	if old != nil {
		close(old.changed)
	}
}
