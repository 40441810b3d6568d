package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Deletion is a client's wish that all records before an offset be deleted
// (DeleteRecords, KIP-107).
type Deletion struct {
	// Before is the first offset that is to stay; NoOffset for the high watermark.
	Before epoch.Offset
	// Timeout bounds the wait for the other replicas; what this one deleted stays
	// deleted.
	Timeout time.Duration
	// Done is called once, within a call of the Node, with the lowest log start of all
	// replicas that are at work, NoOffset with an error.
	Done func(low epoch.Offset, err error)
}

// waitingDeletion is one that is done here, and waits for the other replicas.
type waitingDeletion struct {
	Deletion
	epoch epoch.LeaderEpoch
	until time.Duration
}

// Delete moves this leader's log start, and answers when every replica at work has
// followed, by what it says in its fetches: only then no election brings the records
// back. Nothing above the high watermark is ever deleted: it could not be told from a
// truncation (protocol.md 1.15).
func (n *Node) Delete(d Deletion) {
	if n.failed != nil {
		d.Done(epoch.NoOffset, core.ErrNotLeader)
		return
	}
	if err := n.delete(&d); err != nil {
		d.Done(epoch.NoOffset, err)
	} else {
		n.deletions = append(n.deletions, waitingDeletion{d, n.core.Record().LeaderEpoch, n.cfg.Now() + d.Timeout})
	}
	if n.failed == nil {
		n.settle()
	}
}

func (n *Node) delete(d *Deletion) error {
	if !n.core.MayServe(n.cfg.Now()) {
		return core.ErrNotLeader
	}
	hw := n.core.HighWatermark()
	if d.Before == epoch.NoOffset {
		d.Before = hw
	}
	if d.Before < 0 || d.Before > hw && !guard.Off(guard.DeleteCommittedOnly) {
		return fmt.Errorf("delete the records before %d: %w: the high watermark is %d", d.Before, core.ErrOffsetOutOfRange, hw)
	}
	start := n.log.StartOffset()
	if d.Before <= start {
		return nil
	}
	err := n.changeLogAtAllCosts(func() error { return n.log.SetStartOffset(d.Before) })
	switch {
	case n.noteSpace(err):
		return core.ErrStorage
	case err != nil:
		n.fail(err)
		return core.ErrStorage
	}
	n.cfg.Log.Info("log start moved by a client", "from", start, "to", d.Before)
	return nil
}

// answerDeletions answers those that need not wait any longer.
func (n *Node) answerDeletions() {
	if len(n.deletions) == 0 {
		return
	}
	now := n.cfg.Now()
	low := n.core.LowWatermark(now)
	n.deletions = slices.DeleteFunc(n.deletions, func(d waitingDeletion) bool {
		switch {
		case n.core.Role() != core.Leader || n.core.Record().LeaderEpoch != d.epoch:
			d.Done(epoch.NoOffset, core.ErrNotLeader)
		case low >= d.Before || guard.Off(guard.DeletionWaits):
			d.Done(low, nil)
		case now >= d.until:
			d.Done(epoch.NoOffset, core.ErrTimedOut)
		default:
			return false
		}
		return true
	})
}

func (n *Node) failDeletions(err error) {
	for _, d := range n.deletions {
		d.Done(epoch.NoOffset, err)
	}
	n.deletions = nil
}
