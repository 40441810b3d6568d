package node

import (
	"errors"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// NoteDamage is told what a read has found. If that is damage of the log, the replica says
// so, and ends as a sick disk's does as soon as others can do without it: its next start
// checks everything, cuts the log before the damage, and fetches the rest anew, under
// another directory id. Until then it goes on with what is whole: a damaged record is
// refused to its readers, and is worth more than none.
func (n *Node) NoteDamage(err error) {
	if n.failed != nil || n.damage != nil || !errors.Is(err, log.ErrDamaged) {
		return
	}
	n.damage = err
	n.cfg.Log.Error(err, "the log is damaged: what is damaged is given to nobody; the log is rebuilt as soon as others are enough")
	n.tellTrouble()
	n.core.Tick(n.cfg.Now())
	n.leaveForDamage()
	n.settle()
}

// NoteDeaf is told whether a listener for clients outside of the cluster that should be open
// is not. The replica says so, and works on for all the others.
func (n *Node) NoteDeaf(deaf bool) {
	if n.failed != nil || n.deaf == deaf {
		return
	}
	n.deaf = deaf
	n.tellTrouble()
	n.core.Tick(n.cfg.Now())
	n.settle()
}

func (n *Node) tellTrouble() {
	n.core.NoteTrouble(epoch.Trouble{Full: n.space.full, Damaged: n.damage != nil, Deaf: n.deaf})
}

// leaveForDamage ends a replica with a damaged log, once it does not lead and is not
// needed. Leadership is handed over before.
func (n *Node) leaveForDamage() {
	if n.failed == nil && n.damage != nil && n.core.Role() != core.Leader && n.core.Dispensable(n.cfg.Now()) {
		n.fail(n.damage)
	}
}
