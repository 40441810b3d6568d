package nemesis

import "github.com/tidemark-io/tidemark/pkg/epoch"

// Losses keeps the account of the replicas that were made to lose what they held, or the proof that they hold it,
// and have not come back from it. The zero value is an account without any.
type Losses struct {
	open map[epoch.ReplicaID]epoch.Session // the session that ended with the loss
}

// Allows tells whether one more replica may lose everything, given a record that was read after its process had
// ended, and the min ISR that the user wants. Committed records survive the loss of min ISR − 1 members of the
// ISR: those that are left are more than none, whatever the leader makes of the ISR meanwhile.
func (l *Losses) Allows(r epoch.Record, wantedMinISR int, id epoch.ReplicaID) bool {
	l.Settle(r)
	least := min(r.MinISR, wantedMinISR)
	others := len(l.open)
	if _, again := l.open[id]; again {
		others--
	}
	return len(r.ISR) >= least && others+1 < least
}

// Note enters a loss. The record is that which [Losses.Allows] was asked with.
func (l *Losses) Note(r epoch.Record, id epoch.ReplicaID) {
	if l.open == nil {
		l.open = map[epoch.ReplicaID]epoch.Session{}
	}
	p, _ := r.Replica(id)
	l.open[id] = p.Session
}

// Open tells whether a replica that lost something has not come back yet.
func (l *Losses) Open(r epoch.Record) bool {
	l.Settle(r)
	return len(l.open) > 0
}

// Settle strikes the replicas off the account that have registered since, and so told what they still hold, once
// the ISR is complete again; and those that are not assigned any more.
func (l *Losses) Settle(r epoch.Record) {
	if len(r.ISR) < r.MinISR {
		return
	}
	for id, session := range l.open {
		if p, assigned := r.Replica(id); !assigned || p.Session > session {
			delete(l.open, id)
		}
	}
}
