package sim

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// line is the history of the record that counts. After a backup was put back, what is
// done on it stands on lost ground, until a recovery takes up the line again: nobody
// can keep what two histories committed, and rule 7 promises the older one.
type line struct {
	changes map[epoch.ChangeID]bool
	lost    bool              // the store's record is not of the line
	left    bool              // it was lost once
	resumed epoch.LeaderEpoch // the first epoch after the last recovery
}

func (l *line) add(r epoch.Record) {
	if !l.lost {
		l.changes[r.LastChange().ID] = true
	}
}

// has reports that a record is of the line.
func (l *line) has(r epoch.Record) bool {
	return r.PartitionEpoch == 0 || l.changes[r.LastChange().ID]
}

// restoreRecord puts an older state of the record back, as a restored backup of etcd
// does, or loses it, and has it made anew for recovery.
func (w *world) restoreRecord() {
	s := w.store
	if s.line.lost || s.current().Record.Recovery != nil || len(s.versions) < 3 || !w.resumed() {
		return
	}
	r := s.current().Record
	old := s.versions[max(0, len(s.versions)-2-w.rng.IntN(12))].Record.Clone()
	if old.LastChange() == r.LastChange() {
		return
	}
	w.say("the record is put back to partition epoch %d", old.PartitionEpoch)
	s.line.lost, s.line.left = true, true
	if w.chance(25) {
		var ids []epoch.ReplicaID
		for _, p := range r.Replicas {
			ids = append(ids, p.ID)
		}
		old = epoch.Remake(topicID, ids, r.WantedMinISR, r.PartitionEpoch, r.LeaderEpoch, w.newChangeID())
	}
	s.replace(old, "a restored backup")
}

// resumed reports that a replica has acted on the last recovery, if there was one. Until
// then only the record itself knows which of two histories it has chosen.
func (w *world) resumed() bool {
	return w.store.line.resumed == 0 || slices.ContainsFunc(w.procs, func(p *process) bool {
		return p.node != nil && p.node.Core().Record().LeaderEpoch >= w.store.line.resumed
	})
}

// forgetRounds: an operator that sees another at work on a recovery goes by no round of
// its own any more; one that stood still meanwhile by none that is older than a minute.
func (s *store) forgetRounds(old, r epoch.Record) {
	if old.Recovery == nil || r.Recovery != nil && r.Recovery.Round == old.Recovery.Round {
		return
	}
	for _, o := range s.w.operators {
		if r.Recovery == nil || o.round != r.Recovery.Round {
			o.round = ""
		}
	}
}

// recoverSome is the user's request to go on: an operator begins a round of reports, and
// goes by that, until it sees that the record has gone on.
func (w *world) recoverSome() {
	o, _ := pick(w, w.operators[:])
	base := o.base()
	v := base.Record.Recovery
	if v == nil {
		o.round = ""
		return
	}
	if o.round == "" || v.Round != o.round {
		o.round = w.newChangeID()
		r, err := epoch.AskReports(base.Record, o.round)
		o.propose("reports", base, r, err)
		return
	}
	r, err := epoch.Recover(base.Record, epoch.RecoveryRequest{PartitionEpoch: base.Record.PartitionEpoch, Round: o.round, Change: w.newChangeID()})
	if err == nil {
		o.round = ""
	}
	o.propose("a recovery", base, r, err)
}

// electUncleanSome is the user's request to lose what the ISR has and nobody else.
func (w *world) electUncleanSome() {
	o, _ := pick(w, w.operators[:])
	base := o.base()
	r, err := epoch.ElectUnclean(base.Record, epoch.UncleanRequest{LeaderEpoch: base.Record.LeaderEpoch, Replica: epoch.NoReplica, Live: w.live(), Change: w.newChangeID()})
	o.propose("an unclean election", base, r, err)
}
