package incluster

import (
	"time"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// Settings are what a spec means to a replica.
func Settings(p *v1alpha1.ReplicatedPartition) replica.Settings {
	s := replica.DefaultSettings()
	set := func(to *int64, v int64) {
		if v != 0 {
			*to = v
		}
	}
	set(&s.SegmentBytes, p.Spec.Log.SegmentBytes)
	set(&s.RetentionBytes, p.Spec.Log.RetentionBytes)
	if v := p.Spec.Log.RetentionSeconds; v != 0 {
		s.Retention = time.Duration(v) * time.Second
	}
	compaction(&s, p.Spec.Log)
	times(&s, p.Spec.Log)
	if v := p.Spec.Log.MaxMessageBytes; v != 0 {
		s.MaxMessageBytes = int(v)
	}
	if v := p.Spec.Replication.LagTimeMaxSeconds; v != 0 {
		s.LagTimeMax = time.Duration(v) * time.Second
	}
	if v := p.Spec.Replication.FetchMaxWaitMilliseconds; v != 0 {
		s.FetchMaxWait = time.Duration(v) * time.Millisecond
	}
	if v := p.Spec.Replication.FetchMaxBytes; v != 0 {
		s.FetchMaxBytes = int(v)
	}
	s.FlushEveryBatch = p.EffectiveFlush() == v1alpha1.FlushEveryBatch
	s.LeaseDuration = p.EffectiveLeaseDuration()
	return s
}

// compaction is what a log's spec says of it. Unset fields keep their defaults.
func compaction(s *replica.Settings, l v1alpha1.LogSpec) {
	switch l.CleanupPolicy {
	case v1alpha1.CleanupCompact:
		s.Cleanup = node.CleanupCompact
	case v1alpha1.CleanupCompactAndDelete:
		s.Cleanup = node.CleanupCompactAndDelete
	}
	if v := l.MinCompactionLagSeconds; v != nil {
		s.MinCompactionLag = time.Duration(*v) * time.Second
	}
	if v := l.DeleteRetentionSeconds; v != nil {
		s.DeleteRetention = time.Duration(*v) * time.Second
	}
	if v := l.MinDirtyRatioPercent; v != nil {
		s.MinDirtyPercent = int(*v)
	}
}

// times is what a log's spec says of the records' times, and of its own.
func times(s *replica.Settings, l v1alpha1.LogSpec) {
	s.AppendTime = l.MessageTimestampType == v1alpha1.TimestampLogAppendTime
	if v := l.MessageTimestampBeforeMaxSeconds; v != nil {
		s.TimestampMaxBehind = time.Duration(*v) * time.Second
	}
	if v := l.MessageTimestampAfterMaxSeconds; v != nil {
		s.TimestampMaxAhead = time.Duration(*v) * time.Second
	}
	if v := l.SegmentSeconds; v != 0 {
		s.SegmentAge = time.Duration(v) * time.Second
	}
	if v := l.ProducerIDExpirationSeconds; v != 0 {
		s.ProducerExpiry = time.Duration(v) * time.Second
	}
}
