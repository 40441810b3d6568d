package kafka

import (
	"strings"
	"syscall"
	"testing"
)

// Kafka's own tools show the settings of a replica, and say which are not Kafka's defaults.
func TestKafkasToolsShowTheSettings(t *testing.T) {
	needKafka(t)
	p, address := replicaOn(t, t.TempDir())
	defer p.end(syscall.SIGTERM)
	produce(t, address, topic, 0, 1) // it serves
	tool := func(args ...string) string {
		t.Helper()
		out, err := script(t, append([]string{"class"}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	all := tool("kafka.admin.ConfigCommand", "--bootstrap-server", address, "--describe", "--all", "--entity-type", "topics", "--entity-name", topic)
	for _, want := range []string{"cleanup.policy=delete", "segment.ms=604800000", "message.timestamp.type=CreateTime", "message.timestamp.after.max.ms=3600000",
		"message.timestamp.before.max.ms=9223372036854775807", "retention.bytes=-1", "segment.bytes=16384 "} {
		if !strings.Contains(all, "  "+want) {
			t.Errorf("kafka-configs does not show %s:\n%s", want, all)
		}
	}
	broker := tool("kafka.admin.ConfigCommand", "--bootstrap-server", address, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "0")
	if !strings.Contains(broker, "producer.id.expiration.ms=86400000") {
		t.Errorf("kafka-configs shows of the broker:\n%s", broker)
	}
	own := tool("kafka.admin.ConfigCommand", "--bootstrap-server", address, "--describe", "--entity-type", "topics", "--entity-name", topic)
	if !strings.Contains(own, "segment.bytes=16384 ") || strings.Contains(own, "segment.ms") {
		t.Errorf("kafka-configs shows as the topic's own settings:\n%s", own)
	}
}
