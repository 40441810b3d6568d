package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// errEnded is Err after End.
var errEnded = errors.New("this process serves nobody any more")

// Stop begins an orderly end: the Node hands over its leadership, or leaves the ISR.
// Go on as before until Released, but not for ever; then End and Finish.
func (n *Node) Stop() {
	if n.failed != nil {
		return
	}
	n.stopping = true
	n.core.Stop(n.cfg.Now())
	n.settle()
}

// Released reports, after Stop, that nobody needs this replica any more.
func (n *Node) Released() bool { return n.released }

// Quit ends the process for a reason that is not the volume's: its promise stays.
func (n *Node) Quit(err error) {
	if n.failed == nil {
		n.failed = err
	}
}

// fail ends leadership and promise at once (rule 10): the volume is at fault, nothing
// is answered any more, and the error mark outlives the process.
func (n *Node) fail(err error) {
	n.failed = fmt.Errorf("the volume cannot be trusted any more, this replica gives up its promise and ends: %w", err)
	n.volume.MarkError()
	n.completeAll(core.ErrStorage)
}

func (n *Node) failUnlessFull(err error) {
	if !n.noteSpace(err) {
		n.fail(err)
	}
}

// End answers who still waits: this process serves nobody any more. It returns Err as
// it was.
func (n *Node) End() error {
	err := n.failed
	n.completeAll(core.ErrNotLeader)
	for _, f := range n.parked {
		f.Answer(core.FetchAnswer{}, core.ErrNotLeader)
	}
	n.parked = nil
	if n.failed == nil {
		n.failed = errEnded
	}
	return err
}

func (n *Node) completeAll(err error) {
	for _, token := range slices.Sorted(maps.Keys(n.produces)) { // in the order in which they came
		n.complete(token, err)
	}
	for _, q := range n.held {
		n.refuse(q, err)
	}
	n.held = nil
	n.failDeletions(err)
}

// Finish flushes everything and writes the clean mark, in this order, and closes
// log and volume. Call it after an End that returned nil, when no work of Ports.Flush
// runs any more.
func (n *Node) Finish() error {
	defer n.Close()
	hw := n.core.HighWatermark()
	if _, err := n.log.Flush(); err != nil {
		n.volume.MarkError()
		return fmt.Errorf("flush the log at the end: %w", err)
	}
	if err := n.withReserve(func() error { return n.log.Checkpoint(hw) }); err != nil {
		return fmt.Errorf("write the checkpoints at the end: %w", err)
	}
	if err := n.log.Close(); err != nil {
		return fmt.Errorf("close the log: %w", err)
	}
	if err := n.withReserve(func() error { return n.volume.WriteCleanMark(n.me.Session, n.me.StartID) }); err != nil {
		return fmt.Errorf("mark the volume as cleanly stopped: %w", err)
	}
	n.cfg.Log.Info("stopped in good order", "highWatermark", hw)
	return nil
}

// Close lets go of log and volume, without a mark. It may be called again.
func (n *Node) Close() {
	if err := n.log.Close(); err != nil && !errors.Is(err, log.ErrClosed) {
		n.cfg.Log.Error(err, "close the log")
	}
	if err := n.volume.Close(); err != nil {
		n.cfg.Log.Error(err, "close the volume")
	}
}
