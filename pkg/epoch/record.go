package epoch

import (
	"slices"
	"time"
)

// Record is the state of one partition: who leads, in which epoch, and who may
// lead next. It is a value; the rules never change one in place.
//
// Two records with the same partition epoch and the same last change id are the
// same record. [Record.Progress] and [Record.Heartbeat] are not part of that
// identity: the leader writes them without a change of state.
type Record struct {
	// TopicID is the UID of the ReplicatedPartition that the record belongs to.
	TopicID UUID
	// Leader is the replica that leads, or NoReplica.
	Leader ReplicaID
	// LeaderSession is the session of the process that leads: a process leads only
	// an epoch whose record names its own session.
	LeaderSession Session
	// LeaderEpoch is 0 before the first election and grows by one with each.
	LeaderEpoch LeaderEpoch
	// PartitionEpoch is 1 in a new record and grows by one with each change.
	PartitionEpoch PartitionEpoch
	// WantedMinISR is spec.minInSyncReplicas as last applied to the record.
	WantedMinISR int
	// MinISR is the effective min ISR: min(WantedMinISR, assigned replicas that
	// are not being added). It changes only here, never by reading the spec.
	MinISR int
	// ISR holds the in-sync replicas in ascending order: each of them has every
	// record below the high watermark, dead ones included.
	ISR []ReplicaID
	// Replicas is the assignment in ascending order of id.
	Replicas []Replica
	// LastLeader is the winner of the last election, kept while there is no leader.
	LastLeader LastLeader
	// ElectionReason says why the last election was held.
	ElectionReason ElectionReason
	// Switchover, when set, asks the process of that session to hand over.
	Switchover *Switchover
	// Recovery, when set, freezes the record: epochs were seen to go backwards
	// (DESIGN.md rule 7) and nobody changes anything until a user has decided.
	Recovery *Recovery
	// Recovered tells of the last recovery, nil if there was none.
	Recovered *Recovered
	// UncleanElection describes the last election from outside the ISR, if any.
	UncleanElection *UncleanElection
	// Changes holds the newest changes, oldest first, at most MaxChanges.
	Changes []Change
	// Progress is what the leader last told about the replicas; nil before that.
	Progress *Progress
	// Heartbeat is the leader's sign of life.
	Heartbeat Heartbeat
}

// MaxChanges bounds Record.Changes.
const MaxChanges = 64

// Replica is one assigned replica. The zero session means that no process has
// registered yet, the zero directory id that no volume has.
type Replica struct {
	ID          ReplicaID `json:"id"`
	DirectoryID UUID      `json:"directoryID,omitzero"`
	Session     Session   `json:"session,omitempty"`
	StartID     StartID   `json:"startID,omitempty"`
	// Address is the host that serves this replica's ports, for clients and peers.
	Address Address `json:"address,omitzero"`
	// Adding marks a replica that has not been in the ISR yet. It leaves by the
	// change that puts the replica into the ISR.
	Adding bool `json:"adding,omitempty"`
	// Removing marks a replica that the assignment is to lose.
	Removing bool `json:"removing,omitempty"`
	// Stopping marks a process that is about to end in good order: the leader takes
	// it out of the ISR while it still fetches, and it is elected only if nobody else
	// can be. The next registration clears it.
	Stopping bool `json:"stopping,omitempty"`
	// Gone marks a session whose process is known to have ended. The next
	// registration clears it.
	Gone bool `json:"gone,omitempty"`
	// VolumeID names the volume for its whole life, whatever directory ids it had.
	VolumeID UUID `json:"volumeID,omitzero"`
	// LastEpoch and LogEndOffset are those of the log at registration.
	LastEpoch    LeaderEpoch `json:"lastEpoch"`
	LogEndOffset Offset      `json:"logEndOffset"`
	// RestartCount is the restart count of the container that registered, so that
	// a terminated container is matched with the session that died in it.
	RestartCount int32 `json:"restartCount,omitempty"`
	// PodUID is the pod that registered.
	PodUID string `json:"podUID,omitempty"`
}

// Address tells where a replica listens. Host holds no port.
type Address struct {
	Host            string `json:"host,omitempty"`
	ClientPort      int32  `json:"clientPort,omitempty"`
	ReplicationPort int32  `json:"replicationPort,omitempty"`
}

// LastLeader remembers a leader, with the volume that it led on.
type LastLeader struct {
	ID          ReplicaID   `json:"id"`
	VolumeID    UUID        `json:"volumeID,omitzero"`
	LeaderEpoch LeaderEpoch `json:"leaderEpoch"`
}

// Switchover asks one session of the leader to hand over its leadership.
type Switchover struct {
	Session Session `json:"session"`
	Reason  string  `json:"reason,omitempty"`
	// To is who is to lead; nil leaves it to the leader.
	To *ReplicaID `json:"to,omitempty"`
}

// Change identifies one change of the record.
type Change struct {
	PartitionEpoch PartitionEpoch `json:"p"`
	ID             ChangeID       `json:"id"`
	LeaderEpoch    LeaderEpoch    `json:"l"`
}

// Heartbeat is the leader's renewal as the record shows it. An observer compares
// Renewed only for being the same as before: clocks are never compared.
type Heartbeat struct {
	Renewed  time.Time
	Acquired time.Time
	Duration time.Duration
}

// Progress is the leader's view of the partition, written with its heartbeat.
type Progress struct {
	HighWatermark  Offset            `json:"hw"`
	LogStartOffset Offset            `json:"logStart"`
	Replicas       []ReplicaProgress `json:"replicas,omitempty"`
	// FlushEveryBatch is the durability in effect: true for EveryBatch.
	FlushEveryBatch bool `json:"flushEveryBatch,omitempty"`
	// TookOver is the leader epoch that the leader has taken over: its start offset
	// is durable and it serves.
	TookOver LeaderEpoch `json:"tookOver"`
}

// ReplicaProgress is one replica as the leader knows it.
type ReplicaProgress struct {
	ID            ReplicaID `json:"id"`
	LogEndOffset  Offset    `json:"leo"`
	HighWatermark Offset    `json:"hw"`
	// LeaderEpoch is the last epoch in the replica's log, NoEpoch if unknown.
	LeaderEpoch LeaderEpoch `json:"epoch"`
	// Session is that of the fetch that told so, NoSession if it has not fetched.
	Session Session `json:"session,omitempty"`
	// Live reports that it fetches and is caught up within the lag limit.
	Live bool `json:"live"`
	// BytesBehind is about how many bytes of the leader's log a replica that is not in
	// sync has still to copy; 0 for the others, and while nothing is known of it.
	BytesBehind int64 `json:"behind,omitempty"`
	Trouble
}

// Trouble is what a replica says itself of its volume and its listeners.
type Trouble struct {
	// Full says that it refuses appends, since the volume is full.
	Full bool `json:"full,omitempty"`
	// Damaged says that its log holds bytes that are not what was written.
	Damaged bool `json:"damaged,omitempty"`
	// Deaf says that a listener for clients outside of the cluster could not be opened.
	Deaf bool `json:"deaf,omitempty"`
}

// ElectionReason says why an election was held.
type ElectionReason string

// The reasons of elections, shared with events and the status.
const (
	ReasonFirstLeader     ElectionReason = "FirstLeader"
	ReasonRegistered      ElectionReason = "Registered"
	ReasonProcessDied     ElectionReason = "ProcessDied"
	ReasonLeaseExpired    ElectionReason = "LeaseExpired"
	ReasonSwitchover      ElectionReason = "Switchover"
	ReasonPodTerminating  ElectionReason = "PodTerminating"
	ReasonLeaderStuck     ElectionReason = "LeaderStuck"
	ReasonRemoved         ElectionReason = "Removed"
	ReasonUnclean         ElectionReason = "Unclean"
	ReasonLastKnownLeader ElectionReason = "LastKnownLeader"
)

// New makes the record of a new partition: nobody leads, and every replica is in
// the ISR since an empty log has everything below high watermark 0.
func New(topicID UUID, ids []ReplicaID, wantedMinISR int, change ChangeID) Record {
	r := Record{TopicID: topicID, Leader: NoReplica, LastLeader: LastLeader{ID: NoReplica, LeaderEpoch: NoEpoch}, WantedMinISR: wantedMinISR}
	for _, id := range ids {
		r.Replicas = append(r.Replicas, Replica{ID: id, LastEpoch: NoEpoch})
	}
	slices.SortFunc(r.Replicas, func(a, b Replica) int { return int(a.ID) - int(b.ID) })
	for _, p := range r.Replicas {
		r.ISR = append(r.ISR, p.ID)
	}
	return r.next(change)
}

// Clone returns a copy that shares no memory with r.
func (r Record) Clone() Record {
	r.ISR = slices.Clone(r.ISR)
	r.Replicas = slices.Clone(r.Replicas)
	r.Changes = slices.Clone(r.Changes)
	r.Switchover = clonePtr(r.Switchover)
	r.Recovery = clonePtr(r.Recovery)
	if r.Recovery != nil {
		r.Recovery.Reports, r.Recovery.Assigned = slices.Clone(r.Recovery.Reports), slices.Clone(r.Recovery.Assigned)
	}
	r.Recovered = clonePtr(r.Recovered)
	r.UncleanElection = clonePtr(r.UncleanElection)
	if r.Progress != nil {
		p := *r.Progress
		p.Replicas = slices.Clone(p.Replicas)
		r.Progress = &p
	}
	return r
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Replica returns the assigned replica of that id.
func (r Record) Replica(id ReplicaID) (Replica, bool) {
	for _, p := range r.Replicas {
		if p.ID == id {
			return p, true
		}
	}
	return Replica{}, false
}

// InSync reports whether id is in the ISR.
func (r Record) InSync(id ReplicaID) bool { return slices.Contains(r.ISR, id) }

// LastChange is the newest change; the zero Change if the record has none.
func (r Record) LastChange() Change {
	if len(r.Changes) == 0 {
		return Change{}
	}
	return r.Changes[len(r.Changes)-1]
}

// Sees reports whether the history of r contains the change c: whether a record that
// was known to end with c has only gone on since. A quorum read that does not see a
// change known before it began is a regression (rule 7). It is unknown, and reported as
// true, when c is older than what the record remembers. A record that a recovery made
// goes on from everything known before it.
func (r Record) Sees(c Change) bool {
	if r.Recovered != nil && c.PartitionEpoch < r.Recovered.PartitionEpoch {
		return true
	}
	if len(r.Changes) == 0 || c.PartitionEpoch < r.Changes[0].PartitionEpoch {
		return c.PartitionEpoch <= r.PartitionEpoch
	}
	return slices.Contains(r.Changes, c)
}

// next stamps a changed record: partition epoch +1, the change remembered, the
// effective min ISR brought in line with the assignment.
func (r Record) next(change ChangeID) Record {
	r.PartitionEpoch++
	r.MinISR = r.MinISRWith(nil)
	r.Changes = append(slices.Clone(r.Changes), Change{PartitionEpoch: r.PartitionEpoch, ID: change, LeaderEpoch: r.LeaderEpoch})
	if n := len(r.Changes); n > MaxChanges {
		r.Changes = r.Changes[n-MaxChanges:]
	}
	return r
}

// MinISRWith is what the effective min ISR will be once the replicas named have
// joined the ISR: a replica that is being added begins to count then.
func (r Record) MinISRWith(joining []ReplicaID) int {
	full := 0
	for _, p := range r.Replicas {
		if !p.Adding || slices.Contains(joining, p.ID) {
			full++
		}
	}
	return max(1, min(r.WantedMinISR, full))
}
