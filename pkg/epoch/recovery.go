package epoch

import (
	"cmp"
	"slices"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// This file is the way out of a regression (DESIGN.md rule 7): the record was
// restored to an older state, or its object was made anew. What could be lost by it:
// an ISR from before a shrink names a replica that lacks committed records, and two
// histories may use the same epoch numbers for different records. So:
//
//   - While Recovery is set nobody changes anything but Recovery itself, in which every
//     replica reports the newest record that it had acted on.
//   - Recovery ends only when the user asks, and only after a report of every replica
//     that the frozen record or a reported one assigns: a leader acts on an ISR only
//     after it has persisted it, so one of them knows the newest ISR that anything was
//     committed under.
//   - Reports count in the round that they were made in, which an operator begins once
//     the user has asked ([AskReports]): the record that was put back may itself have
//     been frozen, with reports from before all that was done since.
//   - A reported record that the frozen one does not go on from wins over it: whatever
//     the frozen one went through since it was put back stands on lost ground.
//   - Who reported another history than the one that won leaves the ISR, and cuts its
//     log to what both share, before it acts on the new record ([Record.SetAside]).
//   - What the ISR that won knew to be committed stays known, so that a volume put back
//     to an image from before it is told from the one that it stands for
//     ([Recovered.HighWatermark]): the leader's progress went with the record.
//   - Both epochs rise above all that anybody is known to have seen, by a margin for
//     who was not asked.

// RecoveryMargin is what a recovery adds to the highest epochs known.
const RecoveryMargin = 1000

// Recovery freezes a record that is older than one known before, and gathers what the
// replicas know.
type Recovery struct {
	// LeaderEpoch and PartitionEpoch are the highest known to anybody who reported.
	LeaderEpoch    LeaderEpoch    `json:"leaderEpoch"`
	PartitionEpoch PartitionEpoch `json:"partitionEpoch"`
	// ReportedBy is who reported the highest partition epoch, NoReplica if that was
	// the operator.
	ReportedBy ReplicaID `json:"reportedBy"`
	// Remade says that the object was gone and was made anew: what the frozen record
	// says itself counts for nothing.
	Remade bool `json:"remade,omitempty"`
	// Round names the present round of reports; it is empty until the user has asked.
	Round ChangeID `json:"round,omitempty"`
	// Reports has one entry for each replica that has reported, in order of id.
	Reports []Report `json:"reports,omitempty"`
	// Assigned holds the replicas of every record that was reported, in order of id.
	Assigned []ReplicaID `json:"assigned,omitempty"`
	// Newest is the newest record reported that the frozen one does not go on from;
	// nil if there is none. It has no progress and no heartbeat. It is part of the
	// text form, which writes it in its own way.
	Newest *Record `json:"-"`
}

// Report is what one replica knows.
type Report struct {
	ID ReplicaID `json:"id"`
	// Known is the last change of the newest record that it had acted on; the zero
	// Change if its volume remembers none.
	Known Change `json:"known"`
	// HighWatermark is the highest offset up to which it knew all to be committed, 0 if
	// it knew of none.
	HighWatermark Offset `json:"highWatermark,omitempty"`
	// Round is the newest round that it has reported in.
	Round ChangeID `json:"round,omitempty"`
}

// Recovered tells of the last recovery. It stays, so that a replica that comes back
// later finds out what became of the history that it knew.
type Recovered struct {
	// PartitionEpoch and LeaderEpoch are the first of the new history.
	PartitionEpoch PartitionEpoch `json:"partitionEpoch"`
	LeaderEpoch    LeaderEpoch    `json:"leaderEpoch"`
	// From is the last change of the record that won.
	From Change `json:"from"`
	// Faithful are the replicas that had reported a record which the winning one goes
	// on from: the logs that spoke for them hold no other history.
	Faithful []ReplicaID `json:"faithful,omitempty"`
	// HighWatermark is the highest that a faithful member of the ISR had reported: every
	// member's log reached it once. It is 0 if none did, and after an unclean election.
	HighWatermark Offset `json:"highWatermark,omitempty"`
}

// RecoveryOf is the report of a replica whose newest record is known, nil if it
// remembers none, and which knows all up to a high watermark to be committed.
func RecoveryOf(id ReplicaID, known *Record, highWatermark Offset) Recovery {
	v := Recovery{ReportedBy: id, Reports: []Report{{ID: id, HighWatermark: max(highWatermark, 0)}}}
	if known == nil || known.PartitionEpoch == 0 {
		return v
	}
	n := known.Clone()
	n.Recovery, n.Progress, n.Heartbeat = nil, nil, Heartbeat{}
	v.PartitionEpoch, v.LeaderEpoch = n.PartitionEpoch, n.LeaderEpoch
	v.Reports[0].Known, v.Assigned, v.Newest = n.LastChange(), n.ids(), &n
	return v
}

// MarkRecovery freezes a record that is older than one known before, or adds a report
// to a frozen one, in its present round. It changes neither epoch, and beside it only a
// new round may be begun while a record is frozen. What the same replica has reported
// before stands if it is more: a volume that was put back must not hide what it once
// knew. ErrNoChange says that the report is there: one in a round, and a leader that goes on
// committing until its lease ends does not write again for that.
func MarkRecovery(r Record, v Recovery) (Record, error) {
	var old Recovery
	if r.Recovery != nil {
		old = *r.Recovery
	}
	merged := old
	if r.Recovery == nil || v.PartitionEpoch > old.PartitionEpoch {
		merged.PartitionEpoch, merged.ReportedBy = v.PartitionEpoch, v.ReportedBy
	}
	merged.LeaderEpoch = max(old.LeaderEpoch, v.LeaderEpoch)
	merged.Reports = mergeReports(old.Reports, v.Reports, old.Round)
	merged.Assigned = slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.Assigned, v.Assigned))))
	if v.Newest != nil && (old.Remade || !r.Sees(v.Newest.LastChange())) && (old.Newest == nil || v.Newest.newerThan(*old.Newest)) {
		newest := v.Newest.Clone()
		merged.Newest = &newest
	}
	if r.Recovery != nil && merged.PartitionEpoch == old.PartitionEpoch && merged.LeaderEpoch == old.LeaderEpoch && merged.Newest == old.Newest &&
		slices.Equal(merged.Reports, old.Reports) && slices.Equal(merged.Assigned, old.Assigned) {
		return r, ErrNoChange
	}
	n := r.Clone()
	n.Recovery = &merged
	return n, nil
}

func mergeReports(old, more []Report, round ChangeID) []Report {
	out := slices.Clone(old)
	for _, v := range more {
		v.Round = round
		i := slices.IndexFunc(out, func(w Report) bool { return w.ID == v.ID })
		switch {
		case i < 0:
			out = append(out, v)
		case v.Known.PartitionEpoch > out[i].Known.PartitionEpoch:
			out[i] = v
		case out[i].Round != round:
			out[i].Round = round
			if v.Known == out[i].Known {
				out[i].HighWatermark = max(v.HighWatermark, out[i].HighWatermark)
			}
		}
	}
	slices.SortFunc(out, func(a, b Report) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// newerThan orders records of different histories: by partition epoch, then by leader
// epoch, then, so that everybody agrees, by change id.
func (r Record) newerThan(q Record) bool {
	return cmp.Or(cmp.Compare(r.PartitionEpoch, q.PartitionEpoch), cmp.Compare(r.LeaderEpoch, q.LeaderEpoch),
		cmp.Compare(r.LastChange().ID, q.LastChange().ID)) > 0
}

// AskReports begins a round: every replica is to report what it knows by now. Whoever
// begins one draws its name, and recovers only by that; what was reported in others may
// be older than what has been acted upon since. ErrNoChange says that nothing is frozen.
func AskReports(r Record, round ChangeID) (Record, error) {
	if r.Recovery == nil {
		return r, ErrNoChange
	}
	n := r.Clone()
	n.Recovery.Round = round
	return n, nil
}

// Awaited are the replicas whose report a frozen record still waits for in its present
// round, in order of id: those that it or a reported record assigns.
func (r Record) Awaited() []ReplicaID {
	if r.Recovery == nil {
		return nil
	}
	ids := slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.ids(), r.Recovery.Assigned))))
	return slices.DeleteFunc(ids, func(id ReplicaID) bool { return r.Recovery.reported(id) })
}

func (v *Recovery) reported(id ReplicaID) bool {
	return slices.ContainsFunc(v.Reports, func(w Report) bool { return w.ID == id && (w.Round == v.Round || guard.Off(guard.RecoveryHearsAnew)) })
}

// RecoveryRequest is a user's wish to go on after a regression.
type RecoveryRequest struct {
	// PartitionEpoch is that of the frozen record which the user has seen: a request
	// that was forgotten never applies to a later regression.
	PartitionEpoch PartitionEpoch
	// Round is the round that whoever recovers has begun since it knows of the request.
	Round  ChangeID
	Change ChangeID
}

// Recover ends a recovery: it takes the newest record, raises both epochs by
// RecoveryMargin above the highest known, and leaves the partition without a leader;
// elections and registrations go on from there, and judge each replica's marks against
// the record that won.
func Recover(r Record, q RecoveryRequest) (Record, error) {
	v := r.Recovery
	switch {
	case v == nil:
		return r, ErrNoChange
	case q.PartitionEpoch != r.PartitionEpoch:
		return r, refuse(RefusedSuperseded, "recovery was asked for at partition epoch %d, and the record is at %d", q.PartitionEpoch, r.PartitionEpoch)
	case (q.Round == "" || q.Round != v.Round) && !guard.Off(guard.RecoveryHearsAnew):
		return r, refuse(RefusedSuperseded, "the reports in the record were asked for in another round")
	case len(r.Awaited()) > 0 && !guard.Off(guard.RecoveryHearsAll):
		return r, refuse(RefusedRecovery, "recovery waits for the reports of replicas %v; those of %v are there", r.Awaited(), reporters(v))
	case v.Remade && v.Newest == nil:
		return r, refuse(RefusedRecovery, "the record is gone and no replica remembers one: restore the Lease, or delete the ReplicatedPartition and adopt its volumes")
	}
	newest := r
	if v.Newest != nil && !guard.Off(guard.RecoveryTakesNewest) {
		newest = *v.Newest
	}
	n := newest.Clone()
	n.Recovery, n.Progress, n.Heartbeat = nil, nil, Heartbeat{Duration: r.Heartbeat.Duration}
	n.dethrone()
	n.PartitionEpoch = max(n.PartitionEpoch, r.PartitionEpoch, v.PartitionEpoch) + RecoveryMargin - 1
	n.LeaderEpoch = max(n.LeaderEpoch, r.LeaderEpoch, v.LeaderEpoch) + RecoveryMargin
	faithful, others := judgeReports(newest, v.Reports)
	n.Recovered = &Recovered{PartitionEpoch: n.PartitionEpoch + 1, LeaderEpoch: n.LeaderEpoch, From: newest.LastChange(), Faithful: faithful,
		HighWatermark: newest.committedBy(faithful, v.Reports)}
	n.ISR = slices.DeleteFunc(n.ISR, func(id ReplicaID) bool { return slices.Contains(others, id) && !guard.Off(guard.RecoveryStrikesOthers) })
	return n.next(q.Change), nil
}

// committedBy is the highest high watermark that a record, or a faithful member of its
// ISR, is known to have had. Others may have heard of one on lost ground.
func (r Record) committedBy(faithful []ReplicaID, reports []Report) Offset {
	var hw Offset
	if guard.Off(guard.RecoveryKeepsHighWatermark) {
		return hw
	}
	hw = max(hw, r.HighestKnown())
	for _, w := range reports {
		if r.InSync(w.ID) && slices.Contains(faithful, w.ID) {
			hw = max(hw, w.HighWatermark)
		}
	}
	return hw
}

// HighestKnown is the highest high watermark that the record tells of: every member of the
// ISR has had all up to there. NoOffset if it tells of none.
func (r Record) HighestKnown() Offset {
	hw := NoOffset
	if r.Progress != nil {
		hw = r.Progress.HighWatermark
	}
	if r.Recovered != nil {
		hw = max(hw, r.Recovered.HighWatermark)
	}
	return hw
}

func reporters(v *Recovery) []ReplicaID {
	var ids []ReplicaID
	for _, w := range v.Reports {
		if v.reported(w.ID) {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// judgeReports tells those whose report is proven to be of the history that won from
// those of whom it is not. What is older than the record remembers is not: two histories
// may have begun there. Who remembers nothing is neither: an empty volume is found out
// when it registers, and the one that it stands for may yet turn up.
func judgeReports(newest Record, reports []Report) (faithful, others []ReplicaID) {
	for _, w := range reports {
		switch {
		case w.Known == (Change{}):
		case slices.Contains(newest.Changes, w.Known):
			faithful = append(faithful, w.ID)
		default:
			others = append(others, w.ID)
		}
	}
	return faithful, others
}

// RecoveredSince reports that a recovery lies between an older record and this one.
func (r Record) RecoveredSince(old Record) bool {
	return r.Recovered != nil && r.Recovered.PartitionEpoch > old.PartitionEpoch
}

// SetAside tells whether a recovery has set aside the history that a replica knew when
// it last persisted a record, and the last leader epoch that both histories share:
// NoEpoch if none is known. The replica's log above the end of that epoch belongs to
// the other history. Epoch numbers cannot tell the two apart, so it is to be cut before
// the new record is persisted. The recovery has taken the replica out of the ISR, unless
// another volume had reported in its name: then its place is to be given up, too.
func (r Record) SetAside(id ReplicaID, known Record) (LeaderEpoch, bool) {
	v := r.Recovered
	if v == nil || known.PartitionEpoch >= v.PartitionEpoch || len(known.Changes) == 0 || r.faithful(id, known) || guard.Off(guard.CutOtherHistory) {
		return NoEpoch, false
	}
	for i := len(known.Changes) - 1; i >= 0; i-- {
		if c := known.Changes[i]; slices.Contains(r.Changes, c) {
			if i == len(known.Changes)-1 {
				return NoEpoch, false
			}
			return c.LeaderEpoch, true
		}
	}
	return NoEpoch, true
}

// faithful reports that what a replica knew is of the history that won, although r may
// not remember it any more. What r should remember is judged by that alone: the volume
// that had reported may have been another one.
func (r Record) faithful(id ReplicaID, known Record) bool {
	return slices.Contains(r.Recovered.Faithful, id) && known.PartitionEpoch <= r.Recovered.From.PartitionEpoch &&
		(len(r.Changes) == 0 || known.PartitionEpoch < r.Changes[0].PartitionEpoch)
}

// Remake makes a frozen record for a partition whose record is gone, from what its
// status last showed. It names nobody to lead or to be in sync: it only gives the
// replicas a place to report to, and Recover takes what they know.
func Remake(topicID UUID, ids []ReplicaID, wantedMinISR int, at PartitionEpoch, leaderEpoch LeaderEpoch, change ChangeID) Record {
	r := New(topicID, ids, wantedMinISR, change)
	r.ISR = nil
	r.PartitionEpoch, r.LeaderEpoch = max(at, 1), max(leaderEpoch, 0)
	r.Changes = []Change{{PartitionEpoch: r.PartitionEpoch, ID: change, LeaderEpoch: r.LeaderEpoch}}
	r.Recovery = &Recovery{PartitionEpoch: r.PartitionEpoch, LeaderEpoch: r.LeaderEpoch, ReportedBy: NoReplica, Remade: true}
	return r
}
