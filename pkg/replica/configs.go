package replica

import (
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// Configs implements kafka.Partition: the settings in force, under Kafka's names and with
// Kafka's defaults.
func (r *Replica) Configs() (topic, broker []kafka.ConfigEntry) {
	s := r.settings.Load()
	return topicConfigs(s, r.view().MinISR), r.brokerConfigs(s)
}

// unlimited is Kafka's Long.MAX_VALUE.
const unlimited = "9223372036854775807"

func topicConfigs(s *Settings, minISR int) []kafka.ConfigEntry {
	flush, timestamps := unlimited, "CreateTime"
	if s.FlushEveryBatch {
		flush = "1"
	}
	if s.AppendTime {
		timestamps = "LogAppendTime"
	}
	ratio := strconv.FormatFloat(float64(s.MinDirtyPercent)/100, 'g', -1, 64)
	if !strings.Contains(ratio, ".") {
		ratio += ".0" // as Java writes it
	}
	var cleanup []string
	if s.Cleanup.Compacts() {
		cleanup = append(cleanup, "compact")
	}
	if s.Cleanup.Deletes() {
		cleanup = append(cleanup, "delete")
	}
	return []kafka.ConfigEntry{
		{Name: "cleanup.policy", Value: strings.Join(cleanup, ","), Default: "delete", Type: kmsg.ConfigTypeList, From: "spec.log.cleanupPolicy"},
		{Name: "delete.retention.ms", Value: millis(s.DeleteRetention), Default: "86400000", Type: kmsg.ConfigTypeLong, From: "spec.log.deleteRetentionSeconds"},
		{Name: "flush.messages", Value: flush, Default: unlimited, Type: kmsg.ConfigTypeLong, From: "spec.log.flush"},
		{Name: "max.message.bytes", Value: strconv.Itoa(s.MaxMessageBytes), Default: "1048588", Type: kmsg.ConfigTypeInt, From: "spec.log.maxMessageBytes"},
		{Name: "message.timestamp.after.max.ms", Value: millis(s.TimestampMaxAhead), Default: "3600000", Type: kmsg.ConfigTypeLong, From: "spec.log.messageTimestampAfterMaxSeconds"},
		{Name: "message.timestamp.before.max.ms", Value: orUnlimited(s.TimestampMaxBehind), Default: unlimited, Type: kmsg.ConfigTypeLong, From: "spec.log.messageTimestampBeforeMaxSeconds"},
		{Name: "message.timestamp.type", Value: timestamps, Default: "CreateTime", Type: kmsg.ConfigTypeString, From: "spec.log.messageTimestampType"},
		{Name: "min.cleanable.dirty.ratio", Value: ratio, Default: "0.5", Type: kmsg.ConfigTypeDouble, From: "spec.log.minDirtyRatioPercent"},
		{Name: "min.compaction.lag.ms", Value: millis(s.MinCompactionLag), Default: "0", Type: kmsg.ConfigTypeLong, From: "spec.log.minCompactionLagSeconds"},
		{Name: "min.insync.replicas", Value: strconv.Itoa(minISR), Default: "1", Type: kmsg.ConfigTypeInt, From: "spec.minInSyncReplicas"},
		{Name: "retention.bytes", Value: strconv.FormatInt(s.RetentionBytes, 10), Default: "-1", Type: kmsg.ConfigTypeLong, From: "spec.log.retentionBytes"},
		{Name: "retention.ms", Value: millis(s.Retention), Default: "604800000", Type: kmsg.ConfigTypeLong, From: "spec.log.retentionSeconds"},
		{Name: "segment.bytes", Value: strconv.FormatInt(s.SegmentBytes, 10), Default: "1073741824", Type: kmsg.ConfigTypeInt, From: "spec.log.segmentBytes"},
		{Name: "segment.ms", Value: orUnlimited(s.SegmentAge), Default: "604800000", Type: kmsg.ConfigTypeLong, From: "spec.log.segmentSeconds"},
	}
}

func (r *Replica) brokerConfigs(s *Settings) []kafka.ConfigEntry {
	self := strconv.Itoa(int(r.identity.ID))
	return []kafka.ConfigEntry{
		{Name: "auto.create.topics.enable", Value: "false", Default: "true", Type: kmsg.ConfigTypeBoolean, From: "a topic is a ReplicatedPartition"},
		{Name: "node.id", Value: self, Type: kmsg.ConfigTypeInt, From: "the replica id"},
		{Name: "producer.id.expiration.ms", Value: millis(s.ProducerExpiry), Default: "86400000", Type: kmsg.ConfigTypeInt, From: "spec.log.producerIdExpirationSeconds"},
		{Name: "replica.fetch.response.max.bytes", Value: strconv.Itoa(s.FetchMaxBytes), Default: "10485760", Type: kmsg.ConfigTypeInt, From: "spec.replication.fetchMaxBytes"},
		{Name: "replica.fetch.wait.max.ms", Value: millis(s.FetchMaxWait), Default: "500", Type: kmsg.ConfigTypeInt, From: "spec.replication.fetchMaxWaitMilliseconds"},
		{Name: "replica.lag.time.max.ms", Value: millis(s.LagTimeMax), Default: "30000", Type: kmsg.ConfigTypeLong, From: "spec.replication.lagTimeMaxSeconds"},
	}
}

// millis is a time in Kafka's unit; any negative one is "no limit", -1.
func millis(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// orUnlimited is millis where zero or less is no limit.
func orUnlimited(d time.Duration) string {
	if d <= 0 {
		return unlimited
	}
	return millis(d)
}
