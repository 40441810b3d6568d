package replica

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// metrics of one replica. docs/metrics.md lists them.
type metrics struct {
	recordWrites *prometheus.CounterVec
	regressions  prometheus.Counter
	flushSeconds prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		recordWrites: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_record_writes_total",
			Help: "Writes of the partition record by this replica, by result: ok, conflict, rejected, undecided."}, []string{"result"}),
		regressions: prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_record_regressions_total",
			Help: "Times that the partition record was seen to go backwards."}),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tidemark_log_flush_seconds",
			Help: "Time of one fsync of the log.", Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9)}),
	}
	reg.MustRegister(m.recordWrites, m.regressions, m.flushSeconds)
	return m
}

// registerState exports what the replica publishes.
func (r *Replica) registerState(reg prometheus.Registerer) {
	gauge := func(name, help string, value func(*view) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(r.view()) }))
	}
	gauge("tidemark_replica_high_watermark_offset", "First offset not known to be committed.", func(v *view) float64 { return float64(v.HighWatermark) })
	gauge("tidemark_replica_log_end_offset", "Offset of the next record (LEO).", func(v *view) float64 { return float64(v.LogEndOffset) })
	gauge("tidemark_replica_log_start_offset", "Offset of the first record kept.", func(v *view) float64 { return float64(v.LogStartOffset) })
	gauge("tidemark_replica_leader_epoch", "Leader epoch that this replica works under.", func(v *view) float64 { return float64(v.LeaderEpoch) })
	gauge("tidemark_replica_partition_epoch", "Partition epoch of the newest record acted upon.", func(v *view) float64 { return float64(v.PartitionEpoch) })
	gauge("tidemark_replica_leads", "1 while this replica leads.", func(v *view) float64 { return oneIf(v.Role == core.Leader) })
	gauge("tidemark_replica_volume_full", "1 while appends are refused since the volume is full.", func(v *view) float64 { return oneIf(v.Trouble.Full) })
	gauge("tidemark_replica_log_damaged", "1 while the log is known to be damaged on disk.", func(v *view) float64 { return oneIf(v.Trouble.Damaged) })
	gauge("tidemark_replica_live_isr_members", "Members of the ISR that are live.", func(v *view) float64 { return float64(len(v.LiveISR)) })
	r.registerVolume(reg)
	r.registerCompaction(reg)
}

// registerVolume exports the volume's room as it was last measured.
func (r *Replica) registerVolume(reg prometheus.Registerer) {
	gauge := func(name, help string, value func(volume.Room) int64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(r.node.Room())) }))
	}
	gauge("tidemark_replica_volume_capacity_bytes", "What the volume holds; 0 while that is not known.", func(v volume.Room) int64 { return v.Total })
	gauge("tidemark_replica_volume_available_bytes", "What may still be written to the volume.", func(v volume.Room) int64 { return v.Free })
}

// registerCompaction exports what compaction has done in this process.
func (r *Replica) registerCompaction(reg prometheus.Registerer) {
	counter := func(name, help string, value func(node.CompactionTotals) float64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return value(r.node.Compactions()) }))
	}
	gauge := func(name, help string, value func(node.CompactionTotals) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(r.node.Compactions()) }))
	}
	counter("tidemark_log_compacted_bytes_total", "Bytes of the log that compaction has gone through.", func(t node.CompactionTotals) float64 { return float64(t.Read) })
	counter("tidemark_log_compaction_freed_bytes_total", "Bytes that compaction has freed.", func(t node.CompactionTotals) float64 { return float64(t.Freed) })
	gauge("tidemark_log_compaction_last_run_timestamp_seconds", "When the last compaction ended, in seconds since 1970; 0 if none has.", func(t node.CompactionTotals) float64 {
		if t.LastRun.IsZero() {
			return 0
		}
		return float64(t.LastRun.Unix())
	})
	gauge("tidemark_log_dirty_ratio", "Part of what may be compacted that no compaction has seen, from 0 to 1.", func(t node.CompactionTotals) float64 { return t.DirtyRatio })
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
