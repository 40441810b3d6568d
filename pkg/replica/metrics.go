package replica

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/pkg/replica/core"
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
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
