package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteTopics (key 20).
//
// Versions 0 to 6 are served, and nothing is ever deleted: our topic is a
// ReplicatedPartition (POLICY_VIOLATION), and there is no other. v5 adds the
// message, v6 names topics by id too.
var apiDeleteTopics = &api{key: keyDeleteTopics, name: "DeleteTopics", min: 0, max: 6, handle: (*exchange).deleteTopics}

const deleteTopicsFirstIDs = 6

func (x *exchange) deleteTopics(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.DeleteTopicsRequest)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.Version = x.version
	topics := req.Topics
	if x.version < deleteTopicsFirstIDs {
		for _, name := range req.TopicNames {
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic = &name
			topics = append(topics, t)
		}
	}
	view := x.Partition.View()
	for _, rt := range topics {
		byID, name := rt.Topic == nil, ""
		if !byID {
			name = *rt.Topic
		}
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		if view.ours(name, rt.TopicID, byID) {
			message := topicsRefused
			t.ErrorCode, t.ErrorMessage = x.fail(CodePolicyViolation), &message
		} else {
			t.ErrorCode = x.fail(unknownTopic(byID))
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
