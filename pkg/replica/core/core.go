package core

import (
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Log is what the core asks of the log. It changes only by the owner of the core:
// by effects, and by appends that the owner reports.
type Log interface {
	StartOffset() epoch.Offset
	EndOffset() epoch.Offset
	// FlushedOffset is the offset below which everything is durable.
	FlushedOffset() epoch.Offset
	EpochCache() epoch.Cache
	// SizeFrom is about how many bytes the log holds from an offset on.
	SizeFrom(epoch.Offset) int64
}

// Identity is who this process is, as its registration said.
type Identity struct {
	ID          epoch.ReplicaID
	Session     epoch.Session
	StartID     epoch.StartID
	DirectoryID epoch.UUID
}

// Options may change at run time.
type Options struct {
	// LagTimeMax is how long a member of the ISR may stay behind (Kafka's
	// replica.lag.time.max.ms). Default 10 s.
	LagTimeMax time.Duration
	// DisconnectGrace is how long a member may be without a fetch connection after
	// its last one closed. Default 500 ms.
	DisconnectGrace time.Duration
	// ShowGrace is how long after a takeover a member may take to connect. Default
	// 1 s.
	ShowGrace time.Duration
	// LeaseDuration is the time without a heartbeat after which the leader may be
	// replaced. The leader renews every third of it. Default 10 s.
	LeaseDuration time.Duration
	// FlushEveryBatch counts a log end only up to what has been fsynced.
	FlushEveryBatch bool
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.LagTimeMax, 10*time.Second)
	set(&o.DisconnectGrace, 500*time.Millisecond)
	set(&o.ShowGrace, time.Second)
	set(&o.LeaseDuration, 10*time.Second)
	return o
}

// Role is what this replica does in the partition.
type Role int

// The roles.
const (
	// Idle: not assigned, or nobody leads.
	Idle Role = iota
	// Follower fetches from a leader.
	Follower
	// Leader serves.
	Leader
)

func (r Role) String() string { return [...]string{"Idle", "Follower", "Leader"}[r] }

// Source says how a record was come by.
type Source int

// The sources of records.
const (
	// FromWatch may be old.
	FromWatch Source = iota
	// FromRead is a quorum read.
	FromRead
	// FromWrite is the answer to a write of this process.
	FromWrite
)

// Core is the protocol state of one replica.
type Core struct {
	me       Identity
	opts     Options
	log      Log
	changeID func() epoch.ChangeID

	now        time.Duration  // of the newest call that told the time
	snap       epoch.Snapshot // the newest record acted upon
	role       Role
	hw         epoch.Offset
	epochStart epoch.Offset // leader: where its epoch begins
	takeover   time.Duration
	remotes    map[epoch.ReplicaID]*remote
	waiters    []waiter
	following  following
	rec        recordWriter
	isolation  isolation
	stopping   bool
	holdUntil  time.Duration // leader: appends wait until then, for its successor; 0 if they do not
	trouble    epoch.Trouble // as NoteTrouble last said
	effects    []Effect
}

// New makes the core of a registered process. hw is the checkpointed high
// watermark, a lower bound; changeID draws random ids. The record of the
// registration is told by the first Observe.
func New(me Identity, opts Options, log Log, hw epoch.Offset, changeID func() epoch.ChangeID) *Core {
	c := &Core{me: me, opts: opts.withDefaults(), log: log, changeID: changeID}
	c.hw = min(max(hw, log.StartOffset()), log.EndOffset())
	c.snap.Record.Leader = epoch.NoReplica
	return c
}

// Take returns the effects of the calls since the last Take.
func (c *Core) Take() []Effect {
	out := c.effects
	c.effects = nil
	return out
}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// SetOptions takes over changed options.
func (c *Core) SetOptions(o Options) { c.opts = o.withDefaults() }

// Role is what this replica does now.
func (c *Core) Role() Role { return c.role }

// Record is the newest record acted upon.
func (c *Core) Record() epoch.Record { return c.snap.Record }

// HighWatermark is the first offset not known to be committed.
func (c *Core) HighWatermark() epoch.Offset { return c.hw }

// EpochStart is the offset at which this leader's epoch began.
func (c *Core) EpochStart() epoch.Offset { return c.epochStart }

// Observe takes in a record. Older ones are dropped; states may be skipped, but not the
// change that was acted upon last: a record whose history lacks it is of another one,
// whatever its epoch, and a quorum read decides (rule 7). Nothing is done because of a
// record that waits for recovery but to report what this replica knows: for all else
// it is as if the API server were away.
func (c *Core) Observe(now time.Duration, s epoch.Snapshot, from Source) {
	now = c.passed(now)
	old, rec := c.snap.Record, s.Record
	switch {
	case rec.PartitionEpoch < old.PartitionEpoch && !guard.Off(guard.DropOlderRecord):
		c.heed(rec, from)
		return
	case rec.PartitionEpoch >= old.PartitionEpoch && !rec.Sees(old.LastChange()) && !guard.Off(guard.OneHistory):
		c.readSoon()
		return
	case c.rec.reported && from == FromWatch && rec.PartitionEpoch > old.PartitionEpoch && rec.Recovery == nil && !rec.RecoveredSince(old) && !guard.Off(guard.ReportIsFinal):
		c.readSoon() // it is from before the record was frozen, and what was reported goes without it
		return
	case rec.PartitionEpoch == old.PartitionEpoch:
		if from == FromWatch && c.role == Leader && rec.Recovery == nil {
			return // an older heartbeat of our own: its version is of no use
		}
		c.snap = s
		c.rec.settle(s, from)
		c.heed(rec, from)
		return
	case rec.Recovery != nil && !guard.Off(guard.FrozenRecordIdle):
		c.heed(rec, from)
		return
	}
	if !c.leaveHistory(old, rec) {
		return
	}
	c.snap = s
	c.rec.settle(s, from)
	if !guard.Off(guard.PersistBeforeActing) {
		c.emit(PersistRecord{Record: rec})
	}
	c.act(now, old)
}

// act brings the role in line with a newer record.
func (c *Core) act(now time.Duration, old epoch.Record) {
	rec := c.snap.Record
	me, assigned := rec.Replica(c.me.ID)
	if assigned && c.replaced(rec, me) {
		c.resign(Idle)
		c.emit(Exit{Reason: fmt.Sprintf("the record has replica %d as session %d; this process is session %d, and only a new registration can count again", c.me.ID, me.Session, c.me.Session)})
		return
	}
	if assigned && me.Gone && me.Session == c.me.Session {
		c.resign(Idle)
		c.emit(Exit{Reason: fmt.Sprintf("session %d of replica %d has been declared to have ended; only a new registration can come back", c.me.Session, c.me.ID)})
		return
	}
	switch {
	case assigned && c.leadsBy(rec):
		c.lead(now, old)
	case assigned && rec.Leader != epoch.NoReplica && rec.Leader != c.me.ID:
		c.follow()
	default:
		c.resign(Idle)
	}
	c.emit(Changed{})
}

// replaced reports that the registration of this process does not count any more: a
// newer process has registered, or this replica was dropped from the assignment and
// added again, which starts from nothing. After a recovery a session may have been
// given out twice, in two histories: the start id tells them apart.
func (c *Core) replaced(rec epoch.Record, me epoch.Replica) bool {
	if guard.Off(guard.OwnSession) {
		return false
	}
	return me.Session != c.me.Session || me.StartID != c.me.StartID && !guard.Off(guard.StartOfSession)
}

// leadsBy is rule 2: only the session that the record names leads.
func (c *Core) leadsBy(rec epoch.Record) bool {
	return rec.Leader == c.me.ID && (rec.LeaderSession == c.me.Session || guard.Off(guard.OwnSession))
}

// resign gives up whatever role this replica had.
func (c *Core) resign(to Role) {
	c.holdUntil = 0
	if c.role == Leader {
		c.failWaiters(ErrNotLeader)
		c.remotes = nil
		c.epochStart = 0
		c.rec.pending = nil
	}
	if c.role == Follower {
		c.following = following{}
		if to != Follower {
			c.emit(StopFollowing{})
		}
	}
	c.role = to
}

// passed is the newest time told: what is known of other replicas never gets older by a
// caller that looked at its clock before another one did.
func (c *Core) passed(now time.Duration) time.Duration {
	c.now = max(c.now, now)
	return c.now
}

// Tick lets time pass. Call it several times per lag time and lease duration.
func (c *Core) Tick(now time.Duration) {
	now = c.passed(now)
	c.expireWaiters(now)
	c.advance()
	c.maybeWrite(now)
}
