package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Frame is one command of a story: what it did, and how things stand after it.
type Frame struct {
	// Line is the command's line in the file, from 1.
	Line int
	// Comment holds the comment that stands before the command, without #.
	Comment string
	// Command is the command as written.
	Command string
	// Output is what it printed, by line.
	Output []string
	// Events are what happened, in order.
	Events []Event
	// Record is the partition record in one line.
	Record string
	// Replicas are all replicas, zombies behind the others.
	Replicas []ReplicaState
}

// ReplicaState is a replica as it stands after a command.
type ReplicaState struct {
	Name string
	// Up reports that its process runs.
	Up bool
	// Role is Leader, Follower or Idle; empty while it is down.
	Role string
	// LeaderEpoch is the epoch in which it leads or follows.
	LeaderEpoch epoch.LeaderEpoch
	// Start and End bound the log; Records are what it holds from Start on.
	Start, End epoch.Offset
	Records    []Record
	// HighWatermark is NoOffset while it is down.
	HighWatermark epoch.Offset
	// Cache is the epoch cache as {epoch:start,…}.
	Cache string
}

// EventKind says what an event is.
type EventKind int

// The kinds of events.
const (
	// Fetched is a request that went from Replica to Peer.
	Fetched EventKind = iota + 1
	// Answered is an answer on its way from Peer to Replica.
	Answered
	// Delivered is the arrival of an answer that had been held.
	Delivered
	// Truncated is a cut of Replica's log to Offset; Records are those that went.
	Truncated
	// Started is a process that has registered.
	Started
	// Crashed is the end of a process or machine.
	Crashed
	// Exited is a process that ended itself.
	Exited
	// Elected is an election that Replica won, for Epoch.
	Elected
	// Struck is a registration that cost a place in the ISR.
	Struck
	// Produced is an append of a client's at Replica.
	Produced
	// Acknowledged is a produce request with acks=all that was answered.
	Acknowledged
	// Refused is a request or change that was answered with an error.
	Refused
	// Lost tells of acknowledged records that the leader does not have.
	Lost
	// Diverged tells of logs that differ.
	Diverged
	// Alarm is what a replica complains of.
	Alarm
	// Told is anything else worth a line.
	Told
)

// Event is something that happened in one command.
type Event struct {
	Kind    EventKind
	Replica string
	// Peer is the other end of a message; empty if it reached nobody.
	Peer string
	// Text is what to say about it.
	Text string
	// Missed marks a message that did not arrive, Held one that is still on its way.
	Missed, Held bool
	Offset       epoch.Offset
	Epoch        epoch.LeaderEpoch
	Records      []Record
	// State is how a cut left Replica; nil for other events.
	State *ReplicaState
}

func (c *cluster) states() []ReplicaState {
	out := make([]ReplicaState, 0, len(c.replicas))
	for _, p := range c.replicas {
		out = append(out, p.state())
	}
	return out
}

func (p *replica) state() ReplicaState {
	s := ReplicaState{Name: p.name, Up: p.up(), Start: p.log.start, End: p.log.EndOffset(), Records: slices.Clone(p.log.records),
		HighWatermark: epoch.NoOffset, Cache: p.log.cache.String()}
	if p.up() {
		s.Role, s.HighWatermark, s.LeaderEpoch = p.core.Role().String(), p.core.HighWatermark(), p.core.Record().LeaderEpoch
	}
	return s
}

// recordLine is the record in one line: what matters for who may commit.
func (c *cluster) recordLine() string {
	r := c.record
	var b strings.Builder
	fmt.Fprintf(&b, "leader %s epoch %d ISR %s", nameOf(r.Leader), r.LeaderEpoch, c.names(r.ISR))
	marks := func(what string, has func(epoch.Replica) bool) {
		var ids []epoch.ReplicaID
		for _, p := range r.Replicas {
			if has(p) {
				ids = append(ids, p.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(&b, " %s %s", what, c.names(ids))
		}
	}
	marks("adding", func(p epoch.Replica) bool { return p.Adding })
	marks("removing", func(p epoch.Replica) bool { return p.Removing })
	marks("stopping", func(p epoch.Replica) bool { return p.Stopping })
	if r.UncleanElection != nil {
		fmt.Fprintf(&b, ", unclean election of %s for epoch %d, HW was %d", nameOf(r.UncleanElection.Leader), r.UncleanElection.LeaderEpoch, r.UncleanElection.HighWatermark)
	}
	if r.Recovery != nil {
		fmt.Fprintf(&b, ", waits for recovery (leader epoch %d was known)", r.Recovery.LeaderEpoch)
	}
	return b.String()
}

func (c *cluster) show() {
	c.print("record: %s", c.recordLine())
	for _, p := range c.replicas {
		role, hw := "down", "-"
		if p.up() {
			role, hw = p.core.Role().String(), fmt.Sprint(p.core.HighWatermark())
		}
		from := ""
		if p.log.start > 0 {
			from = fmt.Sprintf("from %d: ", p.log.start)
		}
		line := fmt.Sprintf("%s %-8s LEO %-3d HW %-3s %-16s %s%s", p.name, role, p.log.EndOffset(), hw, p.log.cache, from, p.log)
		c.print("%s", strings.TrimRight(line, " "))
	}
}

// check says whether what was acknowledged is at the leader, and whether the logs are
// equal as far as they go.
func (c *cluster) check() {
	lost, differ := c.lost(), c.differences()
	c.print("acknowledged records lost: %s", orNone(lost))
	c.print("logs differ: %s", orNone(differ))
	if len(lost) > 0 {
		c.event(Event{Kind: Lost, Replica: nameOf(c.record.Leader), Text: "lost: " + strings.Join(lost, ", ")})
	}
	if len(differ) > 0 {
		c.event(Event{Kind: Diverged, Text: "logs differ: " + strings.Join(differ, ", ")})
	}
}

func (c *cluster) lost() []string {
	var lost []string
	for _, p := range c.replicas {
		if !p.leads() || p.me.Session != c.record.LeaderSession {
			continue
		}
		for _, a := range c.acknowledged {
			if a.offset < p.log.start {
				continue // deleted on request
			}
			if r, ok := p.log.at(a.offset); !ok || r.Value != a.value {
				lost = append(lost, fmt.Sprintf("%s at offset %d", a.value, a.offset))
			}
		}
	}
	return lost
}

func (c *cluster) differences() []string {
	var differ []string
	for i, p := range c.replicas {
		for _, q := range c.replicas[i+1:] {
			for o := max(p.log.start, q.log.start); o < min(p.log.EndOffset(), q.log.EndOffset()); o++ {
				a, _ := p.log.at(o)
				b, _ := q.log.at(o)
				if a.Epoch != b.Epoch || a.Value != b.Value {
					differ = append(differ, fmt.Sprintf("%s and %s at offset %d", p.name, q.name, o))
					break
				}
			}
		}
	}
	return differ
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

var _ core.Log = (*log)(nil)
