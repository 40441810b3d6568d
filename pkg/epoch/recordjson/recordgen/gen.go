// Package recordgen makes random partition records for tests: such that every
// record holds what the rules of package epoch keep, and every field takes every
// shape it may have.
package recordgen

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Record makes a record from rng. Times are whole microseconds and durations whole
// seconds, as a Lease keeps them.
func Record(rng *rand.Rand) epoch.Record {
	r := epoch.Record{
		TopicID: uuid(rng), Leader: epoch.NoReplica,
		LastLeader:   epoch.LastLeader{ID: epoch.NoReplica, LeaderEpoch: epoch.NoEpoch},
		WantedMinISR: 1 + rng.IntN(3), MinISR: 1 + rng.IntN(2),
	}
	addChanges(rng, &r)
	addReplicas(rng, &r)
	if len(r.ISR) > 0 && rng.IntN(3) > 0 {
		r.Leader = r.ISR[rng.IntN(len(r.ISR))]
		r.LeaderSession = 1 + epoch.Session(rng.Int64N(int64(r.PartitionEpoch)))
		r.LastLeader = epoch.LastLeader{ID: r.Leader, VolumeID: uuid(rng), LeaderEpoch: r.LeaderEpoch}
		r.ElectionReason = epoch.ReasonLeaseExpired
	}
	if rng.IntN(3) == 0 {
		r.Switchover = &epoch.Switchover{Session: r.LeaderSession, Reason: "drain"}
	}
	if rng.IntN(4) == 0 {
		r.Recovery = recovery(rng, r)
	}
	if rng.IntN(4) == 0 {
		r.Recovered = &epoch.Recovered{PartitionEpoch: r.PartitionEpoch, LeaderEpoch: r.LeaderEpoch, From: r.LastChange(),
			Faithful: [][]epoch.ReplicaID{nil, {1}, {0, 2}}[rng.IntN(3)]}
	}
	if rng.IntN(4) == 0 {
		r.UncleanElection = &epoch.UncleanElection{LeaderEpoch: r.LeaderEpoch, Leader: 2, HighWatermark: epoch.NoOffset}
		if end := epoch.Offset(rng.Int64N(1000)); rng.IntN(2) == 0 {
			r.UncleanElection.LogEndOffset = &end
		}
	}
	if rng.IntN(2) == 0 {
		p := Progress(rng, 4)
		r.Progress = &p
	}
	if rng.IntN(2) == 0 {
		r.Heartbeat = epoch.Heartbeat{
			Renewed:  time.UnixMicro(rng.Int64N(4e15)).UTC(),
			Acquired: time.UnixMicro(rng.Int64N(4e15)).UTC(),
			Duration: time.Duration(1+rng.IntN(600)) * time.Second,
		}
	}
	return r
}

// recovery makes the marks of a frozen record: without reports, as the first one who
// sees the regression may leave it, or with some, and with the newest record.
func recovery(rng *rand.Rand, r epoch.Record) *epoch.Recovery {
	v := &epoch.Recovery{LeaderEpoch: r.LeaderEpoch, PartitionEpoch: r.PartitionEpoch, ReportedBy: 1, Remade: rng.IntN(4) == 0}
	if rng.IntN(2) == 0 {
		v.Reports = []epoch.Report{{ID: 0}, {ID: 2, Known: r.LastChange()}}
		v.Assigned = []epoch.ReplicaID{0, 2, 5}
	}
	if rng.IntN(2) == 0 {
		newest := epoch.New(r.TopicID, []epoch.ReplicaID{0, 2, 5}, 2, "newest")
		v.Newest = &newest
	}
	return v
}

// Progress makes the progress of at most n replicas.
func Progress(rng *rand.Rand, n int) epoch.Progress {
	p := epoch.Progress{
		HighWatermark:   epoch.Offset(rng.Int64()),
		LogStartOffset:  epoch.Offset(rng.Int64N(1000)),
		FlushEveryBatch: rng.IntN(2) == 0,
		TookOver:        epoch.LeaderEpoch(rng.Int32N(100)) - 1,
	}
	for id := range rng.IntN(n + 1) {
		p.Replicas = append(p.Replicas, epoch.ReplicaProgress{
			ID: epoch.ReplicaID(id), LogEndOffset: epoch.Offset(rng.Int64()),
			HighWatermark: epoch.Offset(rng.Int64()), LeaderEpoch: epoch.LeaderEpoch(rng.Int32()), Session: epoch.Session(rng.Int64N(100)),
			Live: rng.IntN(2) == 0, BytesBehind: rng.Int64(), Trouble: epoch.Trouble{Full: rng.IntN(2) == 0, Damaged: rng.IntN(2) == 0, Deaf: rng.IntN(2) == 0},
		})
	}
	return p
}

func addChanges(rng *rand.Rand, r *epoch.Record) {
	r.PartitionEpoch = 1 + epoch.PartitionEpoch(rng.Int64N(1<<40))
	r.LeaderEpoch = epoch.LeaderEpoch(rng.Int32())
	n := rng.IntN(epoch.MaxChanges + 1)
	for i := range n {
		back := epoch.PartitionEpoch(n - 1 - i)
		if r.PartitionEpoch-back < 1 {
			continue
		}
		r.Changes = append(r.Changes, epoch.Change{
			PartitionEpoch: r.PartitionEpoch - back,
			ID:             epoch.ChangeID(fmt.Sprintf("%016x", rng.Uint64())),
			LeaderEpoch:    max(0, r.LeaderEpoch-epoch.LeaderEpoch(back)),
		})
	}
}

func addReplicas(rng *rand.Rand, r *epoch.Record) {
	for id := range epoch.ReplicaID(rng.IntN(9)) {
		if rng.IntN(4) == 0 {
			continue
		}
		p := epoch.Replica{ID: id * 3, Adding: rng.IntN(5) == 0, Removing: rng.IntN(5) == 0}
		if rng.IntN(3) > 0 {
			p.DirectoryID = uuid(rng)
			p.Session = 1 + epoch.Session(rng.Int64N(int64(r.PartitionEpoch)))
			p.StartID = epoch.StartID(fmt.Sprintf("%x", rng.Uint64()))
			p.Address = epoch.Address{Host: "orders-0.orders-replicas", ClientPort: 9092, ReplicationPort: 9093}
			p.RestartCount = rng.Int32N(5)
			p.VolumeID = uuid(rng)
			p.Stopping, p.Gone = rng.IntN(5) == 0, rng.IntN(5) == 0
			p.LastEpoch, p.LogEndOffset = epoch.LeaderEpoch(rng.Int32N(9))-1, epoch.Offset(rng.Int64N(1e12))
			p.PodUID = fmt.Sprintf("%x", rng.Uint64())
		}
		r.Replicas = append(r.Replicas, p)
		if rng.IntN(4) > 0 {
			r.ISR = append(r.ISR, p.ID)
		}
	}
}

func uuid(rng *rand.Rand) epoch.UUID {
	var u epoch.UUID
	for i := range u {
		u[i] = byte(rng.UintN(256))
	}
	u[0] |= 1 // never zero, which means "none"
	return u
}
