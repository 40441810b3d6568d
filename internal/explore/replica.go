package explore

import (
	"encoding/binary"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// The limits of the core, and how time passes: see [core.Core.AppendState].
const (
	lagTime = time.Hour
	long    = 3 * lagTime
	pause   = time.Second
	lease   = 100 * 365 * 24 * time.Hour // no exploration sees its end
)

// replica is all that one replica is: its volume, and its process while that is up.
// It is never changed once it has been interned.
type replica struct {
	id        epoch.ReplicaID
	log       *memoryLog
	directory int8 // counts the directory ids that it has had
	void      bool // the directory id is to be replaced at the next start
	hw        epoch.Offset
	core      *core.Core // nil while it is down
	now       time.Duration
	reading   bool // a quorum read of the record is under way
}

func (r *replica) clone() *replica {
	n := *r
	n.log = r.log.clone()
	if r.core != nil {
		n.core = r.core.Clone(n.log)
	}
	return &n
}

func (r *replica) directoryID() epoch.UUID {
	return epoch.UUID{byte(r.id + 1), byte(r.directory)}
}

// session is that of the process, NoSession while it is down.
func (r *replica) session() epoch.Session {
	if r.core == nil {
		return epoch.NoSession
	}
	return r.core.Identity().Session
}

// crash ends the process; only what is on the volume stays.
func (r *replica) crash(staleCheckpoint bool) {
	r.hw = r.core.HighWatermark()
	if staleCheckpoint {
		r.hw = 0
	}
	r.core, r.reading, r.now = nil, false, 0
}

// appendState appends a canonical form.
func (r *replica) appendState(b []byte, everyBatch bool) []byte {
	b = append(b, byte(r.id), byte(r.directory), bit(r.void), bit(r.core != nil), bit(r.reading), byte(len(r.log.entries)))
	for _, e := range r.log.entries {
		b = append(b, byte(e.epoch), byte(e.value))
	}
	if everyBatch {
		b = append(b, byte(r.log.synced))
	}
	for _, e := range r.log.cache.Entries() {
		b = append(b, byte(e.Epoch), byte(e.Start))
	}
	b = append(b, 0xff)
	if r.core == nil {
		return append(b, byte(r.hw))
	}
	return r.core.AppendState(b, appendRecord)
}

// appendRecord appends a canonical form of a record that simplify has been at.
func appendRecord(b []byte, s epoch.Snapshot) []byte {
	r := s.Record
	b = append(b, s.Version...)
	b = append(b, 0xff, byte(r.Leader), byte(r.LeaderEpoch), byte(r.MinISR), byte(r.LastLeader.ID))
	b = binary.AppendVarint(b, int64(r.LeaderSession))
	b = binary.AppendVarint(b, int64(r.PartitionEpoch))
	for _, id := range r.ISR {
		b = append(b, byte(id))
	}
	b = append(b, 0xff, bit(r.Switchover != nil))
	if r.Switchover != nil {
		b = append(b, bit(r.Switchover.Isolated()))
		b = binary.AppendVarint(b, int64(r.Switchover.Session))
	}
	for _, p := range r.Replicas {
		b = append(b, byte(p.ID), p.DirectoryID[1], bit(p.Gone)|bit(p.Stopping)<<1|bit(p.Adding)<<2|bit(p.Removing)<<3)
		b = binary.AppendVarint(b, int64(p.Session))
	}
	return b
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// simplify takes out of a record what no rule explored here looks at.
func simplify(r epoch.Record) epoch.Record {
	r.Progress, r.Heartbeat, r.ElectionReason = nil, epoch.Heartbeat{}, ""
	r.Changes = []epoch.Change{r.LastChange()}
	return r
}
