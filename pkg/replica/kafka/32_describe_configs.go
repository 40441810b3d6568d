package kafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeConfigs (key 32).
//
// Versions 1 to 4 are served; v3 adds type and documentation. The topic has what its spec
// says under Kafka's names, and the answering replica, as a broker, what Kafka keeps there.
// All is read-only, since it is changed in the ReplicatedPartition; what is not Kafka's
// default has the source of a topic's own (or, of a broker, of the static) configuration,
// so that Kafka's tools show it.
//
//   - No names, and an empty list of them, ask for all.
//   - Another topic is UNKNOWN_TOPIC_OR_PARTITION, another broker or type INVALID_REQUEST,
//     and so is asking for the same twice in a request: the answer is so much longer than
//     the question.
var apiDescribeConfigs = &api{key: keyDescribeConfigs, name: "DescribeConfigs", min: 1, max: 4, handle: (*exchange).describeConfigs}

// ConfigEntry is a setting.
type ConfigEntry struct {
	// Name, Value and Default are Kafka's; with Default the setting is as Kafka's is where
	// nobody has set it.
	Name, Value, Default string
	Type                 kmsg.ConfigType
	// From says where it is set.
	From string
}

func (x *exchange) describeConfigs(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.DescribeConfigsRequest)
	resp := kmsg.NewPtrDescribeConfigsResponse()
	resp.Version = x.version
	answered := map[kmsg.ConfigResourceType]bool{}
	for _, q := range req.Resources {
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = q.ResourceType, q.ResourceName
		entries, code, message := x.described(q)
		if code == CodeNone && answered[q.ResourceType] {
			code, message = CodeInvalidRequest, "it is asked for twice in one request"
		}
		if code != CodeNone {
			r.ErrorCode, r.ErrorMessage = x.fail(code), &message
			resp.Resources = append(resp.Resources, r)
			continue
		}
		answered[q.ResourceType] = true
		own := kmsg.ConfigSourceDynamicTopicConfig
		if q.ResourceType == kmsg.ConfigResourceTypeBroker {
			own = kmsg.ConfigSourceStaticBrokerConfig
		}
		for _, e := range entries {
			if len(q.ConfigNames) == 0 || slices.Contains(q.ConfigNames, e.Name) {
				r.Configs = append(r.Configs, e.described(own, req.IncludeSynonyms, req.IncludeDocumentation))
			}
		}
		resp.Resources = append(resp.Resources, r)
	}
	return resp, nil
}

// described are the settings of a resource, or why there are none.
func (x *exchange) described(q kmsg.DescribeConfigsRequestResource) ([]ConfigEntry, Code, string) {
	view := x.Partition.View()
	topic, broker := x.Partition.Configs()
	switch q.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if q.ResourceName != view.Topic {
			return nil, CodeUnknownTopicOrPartition, "only the topic " + view.Topic + " is here"
		}
		return topic, CodeNone, ""
	case kmsg.ConfigResourceTypeBroker:
		if self := strconv.Itoa(int(view.Self)); q.ResourceName != self && q.ResourceName != "" {
			return nil, CodeInvalidRequest, fmt.Sprintf("Unexpected broker id, expected %s or empty string, but received %s", self, q.ResourceName)
		}
		return broker, CodeNone, ""
	default:
		return nil, CodeInvalidRequest, "only topics and brokers have settings here"
	}
}

// described is the entry as the wire has it.
func (e ConfigEntry) described(own kmsg.ConfigSource, synonyms, documentation bool) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.ConfigType, c.ReadOnly = e.Name, &e.Value, e.Type, true
	c.Source = kmsg.ConfigSourceDefaultConfig
	if e.Value != e.Default {
		c.Source = own
	}
	if documentation {
		c.Documentation = &e.From
	}
	if !synonyms {
		return c
	}
	if c.Source == own {
		c.ConfigSynonyms = append(c.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{Name: e.Name, Value: &e.Value, Source: own})
	}
	c.ConfigSynonyms = append(c.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{Name: e.Name, Value: &e.Default, Source: kmsg.ConfigSourceDefaultConfig})
	return c
}
