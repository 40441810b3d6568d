package incluster

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

func TestSettingsOfCompaction(t *testing.T) {
	p := &v1alpha1.ReplicatedPartition{}
	s := Settings(p)
	if s.Cleanup != node.CleanupDelete || s.MinCompactionLag != 0 || s.DeleteRetention != 24*time.Hour || s.MinDirtyPercent != 50 {
		t.Errorf("by default %s, %s, %s, %d", s.Cleanup, s.MinCompactionLag, s.DeleteRetention, s.MinDirtyPercent)
	}
	for policy, want := range map[v1alpha1.CleanupPolicy]node.CleanupPolicy{
		v1alpha1.CleanupDelete: node.CleanupDelete, v1alpha1.CleanupCompact: node.CleanupCompact, v1alpha1.CleanupCompactAndDelete: node.CleanupCompactAndDelete,
	} {
		p.Spec.Log.CleanupPolicy = policy
		if got := Settings(p).Cleanup; got != want || got.String() != string(policy) {
			t.Errorf("policy %s becomes %s", policy, got)
		}
	}
	lag, retention, ratio := int64(60), int64(0), int32(0)
	p.Spec.Log.MinCompactionLagSeconds, p.Spec.Log.DeleteRetentionSeconds, p.Spec.Log.MinDirtyRatioPercent = &lag, &retention, &ratio
	if s := Settings(p); s.MinCompactionLag != time.Minute || s.DeleteRetention != 0 || s.MinDirtyPercent != 0 {
		t.Errorf("set: %s, %s, %d", s.MinCompactionLag, s.DeleteRetention, s.MinDirtyPercent)
	}
}

func TestSettingsOfTimes(t *testing.T) {
	p := &v1alpha1.ReplicatedPartition{}
	s := Settings(p)
	if s.AppendTime || s.TimestampMaxBehind != 0 || s.TimestampMaxAhead != time.Hour || s.SegmentAge != 7*24*time.Hour || s.ProducerExpiry != 24*time.Hour {
		t.Errorf("by default %+v", s)
	}
	behind, ahead := int64(60), int64(5)
	p.Spec.Log = v1alpha1.LogSpec{MessageTimestampBeforeMaxSeconds: &behind, MessageTimestampAfterMaxSeconds: &ahead, SegmentSeconds: 3600, ProducerIDExpirationSeconds: 120}
	if s := Settings(p); s.AppendTime || s.TimestampMaxBehind != time.Minute || s.TimestampMaxAhead != 5*time.Second || s.SegmentAge != time.Hour || s.ProducerExpiry != 2*time.Minute {
		t.Errorf("set: %+v", s)
	}
	p.Spec.Log.MessageTimestampType = v1alpha1.TimestampLogAppendTime
	if !Settings(p).AppendTime {
		t.Error("LogAppendTime does not count")
	}
}

func TestWithoutASpecTheAPIsDefaultsHold(t *testing.T) {
	s := Settings(&v1alpha1.ReplicatedPartition{})
	if s.FetchMaxBytes != 10<<20 || s.SegmentBytes != 256<<20 || s.LagTimeMax != 30*time.Second {
		t.Errorf("fetches of %d bytes, segments of %d, a lag of %s; the API's defaults are 10 MiB, 256 MiB and 30 s", s.FetchMaxBytes, s.SegmentBytes, s.LagTimeMax)
	}
}
