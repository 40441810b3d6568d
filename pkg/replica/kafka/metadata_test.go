package kafka

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

func TestMetadataShowsThePartition(t *testing.T) {
	r := start(t, newMemPartition())
	resp := ask[*kmsg.MetadataResponse](r, metadataRequest(12))
	if len(resp.Brokers) != 1 || resp.Brokers[0].Host != "127.0.0.1" || resp.ControllerID != 0 || *resp.ClusterID != testTopicID.String() {
		t.Errorf("brokers %+v, controller %d, cluster %s", resp.Brokers, resp.ControllerID, *resp.ClusterID)
	}
	topic := resp.Topics[0]
	if *topic.Topic != testTopic || topic.TopicID != testTopicID {
		t.Errorf("topic is %s %v", *topic.Topic, topic.TopicID)
	}
	p := topic.Partitions[0]
	if p.Leader != 0 || p.LeaderEpoch != 3 || !slices.Equal(p.Replicas, []int32{0, 1, 2}) || !slices.Equal(p.ISR, []int32{0, 1}) || !slices.Equal(p.OfflineReplicas, []int32{2}) {
		t.Errorf("partition is %+v", p)
	}
}

func TestMetadataOfTopics(t *testing.T) {
	byID := func(id epoch.UUID) []kmsg.MetadataRequestTopic { return []kmsg.MetadataRequestTopic{{TopicID: id}} }
	byName := func(name string) []kmsg.MetadataRequestTopic {
		return []kmsg.MetadataRequestTopic{{Topic: &name}}
	}
	cases := map[string]struct {
		version int16
		topics  []kmsg.MetadataRequestTopic
		want    []Code
	}{
		"all topics, null":            {1, nil, []Code{CodeNone}},
		"all topics, empty in v0":     {0, []kmsg.MetadataRequestTopic{}, []Code{CodeNone}},
		"no topics":                   {1, []kmsg.MetadataRequestTopic{}, nil},
		"ours by name":                {8, byName(testTopic), []Code{CodeNone}},
		"ours by id":                  {12, byID(testTopicID), []Code{CodeNone}},
		"unknown name":                {8, byName("other"), []Code{CodeUnknownTopicOrPartition}},
		"unknown name, with creation": {4, byName("other"), []Code{CodeUnknownTopicOrPartition}},
		"unknown id":                  {12, byID(epoch.UUID{7}), []Code{CodeUnknownTopicID}},
		"unknown id in v10":           {10, byID(epoch.UUID{7}), []Code{CodeUnknownTopicID}},
	}
	r := start(t, newMemPartition())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := metadataRequest(c.version)
			req.Topics, req.AllowAutoTopicCreation = c.topics, true
			var got []Code
			for _, topic := range ask[*kmsg.MetadataResponse](r, req).Topics {
				got = append(got, Code(topic.ErrorCode))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// G26, G16, G17: what clients are told about leaders never goes back.
func TestMetadataNeverGoesBack(t *testing.T) {
	steps := []struct {
		name                  string
		leader                epoch.ReplicaID
		epoch                 epoch.LeaderEpoch
		wantLeader, wantEpoch int32
		want                  Code
	}{
		{"leader", 0, 3, 0, 3, CodeNone},
		{"G26 no leader keeps the epoch", epoch.NoReplica, 3, -1, 3, CodeLeaderNotAvailable},
		{"next leader", 1, 4, 1, 4, CodeNone},
		{"G16 older epoch", 0, 3, -1, 4, CodeLeaderNotAvailable},
		{"G17 other leader in the same epoch", 0, 4, -1, 4, CodeLeaderNotAvailable},
		{"same leader again", 1, 4, 1, 4, CodeNone},
		{"leader without an address", 2, 5, -1, 5, CodeLeaderNotAvailable},
	}
	p := newMemPartition()
	r := start(t, p)
	cl := r.client()
	for _, s := range steps {
		p.setView(func(v *View) {
			v.Leader, v.LeaderEpoch = s.leader, s.epoch
			v.Replicas = []Node{v.Replicas[0], {ID: 1, Address: epoch.Address{Host: "orders-1", ClientPort: 9092}}, {ID: 2}}
		})
		resp := askOver[*kmsg.MetadataResponse](t, cl, metadataRequest(12, testTopic))
		got := resp.Topics[0].Partitions[0]
		if got.Leader != s.wantLeader || got.LeaderEpoch != s.wantEpoch || Code(got.ErrorCode) != s.want {
			t.Errorf("%s: got leader %d, epoch %d, %v; want %d, %d, %v", s.name, got.Leader, got.LeaderEpoch, Code(got.ErrorCode), s.wantLeader, s.wantEpoch, s.want)
		}
		if resp.ControllerID < 0 {
			t.Errorf("%s: no controller", s.name)
		}
	}
}

func TestFindCoordinatorSaysThatGroupsAreNotServed(t *testing.T) {
	r := start(t, newMemPartition())
	for version := int16(0); version <= 4; version++ {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorKey, req.CoordinatorKeys = version, "g", []string{"g"}
		resp := ask[*kmsg.FindCoordinatorResponse](r, req)
		code, message := resp.ErrorCode, resp.ErrorMessage
		if version >= 4 {
			code, message = resp.Coordinators[0].ErrorCode, resp.Coordinators[0].ErrorMessage
		}
		if Code(code) != CodeCoordinatorNotAvailable || version >= 1 && *message != groupsRefused {
			t.Errorf("version %d: %v, %v", version, Code(code), message)
		}
	}
}

func TestTopicsAreNotMadeOrDeletedHere(t *testing.T) {
	r := start(t, newMemPartition())
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 5
	for _, name := range []string{testTopic, "other"} {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic = name
		create.Topics = append(create.Topics, rt)
	}
	created := ask[*kmsg.CreateTopicsResponse](r, create)
	if a, b := Code(created.Topics[0].ErrorCode), Code(created.Topics[1].ErrorCode); a != CodeTopicAlreadyExists || b != CodePolicyViolation {
		t.Errorf("create gave %v for ours, %v for another", a, b)
	}
	for _, version := range []int16{1, 6} {
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version, del.TopicNames = version, []string{testTopic}
		del.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr(testTopic)}}
		if got := Code(ask[*kmsg.DeleteTopicsResponse](r, del).Topics[0].ErrorCode); got != CodePolicyViolation {
			t.Errorf("delete version %d gave %v", version, got)
		}
	}
}

func TestInitProducerID(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = 4
	first, second := ask[*kmsg.InitProducerIDResponse](r, req), ask[*kmsg.InitProducerIDResponse](r, req)
	if first.ErrorCode != 0 || first.ProducerID < 0 || first.ProducerID == second.ProducerID || first.ProducerEpoch != 0 {
		t.Errorf("got %+v and %+v", first, second)
	}
	p.change(func() { p.failWith = core.ErrNotLeader })
	if got := ask[*kmsg.InitProducerIDResponse](r, req); Code(got.ErrorCode) != CodeCoordinatorLoadInProgress || got.ProducerID != -1 {
		t.Errorf("a follower answered %+v", got)
	}
	req.TransactionalID = kmsg.StringPtr("tx")
	if got := ask[*kmsg.InitProducerIDResponse](r, req); Code(got.ErrorCode) != CodeInvalidRequest || got.ProducerID != -1 {
		t.Errorf("a transactional id got %+v", got)
	}
}

func TestDescribeClusterAgreesWithMetadata(t *testing.T) {
	r := start(t, newMemPartition())
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version, req.EndpointType = 1, 1
	resp := ask[*kmsg.DescribeClusterResponse](r, req)
	if resp.ErrorCode != 0 || resp.ClusterID != testTopicID.String() || resp.ControllerID != 0 || len(resp.Brokers) != 1 {
		t.Errorf("got %+v", resp)
	}
	req.EndpointType = 2
	if got := ask[*kmsg.DescribeClusterResponse](r, req); Code(got.ErrorCode) != CodeUnsupportedVersion {
		t.Errorf("controller endpoints got %v", Code(got.ErrorCode))
	}
}
