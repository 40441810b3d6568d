package core

import (
	"math"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// FetchRequest is what a follower asks its leader. It is also the identity of the
// request: a response counts only if the follower's log still is as it says.
type FetchRequest struct {
	LeaderEpoch    epoch.LeaderEpoch
	Offset         epoch.Offset
	LastEpoch      epoch.LeaderEpoch
	LogStartOffset epoch.Offset
	HighWatermark  epoch.Offset
	// Trouble is what this replica has to say of its volume.
	Trouble epoch.Trouble
}

// FetchResponse is what came back without an error.
type FetchResponse struct {
	HighWatermark  epoch.Offset
	LogStartOffset epoch.Offset
	Diverging      *epoch.Entry // Epoch, and Start used as that epoch's end offset
	Records        []byte
}

type following struct {
	leader      epoch.ReplicaID
	epoch       epoch.LeaderEpoch
	address     epoch.Address
	session     epoch.Session
	outstanding *FetchRequest
	fenced      bool // parked until a newer record
	ended       bool // the leader's process is no more
}

// follow starts to follow, anew with every leader epoch even if the leader is the
// same (KAFKA-7164), and when the leader has moved.
func (c *Core) follow() {
	rec := c.snap.Record
	p, _ := rec.Replica(rec.Leader)
	want := following{leader: rec.Leader, epoch: rec.LeaderEpoch, address: p.Address, session: rec.LeaderSession}
	f := c.following
	if c.role == Follower && f.leader == want.leader && f.epoch == want.epoch && f.address == want.address && f.session == want.session {
		return
	}
	newEpoch := c.role != Follower || f.epoch != want.epoch
	c.resign(Follower)
	c.following = want
	if newEpoch && guard.Off(guard.TruncateByEpoch) && c.log.EndOffset() > c.hw {
		c.emit(Truncate{To: c.hw})
	}
	c.emit(Follow{Leader: want.leader, Address: want.address, Epoch: want.epoch})
}

// NextFetch is the next request to send, if there is one to be sent: one is
// outstanding at a time, and with FlushEveryBatch a follower fetches only once what
// it has is durable, since the fetch acknowledges it.
func (c *Core) NextFetch() (FetchRequest, bool) {
	f := &c.following
	unflushed := c.opts.FlushEveryBatch && c.log.FlushedOffset() < c.log.EndOffset() && !guard.Off(guard.FollowerFlushesFirst)
	if c.role != Follower || f.fenced || unflushed {
		return FetchRequest{}, false
	}
	q := FetchRequest{LeaderEpoch: f.epoch, Offset: c.log.EndOffset(), LastEpoch: c.lastEpoch(),
		LogStartOffset: c.log.StartOffset(), HighWatermark: c.hw, Trouble: c.trouble}
	f.outstanding = &q
	return q, true
}

// lastEpoch is what a fetch tells of this log's history: the newest epoch of the cache,
// which may be one in which nothing was written, not that of the last record.
func (c *Core) lastEpoch() epoch.LeaderEpoch {
	cache := c.log.EpochCache()
	if guard.Off(guard.NewestCacheEpochInFetch) {
		return cache.EpochAt(c.log.EndOffset() - 1)
	}
	return cache.Latest()
}

// current reports that a response is to the one outstanding request, and that the
// log has not changed since: offset, last fetched epoch and leader epoch
// (KAFKA-18991, KAFKA-13207).
func (c *Core) current(q FetchRequest) bool {
	f := &c.following
	if c.role != Follower || f.outstanding == nil || f.epoch != q.LeaderEpoch {
		return false
	}
	asked := *f.outstanding
	offset, last := asked.Offset == q.Offset && c.log.EndOffset() == q.Offset, asked.LastEpoch == q.LastEpoch && c.lastEpoch() == q.LastEpoch
	return (offset || guard.Off(guard.ResponseOffset)) && (last || guard.Off(guard.ResponseLastEpoch))
}

// Fetched takes in a response. A diverging one truncates and touches neither high
// watermark nor log start (KAFKA-14704).
func (c *Core) Fetched(_ time.Duration, q FetchRequest, a FetchResponse) {
	if !c.current(q) {
		return
	}
	c.following.outstanding = nil
	if a.Diverging != nil {
		if guard.Off(guard.DivergingKeepsHighWatermark) {
			c.hw = min(a.HighWatermark, c.log.EndOffset())
		}
		c.truncate(c.commonEnd(*a.Diverging))
		return
	}
	upTo := q.LeaderEpoch
	if guard.Off(guard.FetchedUpToRequestEpoch) {
		upTo = math.MaxInt32
	}
	c.emit(AppendFetched{Records: a.Records, MaxEpoch: upTo, HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset})
}

// AppliedFetch says that an AppendFetched effect is done.
func (c *Core) AppliedFetch(e AppendFetched) {
	c.hw = min(max(e.HighWatermark, c.log.StartOffset()), c.log.EndOffset())
	c.emit(Changed{})
}

// commonEnd is where to cut so that what is left may be shared with the leader
// (protocol.md 1.12): the leader named its largest epoch up to ours and where that
// ends; our own end of that epoch may be earlier (KIP-279).
func (c *Core) commonEnd(d epoch.Entry) epoch.Offset {
	end := c.log.EndOffset()
	e, own := c.log.EpochCache().EndOffset(d.Epoch, end)
	switch {
	case guard.Off(guard.OwnFloor), e == epoch.NoEpoch:
		return min(d.Start, end)
	case e != d.Epoch:
		return min(own, end)
	default:
		return min(own, d.Start, end)
	}
}

func (c *Core) truncate(to epoch.Offset) {
	to = max(to, 0)
	if to < c.log.StartOffset() {
		c.emit(TruncateFully{StartAt: to})
	} else {
		c.emit(Truncate{To: to, BelowHighWatermark: to < c.hw})
	}
	c.hw = min(c.hw, to)
	c.emit(Changed{})
}

// Truncated says that a Truncate effect is done: the log may have been cut to before the
// offset asked for, where a batch began.
func (c *Core) Truncated() { c.hw = min(c.hw, c.log.EndOffset()) }

// OutOfRange takes in the leader's log bounds, asked for after a fetch was answered
// OFFSET_OUT_OF_RANGE (protocol.md 1.11.1). A log with an epoch above the leader's is
// not cut, as Kafka would do or else ask for ever: no leader of this record's history
// wrote that, so the record has lost its newest part, and what lies there may be
// committed. A quorum read decides (rule 7), and recovery gives an epoch above all.
func (c *Core) OutOfRange(q FetchRequest, leaderStart, leaderEnd epoch.Offset) {
	if !c.current(q) {
		return
	}
	c.following.outstanding = nil
	switch end := c.log.EndOffset(); {
	case c.log.EpochCache().Latest() > q.LeaderEpoch && !guard.Off(guard.NewerLogKept):
		c.readSoon()
	case leaderEnd < end:
		c.truncate(leaderEnd)
	case leaderStart > end, leaderStart != end && c.log.EpochCache().Latest() == epoch.NoEpoch:
		c.emit(TruncateFully{StartAt: leaderStart})
		c.hw = leaderStart
		c.emit(Changed{})
	}
}

// FetchFailed says that a request was refused or got no answer. A fenced follower
// waits for a newer record; everything else is tried again by NextFetch.
func (c *Core) FetchFailed(q FetchRequest, fenced bool) {
	if !c.current(q) {
		return
	}
	c.following.outstanding = nil
	if fenced {
		c.following.fenced = true
	}
	c.readSoon()
}
