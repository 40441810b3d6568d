package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// history builds a log of runs "epoch×count": 0×3 is three records of epoch 0, 2×0
// an epoch without records. An owner tells records of the same epoch and offset apart
// only where the histories were written by different leaders.
func history(t *testing.T, start epoch.Offset, runs string) *memoryLog {
	t.Helper()
	l := &memoryLog{start: start}
	for run := range strings.SplitSeq(runs, ",") {
		if run == "" {
			continue
		}
		var e, n int
		if _, err := fmt.Sscanf(run, "%d×%d", &e, &n); err != nil {
			t.Fatalf("%q: %v", run, err)
		}
		l.cache.Assign(epoch.LeaderEpoch(e), l.EndOffset())
		for range n {
			l.append(epoch.LeaderEpoch(e), fmt.Sprintf("r%d", l.EndOffset()))
		}
	}
	return l
}

// TestFollowerFindsWhereHistoriesPart is the table of divergence cases of the protocol
// notes (KIP-101, KIP-279, KAFKA-10706): what a follower is answered until it is in
// sync, and what it then holds.
func TestFollowerFindsWhereHistoriesPart(t *testing.T) {
	for _, tc := range []struct {
		name             string
		leaderStart      epoch.Offset
		leader, follower string
		leaderEpoch      epoch.LeaderEpoch
		want             string // answers, in order
		wantCache        string // of the follower at the end
	}{
		{"U1 equal", 0, "0×5", "0×5", 0, "+0", "{0:0}"},
		{"U2 behind", 0, "0×5", "0×3", 0, "+2", "{0:0}"},
		{"U3 tail of the old epoch, new one empty", 0, "0×3,1×0", "0×5", 1, "div(0,3) +0", "{0:0}"},
		{"U4 tail of an epoch the leader never had", 0, "0×3,2×2", "0×3,1×2", 2, "div(0,3) +2", "{0:0,2:3}"},
		{"U5 longer tail of such an epoch", 0, "0×3,2×2", "0×3,1×6", 2, "div(0,3) +2", "{0:0,2:3}"},
		{"U6 fast change of leaders and back", 0, "1×21,3×10", "1×11,2×8", 3, "div(1,21) +20", "{1:0,3:21}"},
		{"U7 own floor is an older epoch", 0, "0×4,1×4,4×1", "0×2,2×3,3×3", 4, "div(1,8) +7", "{0:0,1:4,4:8}"},
		{"U8 nothing in common", 0, "2×3,3×1", "0×2,1×2", 3, "div(1,0) +4", "{2:0,3:3}"},
		{"U9 empty follower", 0, "0×3,1×1", "", 1, "+4", "{0:0,1:3}"},
		{"U10 own empty epoch at the end", 0, "1×10,3×0", "1×10,2×0", 3, "div(1,10) +0", "{1:0}"},
		{"U11 empty leader", 0, "5×0", "4×7", 5, "div(4,0) +0", "{}"},
		{"U12 an epoch from the future", 0, "1×5", "1×5,7×2", 1, "out-of-range +0", "{1:0}"},
		{"U13a below the leader's log start", 10, "3×4,4×2", "0×2", 4, "out-of-range +6", "{3:10,4:14}"},
		{"U13b reaching into the leader's log", 10, "3×4,4×2", "0×12", 4, "div(0,10) +6", "{0:0,3:10,4:14}"},
		{"U14 an empty epoch was replaced", 0, "0×3,2×2", "0×3", 2, "+2", "{0:0,2:3}"},
		{"U15 own entry of an empty epoch goes", 0, "0×3,2×2", "0×3,1×0", 2, "div(0,3) +2", "{0:0,2:3}"},
		{"U16 three rounds", 0, "0×1,2×1,4×1,6×1", "0×1,1×1,3×1,5×1", 6, "div(4,3) div(2,2) div(0,1) +3", "{0:0,2:1,4:2,6:3}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leader, follower := history(t, tc.leaderStart, tc.leader), history(t, 0, tc.follower)
			got := synchronise(t, leader, follower, tc.leaderEpoch)
			if got != tc.want {
				t.Errorf("answers %q, want %q", got, tc.want)
			}
			if c := follower.cache.String(); c != tc.wantCache {
				t.Errorf("follower's cache %s, want %s", c, tc.wantCache)
			}
			if follower.EndOffset() != leader.EndOffset() {
				t.Fatalf("follower ends at %d, leader at %d", follower.EndOffset(), leader.EndOffset())
			}
			for o := max(leader.start, follower.start); o < leader.EndOffset(); o++ {
				if a, b := leader.entries[o-leader.start], follower.entries[o-follower.start]; a != b {
					t.Errorf("offset %d: leader has %v, follower %v", o, a, b)
				}
			}
		})
	}
}

// synchronise runs the fetches of a follower whose log is not what the leader wrote.
func synchronise(t *testing.T, leader, follower *memoryLog, e epoch.LeaderEpoch) string {
	t.Helper()
	c := newCluster(2, 1)
	a, b := c.peers[0], c.peers[1]
	if err := c.start(a); err != nil {
		t.Fatal(err)
	}
	if err := c.start(b); err != nil {
		t.Fatal(err)
	}
	c.record.LeaderEpoch = e
	c.commit(c.record)
	*a.log, *b.log = *leader, *follower
	a.core, b.core = bareCore(c, a), bareCore(c, b)
	*a.log = *leader // taking over must not change what the table says the leader has
	var answers []string
	for range 10 {
		q, r, err := c.ask(b)
		switch {
		case err == ErrOffsetOutOfRange:
			answers = append(answers, "out-of-range")
			b.core.OutOfRange(q, a.log.StartOffset(), a.log.EndOffset())
			c.settle(b)
			continue
		case err != nil:
			t.Fatalf("fetch %+v: %v", q, err)
		case r.Diverging != nil:
			answers = append(answers, fmt.Sprintf("div(%d,%d)", r.Diverging.Epoch, r.Diverging.Start))
		default:
			answers = append(answers, fmt.Sprintf("+%d", countRecords(r.Records)))
		}
		c.deliver(b, heldResponse{q, r})
		if r.Diverging == nil {
			break
		}
	}
	*leader, *follower = *a.log, *b.log
	return strings.Join(answers, " ")
}

// bareCore is a core over a log that was put under it.
func bareCore(c *cluster, p *peer) *Core {
	mine, _ := c.record.Replica(p.id)
	k := New(Identity{ID: p.id, Session: mine.Session, StartID: mine.StartID, DirectoryID: p.directory}, Options{}, p.log, 0, c.changeID)
	k.Observe(c.now, c.snapshot(), FromWrite)
	k.Take()
	return k
}
