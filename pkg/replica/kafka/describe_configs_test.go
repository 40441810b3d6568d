package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func describeConfigs(version int16, kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = version
	q := kmsg.NewDescribeConfigsRequestResource()
	q.ResourceType, q.ResourceName, q.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, q)
	return req
}

func TestDescribeConfigsOfTheTopicAndTheBroker(t *testing.T) {
	r := start(t, newMemPartition())
	for version := apiDescribeConfigs.min; version <= apiDescribeConfigs.max; version++ {
		req := describeConfigs(version, kmsg.ConfigResourceTypeTopic, testTopic)
		req.IncludeDocumentation, req.IncludeSynonyms = true, true
		got := ask[*kmsg.DescribeConfigsResponse](r, req).Resources[0]
		if got.ErrorCode != 0 || len(got.Configs) != 2 {
			t.Fatalf("version %d: %+v", version, got)
		}
		d, own := got.Configs[0], got.Configs[1]
		if d.Name != "segment.bytes" || *d.Value != "5" || d.Source != kmsg.ConfigSourceDefaultConfig || !d.ReadOnly || len(d.ConfigSynonyms) != 1 {
			t.Errorf("version %d, as by default: %+v", version, d)
		}
		if own.Name != "retention.bytes" || *own.Value != "7" || own.Source != kmsg.ConfigSourceDynamicTopicConfig || len(own.ConfigSynonyms) != 2 || *own.ConfigSynonyms[1].Value != "-1" {
			t.Errorf("version %d, its own: %+v", version, own)
		}
		if version >= 3 && (own.ConfigType != kmsg.ConfigTypeLong || own.Documentation == nil || *own.Documentation != "spec.log.retentionBytes") {
			t.Errorf("version %d: type %v, documentation %v", version, own.ConfigType, own.Documentation)
		}
	}
	one := ask[*kmsg.DescribeConfigsResponse](r, describeConfigs(4, kmsg.ConfigResourceTypeTopic, testTopic, "retention.bytes", "unknown")).Resources[0]
	if len(one.Configs) != 1 || one.Configs[0].Name != "retention.bytes" || one.Configs[0].Documentation != nil || one.Configs[0].ConfigSynonyms != nil {
		t.Errorf("one key: %+v", one)
	}
	broker := ask[*kmsg.DescribeConfigsResponse](r, describeConfigs(4, kmsg.ConfigResourceTypeBroker, "0")).Resources[0]
	if broker.ErrorCode != 0 || len(broker.Configs) != 1 || broker.Configs[0].Source != kmsg.ConfigSourceStaticBrokerConfig {
		t.Errorf("the broker: %+v", broker)
	}
}

func TestDescribeConfigsRefuses(t *testing.T) {
	r := start(t, newMemPartition())
	twice := describeConfigs(4, kmsg.ConfigResourceTypeTopic, testTopic)
	twice.Resources = append(twice.Resources, twice.Resources[0])
	for _, tc := range []struct {
		name string
		req  *kmsg.DescribeConfigsRequest
		want string
	}{
		{"another topic", describeConfigs(4, kmsg.ConfigResourceTypeTopic, "other"), "[UNKNOWN_TOPIC_OR_PARTITION]"},
		{"another broker", describeConfigs(4, kmsg.ConfigResourceTypeBroker, "1"), "[INVALID_REQUEST]"},
		{"a group", describeConfigs(4, kmsg.ConfigResourceTypeGroupConfig, "g"), "[INVALID_REQUEST]"},
		{"the same twice", twice, "[NONE INVALID_REQUEST]"},
	} {
		var codes []Code
		for _, got := range ask[*kmsg.DescribeConfigsResponse](r, tc.req).Resources {
			codes = append(codes, Code(got.ErrorCode))
			if (got.ErrorCode != 0) != (got.ErrorMessage != nil) || (got.ErrorCode != 0) != (len(got.Configs) == 0) {
				t.Errorf("%s: %+v", tc.name, got)
			}
		}
		if fmt.Sprint(codes) != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, codes, tc.want)
		}
	}
}
