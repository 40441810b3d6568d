package kafka

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Metadata (key 3).
//
// Versions 0 to 13 are served. v1 adds the controller, v2 the cluster id (here the
// topic's id), v5 offline replicas, v7 the leader epoch, v9 is flexible, v10 names
// topics by id too.
//
//   - All topics is our one topic, with its one partition. An unknown name is
//     UNKNOWN_TOPIC_OR_PARTITION, whatever allow_auto_topic_creation says: topics
//     are made as Kubernetes objects. An unknown id is UNKNOWN_TOPIC_ID.
//   - Without a leader the answer is LEADER_NOT_AVAILABLE with leader -1 and still
//     the last leader epoch: a client that got -1 there would no longer notice a
//     truncation (franz-go issue 1331). The epoch never goes back.
//   - The ISR shown holds its live members; assigned replicas that are not alive are
//     offline.
//   - The controller is the leader, or while there is none the replica that answers:
//     admin tools need a node that exists.
//   - Addresses are those of the listener that the request came in on. A replica that has
//     none there is left out of the brokers and is offline; if it leads, the answer is
//     LISTENER_NOT_FOUND, before v6 LEADER_NOT_AVAILABLE, as Kafka's is (KIP-226).
var apiMetadata = &api{key: keyMetadata, name: "Metadata", min: 0, max: 13, handle: (*exchange).metadata}

const (
	metadataFirstNullForAll = 1
	metadataFirstListeners  = 6
	metadataFirstTopicIDs   = 10
)

func (x *exchange) metadata(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.MetadataRequest)
	view := x.shown()
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = x.version
	clusterID := view.TopicID.String()
	resp.ClusterID = &clusterID
	resp.ControllerID = int32(view.controller())
	for _, n := range view.Replicas {
		if n.Address.Host == "" {
			continue
		}
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = int32(n.ID), n.Address.Host, x.port(n.Address)
		resp.Brokers = append(resp.Brokers, b)
	}
	if all := req.Topics == nil || x.version < metadataFirstNullForAll && len(req.Topics) == 0; all {
		resp.Topics = append(resp.Topics, x.ourTopic(view))
		return resp, nil
	}
	for _, rt := range req.Topics {
		resp.Topics = append(resp.Topics, x.topicMetadata(view, rt))
	}
	return resp, nil
}

// topicMetadata answers one topic that was asked for by name or by id.
func (x *exchange) topicMetadata(view View, rt kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	byID := x.version >= metadataFirstTopicIDs && rt.Topic == nil
	name := ""
	if rt.Topic != nil {
		name = *rt.Topic
	}
	if view.ours(name, rt.TopicID, byID) {
		return x.ourTopic(view)
	}
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = rt.Topic, rt.TopicID
	if !byID || x.version < 12 {
		t.Topic = &name // the name is nullable from v12 on
	}
	t.ErrorCode = x.fail(unknownTopic(byID))
	return t
}

func (x *exchange) ourTopic(view View) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = &view.Topic, view.TopicID
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.LeaderEpoch = int32(view.Leader), int32(view.LeaderEpoch)
	if _, ok := view.node(view.Leader); !ok {
		p.Leader = int32(epoch.NoReplica)
		p.ErrorCode = x.fail(x.noLeader(view))
	}
	for _, n := range view.Replicas {
		p.Replicas = append(p.Replicas, int32(n.ID))
	}
	p.ISR = replicaIDs(view.LiveISR)
	p.OfflineReplicas = replicaIDs(view.Offline)
	t.Partitions = []kmsg.MetadataResponseTopicPartition{p}
	return t
}

// noLeader says why the leader is not told: nobody leads, or whoever does cannot be reached
// by the listener.
func (x *exchange) noLeader(view View) Code {
	if x.Listener == External && view.Leader != epoch.NoReplica && x.version >= metadataFirstListeners {
		return CodeListenerNotFound
	}
	return CodeLeaderNotAvailable
}

// controller is a node that a client can reach: the leader, else this replica, else
// any; -1 if none has an address.
func (v View) controller() epoch.ReplicaID {
	for _, id := range []epoch.ReplicaID{v.Leader, v.Self} {
		if _, ok := v.node(id); ok {
			return id
		}
	}
	if i := slices.IndexFunc(v.Replicas, func(n Node) bool { return n.Address.Host != "" }); i >= 0 {
		return v.Replicas[i].ID
	}
	return epoch.NoReplica
}

func replicaIDs(ids []epoch.ReplicaID) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}
