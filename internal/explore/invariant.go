package explore

import (
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Invariant is something that must hold in every state; the numbers are those of the
// protocol notes, section 1.20.
type Invariant int

// The invariants.
const (
	// Offsets (I1): log start ≤ high watermark ≤ log end.
	Offsets Invariant = iota
	// Monotone (I2): a leader's high watermark does not fall within its leadership.
	Monotone
	// LogMatching (I3): the same epoch at the same offset means the same history.
	LogMatching
	// Complete (I4): a leader has all that was committed up to its epoch, and nothing
	// is committed that a later leader lacks.
	Complete
	// Agreement (I4): what is below a high watermark is the same on every replica.
	Agreement
	// Divergence (I4): no two replicas hold different records below both their high
	// watermarks. It is the part of Agreement that a user could see.
	Divergence
	// Members (I5, I6): every member of the ISR, and of any ISR that may yet be
	// written, has all that was committed.
	Members
	// OneLeader (I7): an epoch has one leader.
	OneLeader
	// Cache (I8): the epoch cache fits the log.
	Cache
	// RecordHistory (I9): the record's epochs only grow, one by one.
	RecordHistory
	// RecordShape (I10): the leader is a member of the ISR, the ISR is assigned.
	RecordShape
	// Acknowledged (I11): acks=all only for what is committed, by enough members.
	Acknowledged
	// Incarnation (I14): who joins the ISR is the process that proved its position.
	Incarnation
	// Converges (KIP-279): a follower that is told where the histories part comes closer
	// to its leader's, and does not ask the same for ever.
	Converges
	// Electable (KIP-966): while fewer than min ISR volumes have broken their promise,
	// somebody is left who may lead.
	Electable
	// Durable: a committed record is in some log, unless as many machines lost it as had
	// to hold it.
	Durable
	// BelowHighWatermark: nobody truncates below its high watermark.
	BelowHighWatermark
	// OneWrite: a replica has one write of the record outstanding.
	OneWrite
	invariants
)

func (i Invariant) String() string {
	return [...]string{"I1 offsets", "I2 high watermark monotone", "I3 log matching", "I4 leader completeness", "I4 as committed below high watermark",
		"I4 equal below high watermarks", "I5/I6 members complete", "I7 one leader per epoch", "I8 epoch cache", "I9 record history", "I10 record shape", "I11 acknowledged is committed",
		"I14 proven incarnation", "a diverging answer brings the logs closer",
		"a member may lead", "committed is held", "no truncation below high watermark", "one write outstanding"}[i]
}

// flaw is an invariant that does not hold.
type flaw struct {
	breaks Invariant
	what   string
}

func flawf(i Invariant, format string, args ...any) *flaw {
	return &flaw{i, fmt.Sprintf(format, args...)}
}

// converges judges that a diverging answer has cut the log, or the epochs it ended in.
func (s *stepping) converges(before *replicaInfo, m message) {
	p := before.replica
	if m.diverging && s.r.core != nil && len(p.log.entries) == len(s.r.log.entries) && p.log.cache.Equal(s.r.log.cache) {
		s.flawed(flawf(Converges, "%c is told div(%d,%d), cuts nothing and will ask the same for ever", letter(s.r.id), m.common.Epoch, m.common.Start))
	}
}

// judge looks at one replica after an event.
func (s *stepping) judge(before *replicaInfo) {
	r := s.r
	if err := r.log.cacheFits(); err != nil {
		s.flawed(flawf(Cache, "%c: %v", letter(r.id), err))
	}
	if r.core == nil {
		return
	}
	hw, rec := r.core.HighWatermark(), r.core.Record()
	if hw < 0 || hw > r.log.EndOffset() {
		s.flawed(flawf(Offsets, "%c has high watermark %d and log end %d", letter(r.id), hw, r.log.EndOffset()))
	}
	if before.leads && r.core.Role() == core.Leader && int8(rec.LeaderEpoch) == before.epoch && int8(hw) < before.hw {
		s.flawed(flawf(Monotone, "%c leads epoch %d and its high watermark falls from %d to %d", letter(r.id), rec.LeaderEpoch, before.hw, hw))
	}
	if int16(rec.PartitionEpoch) < before.change {
		s.flawed(flawf(RecordHistory, "%c goes back from partition epoch %d to %d", letter(r.id), before.change, rec.PartitionEpoch))
	}
}

// changeFlaw judges a change of the record.
func changeFlaw(old, r epoch.Record) *flaw {
	switch grown := r.PartitionEpoch - old.PartitionEpoch; {
	case grown != 0 && grown != 1:
		return flawf(RecordHistory, "partition epoch %d after %d", r.PartitionEpoch, old.PartitionEpoch)
	case grown == 0 && (r.LeaderEpoch != old.LeaderEpoch || r.Leader != old.Leader || !slices.Equal(r.ISR, old.ISR) || !slices.Equal(r.Replicas, old.Replicas)):
		return flawf(RecordHistory, "the record changed without a new partition epoch")
	case r.LeaderEpoch < old.LeaderEpoch || r.LeaderEpoch > old.LeaderEpoch+1:
		return flawf(RecordHistory, "leader epoch %d after %d", r.LeaderEpoch, old.LeaderEpoch)
	case r.LeaderEpoch == old.LeaderEpoch && r.Leader != epoch.NoReplica && (r.Leader != old.Leader || r.LeaderSession != old.LeaderSession):
		return flawf(RecordHistory, "another leader, %d of session %d, in the same epoch %d", r.Leader, r.LeaderSession, r.LeaderEpoch)
	}
	return shapeFlaw(r)
}

func shapeFlaw(r epoch.Record) *flaw {
	if p, _ := r.Replica(r.Leader); r.Leader != epoch.NoReplica && (!r.InSync(r.Leader) || p.Session != r.LeaderSession) {
		return flawf(RecordShape, "leader %d of session %d is not in the ISR %v, or registered as session %d", r.Leader, r.LeaderSession, r.ISR, p.Session)
	}
	for i, id := range r.ISR {
		if p, ok := r.Replica(id); !ok || p.Adding || i > 0 && r.ISR[i-1] >= id {
			return flawf(RecordShape, "the ISR %v has a member twice, or one that is not assigned", r.ISR)
		}
	}
	return nil
}

// joinFlaw is I14 for an ISR change that a leader writes.
func joinFlaw(leader *core.Core, old, r epoch.Record) *flaw {
	for _, id := range r.ISR {
		if old.InSync(id) || id == r.Leader {
			continue
		}
		p, _ := r.Replica(id)
		if _, session := leader.Position(id); session != p.Session {
			return flawf(Incarnation, "%c is to join as session %d, and proved its position as session %d", letter(id), p.Session, session)
		}
	}
	return nil
}
