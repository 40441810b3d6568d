package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateTopics (key 19).
//
// Versions 0 to 7 are served, and nothing is ever created: our topic already exists
// (TOPIC_ALREADY_EXISTS, which "create if missing" tools take for success), and
// another would be another ReplicatedPartition (POLICY_VIOLATION).
var apiCreateTopics = &api{key: keyCreateTopics, name: "CreateTopics", min: 0, max: 7, handle: (*exchange).createTopics}

const topicsRefused = "a topic here is a ReplicatedPartition object in Kubernetes; create, change and delete it there"

func (x *exchange) createTopics(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.CreateTopicsRequest)
	resp := kmsg.NewPtrCreateTopicsResponse()
	resp.Version = x.version
	ours := x.Partition.View().Topic
	for _, rt := range req.Topics {
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic = rt.Topic
		code, message := CodePolicyViolation, topicsRefused
		if rt.Topic == ours {
			code, message = CodeTopicAlreadyExists, "the topic exists already"
		}
		t.ErrorCode, t.ErrorMessage = x.fail(code), &message
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
