package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// The operator's metrics. All are of what this process did or last saw; offsets
// are in the replicas' own metrics.
var (
	// electionsHeld counts by epoch.ElectionReason.
	electionsHeld = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidemark_elections_held_total", Help: "Elections that this operator held, by reason.",
	}, []string{"reason"})
	podsCreated = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tidemark_pods_created_total", Help: "Replica pods created.",
	})
	// podsDeleted counts by PodDeletion.
	podsDeleted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidemark_pods_deleted_total", Help: "Replica pods deleted, by cause.",
	}, []string{"cause"})
	claimsDeleted = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tidemark_volume_claims_deleted_total", Help: "Volume claims of removed replicas deleted.",
	})
	objectsApplied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidemark_objects_applied_total", Help: "Child objects applied, by kind.",
	}, []string{"kind"})
	statusWrites = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tidemark_status_writes_total", Help: "Writes of a ReplicatedPartition's status.",
	})
	leaderEpoch = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_leader_epoch", Help: "Leader epoch in the partition record.",
	}, partitionKey)
	// hasLeader is apart from available: a leader without enough live members still
	// serves reads.
	hasLeader = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_has_leader", Help: "1 while the record names a leader that is not known to be lost.",
	}, partitionKey)
	available = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_available", Help: "1 while a leader serves with at least min ISR live members.",
	}, partitionKey)
	assignedReplicas = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_assigned_replicas", Help: "Replicas that the record assigns.",
	}, partitionKey)
	liveISRMembers = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_live_in_sync_replicas", Help: "Live members of the ISR.",
	}, partitionKey)
	minISR = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_partition_min_in_sync_replicas", Help: "Effective min ISR in the partition record.",
	}, partitionKey)

	partitionKey = []string{"namespace", "partition"}

	partitionGauges = []*prometheus.GaugeVec{leaderEpoch, hasLeader, available, assignedReplicas, liveISRMembers, minISR}
)

// collectors is every metric of this package; docs/metrics.md is checked against it.
func collectors() []prometheus.Collector {
	all := []prometheus.Collector{electionsHeld, podsCreated, podsDeleted, claimsDeleted, objectsApplied, statusWrites}
	for _, g := range partitionGauges {
		all = append(all, g)
	}
	return all
}

func init() { metrics.Registry.MustRegister(collectors()...) }

// showMetrics sets the gauges of one partition.
func showMetrics(o *Observation, isAvailable bool) {
	if o.RecordState != RecordPresent {
		available.WithLabelValues(o.Partition.Namespace, o.Partition.Name).Set(0)
		hasLeader.WithLabelValues(o.Partition.Namespace, o.Partition.Name).Set(0)
		return
	}
	if o.Partition.Spec.Suspend && len(o.Pods) == 0 {
		dropMetrics(o.Partition.Namespace, o.Partition.Name) // nothing is to be alerted about
		return
	}
	set := func(g *prometheus.GaugeVec, v float64) {
		g.WithLabelValues(o.Partition.Namespace, o.Partition.Name).Set(v)
	}
	set(leaderEpoch, float64(o.Record.LeaderEpoch))
	set(assignedReplicas, float64(len(o.Record.Replicas)))
	set(liveISRMembers, float64(len(o.liveMembers())))
	set(minISR, float64(o.Record.MinISR))
	set(hasLeader, oneIf(o.Record.Leader != epoch.NoReplica && o.leaderLost() == ""))
	set(available, oneIf(isAvailable))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// dropMetrics forgets a partition that is gone.
func dropMetrics(namespace, partition string) {
	for _, g := range partitionGauges {
		g.DeleteLabelValues(namespace, partition)
	}
}

// offset turns a known offset into a pointer for the status.
func offset(v epoch.Offset) *int64 {
	if v == epoch.NoOffset {
		return nil
	}
	n := int64(v)
	return &n
}
