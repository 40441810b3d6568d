package core

import (
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// isolation is what a leader remembers of having asked for another one, since it got no
// fetches. It outlives a loss of leadership: a partition in which no replica reaches
// any other must not change its leader every few seconds.
type isolation struct {
	at        epoch.Offset // the high watermark when it last asked
	backoff   time.Duration
	notBefore time.Duration
}

// isolated reports that so few members of the ISR have fetched for the lag time that
// nothing can be committed: those who could are cut off from this leader, or down.
// Alone in the ISR it has nobody to give way to.
// Which of the two it is, this leader cannot know; whoever elects does.
func (c *Core) isolated(now time.Duration) bool {
	rec := c.snap.Record
	fetching := 1
	for _, id := range rec.ISR {
		if r := c.remotes[id]; r != nil && now-max(r.fetchedAt, c.takeover) <= c.opts.LagTimeMax {
			fetching++
		}
	}
	return fetching < rec.MinISR && len(rec.ISR) > 1
}

// askToBeReplaced is the record with this leader's request for the election of another
// live member, or with that request taken back, since fetches are coming in again. It
// asks once, again only after the high watermark has moved since, else with doubling
// back-off: another leader may be no better off.
func (c *Core) askToBeReplaced(now time.Duration) (epoch.Record, bool) {
	rec, i := c.snap.Record, &c.isolation
	asked := rec.Switchover != nil && rec.Switchover.Session == c.me.Session
	switch isolated := c.isolated(now); {
	case asked && !isolated && rec.Switchover.Isolated():
		n, err := epoch.WithdrawSwitchover(rec, c.me.ID, c.me.Session, c.changeID())
		return n, err == nil
	case asked || !isolated || c.stopping:
		return rec, false
	case i.backoff > 0 && c.hw == i.at && now < i.notBefore:
		return rec, false
	}
	n, err := epoch.RequestSwitchover(rec, epoch.SwitchoverRequest{To: epoch.NoReplica, Reason: epoch.SwitchoverIsolated, Change: c.changeID()})
	if err != nil {
		return rec, false
	}
	if i.backoff == 0 || c.hw != i.at {
		i.backoff = c.opts.LagTimeMax
	}
	i.backoff = min(2*i.backoff, maxIsolationBackoff)
	i.at, i.notBefore = c.hw, now+i.backoff
	return n, true
}

// maxIsolationBackoff bounds how long an isolated leader waits before it asks again.
const maxIsolationBackoff = 30 * time.Minute

// told is the record with what this leader has to tell once: what its unclean election
// has lost, or that it is isolated.
func (c *Core) told(now time.Duration) (epoch.Record, bool) {
	rec := c.snap.Record
	if u := rec.UncleanElection; u != nil && u.LeaderEpoch <= rec.LeaderEpoch && u.LogEndOffset == nil {
		// The winner may have been elected once more, or another one cleanly, before it told.
		start, ok := c.log.EpochCache().StartAfter(u.LeaderEpoch - 1)
		if !ok {
			start = c.epochStart
		}
		if n, err := epoch.TellLoss(rec, c.me.ID, c.me.Session, start, c.changeID()); err == nil {
			return n, true
		}
	}
	return c.askToBeReplaced(now)
}
