package core

// Guard names one safety rule of the protocol. Tests switch a guard off to show the
// harm that it prevents; nothing else ever does.
type Guard int

// The guards, each with what goes wrong without it.
const (
	// GuardTruncateByEpoch: a new follower cuts its log to its own high watermark
	// instead of asking where histories part: committed records are lost, or logs
	// differ for ever (KIP-101).
	GuardTruncateByEpoch Guard = iota
	// GuardOwnFloor: a follower cuts only by the leader's end offset, not by its own
	// end of the epoch that the leader named: logs differ (KIP-279).
	GuardOwnFloor
	// GuardMaximalISR: the high watermark ignores changes that may still be written:
	// a record is acknowledged that the next leader lacks (KIP-497).
	GuardMaximalISR
	// GuardEpochStart: a replica joins the ISR before it has reached the start of the
	// leader's epoch: it lacks committed records (KAFKA-7128).
	GuardEpochStart
	// GuardFetchEpoch: a fetch counts whatever leader epoch it names (KIP-320).
	GuardFetchEpoch
	// GuardFetchSession: a fetch of a replaced process counts (KIP-903).
	GuardFetchSession
	// GuardFreezeBelowMinISR: the high watermark moves over an ISR below min ISR
	// (KIP-966).
	GuardFreezeBelowMinISR
	// GuardDivergingNotCounted: a diverging fetch moves the remote log end
	// (KAFKA-13141).
	GuardDivergingNotCounted
	// GuardOwnSession: a process leads although the record names another session.
	GuardOwnSession
	guardCount
)

// Guards is the set of guards that are off. Its zero value has all guards on.
type Guards [guardCount]bool

func (g *Guards) off(x Guard) bool { return g[x] }

// SwitchOff disables one guard, for a test that shows what it is good for.
func (c *Core) SwitchOff(g Guard) { c.guards[g] = true }
