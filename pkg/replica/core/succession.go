package core

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// LeaderEnded says that the process that this replica follows in that epoch has ended, as
// its machine has shown: it closed the connection that fetches of this epoch were answered
// on, and refuses another one.
//
// A member of the ISR then takes its place at once, by the rule and the compare-and-swap
// by which the operator would. Several may try, and one succeeds. Nothing hangs on the
// word of the machine: an election is safe at any moment, and a needless one
// costs a change of leader.
func (c *Core) LeaderEnded(now time.Duration, e epoch.LeaderEpoch) {
	if c.role != Follower || c.following.epoch != e {
		return
	}
	c.following.ended = true
	c.maybeWrite(now)
}

// succeed is the record with this follower in the place of a leader whose process has
// ended. One that is about to go, or whose volume is in trouble, leaves it to the others,
// and to the operator.
func (c *Core) succeed() (epoch.Record, bool) {
	rec := c.snap.Record
	if c.role != Follower || !c.following.ended || !rec.InSync(c.me.ID) || c.trouble != (epoch.Trouble{}) {
		return rec, false
	}
	if me, _ := rec.Replica(c.me.ID); me.Stopping || me.Removing {
		return rec, false
	}
	n, err := epoch.Elect(rec, epoch.Election{Reason: epoch.ReasonProcessDied, Live: []epoch.ReplicaID{c.me.ID}, LeaderEnded: true, Change: c.changeID()})
	return n, err == nil
}
