package node

import (
	"errors"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Observe takes in what the watch of the record shows; it may be old.
func (n *Node) Observe(s epoch.Snapshot) {
	if n.failed != nil {
		return
	}
	n.core.Observe(n.cfg.Now(), s, core.FromWatch)
	n.settle()
}

// Written says that the write of the record that RecordPort.Write began succeeded.
func (n *Node) Written(s epoch.Snapshot) {
	if n.failed != nil {
		return
	}
	n.noteRecordError(nil)
	n.core.Written(n.cfg.Now(), s)
	n.settle()
}

// WriteFailed says that it was refused, or that its outcome is not known.
func (n *Node) WriteFailed(err error) {
	if n.failed != nil {
		return
	}
	n.noteRecordError(err)
	n.core.WriteFailed(n.cfg.Now(), err)
	n.settle()
}

// ReadDone says what the read that RecordPort.Read began returned.
func (n *Node) ReadDone(s epoch.Snapshot) {
	if n.failed != nil {
		return
	}
	n.noteRecordError(nil)
	n.core.ReadDone(n.cfg.Now(), s)
	n.settle()
}

// ReadFailed says that it returned nothing.
func (n *Node) ReadFailed(err error) {
	if n.failed != nil {
		return
	}
	n.noteRecordError(err)
	n.core.ReadFailed(n.cfg.Now(), err)
	n.settle()
}

// noteRecordError logs when the record becomes unreachable and reachable again; a
// conflict is everyday business.
func (n *Node) noteRecordError(err error) {
	failing := err != nil && !errors.Is(err, epoch.ErrConflict)
	if failing && n.recordError == nil {
		n.cfg.Log.Error(err, "the partition record cannot be read or written; what works goes on working")
	}
	if !failing && n.recordError != nil {
		n.cfg.Log.Info("the partition record can be read and written again")
	}
	n.recordError = nil
	if failing {
		n.recordError = err
	}
}
