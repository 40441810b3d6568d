package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// This file is the second half of rule 10: a full volume refuses appends, and costs
// nothing else. Appends end while there is room for all that the partition record may
// still demand; if others fill the volume, the reserve makes that room.

const (
	// spaceEvery is how often the room on the volume is looked at without need.
	spaceEvery = time.Second
	// spaceStale is for how long a measurement is good enough for an append: others may
	// write to the disk, too.
	spaceStale = 100 * time.Millisecond
)

// space is what is known of the room on the volume.
type space struct {
	room     volume.Room
	measured time.Duration
	watched  time.Duration
	written  int64 // since it was measured
	full     bool  // appends are refused for want of space
	// atRefusal is what was free then, by the file system's word: there may be a quota that
	// it does not know of.
	atRefusal int64
}

// Which part of the margin appends leave: a follower is to take what its leader took.
const (
	asLeader   = 1
	asFollower = 2
)

// roomFor reports whether an append may take so many bytes and leave its part of the
// margin. It measures when that is near, so that space which is freed is seen at once.
func (n *Node) roomFor(bytes, part int64) bool {
	if n.cfg.NoSpaceMargin {
		return true
	}
	s := &n.space
	if s.measured == 0 || n.cfg.Now()-s.measured >= spaceStale || s.room.Free-s.written-bytes < s.room.Margin/part {
		n.measure()
	}
	if s.room.Free-s.written-bytes < s.room.Margin/part {
		return false
	}
	s.written += bytes
	return true
}

// measure looks at the room. What cannot be measured is taken for enough: the disk says
// itself when it is full.
func (n *Node) measure() {
	s := &n.space
	room, err := n.volume.Room()
	if err != nil {
		n.cfg.Log.Error(err, "the space of the volume is not known")
		room = volume.Room{Free: 1 << 62}
	} else {
		n.roomSeen.Store(&room)
	}
	s.room, s.written, s.measured = room, 0, max(n.cfg.Now(), 1)
}

// Room is what was last measured, at most about a second ago while the disk answers; all
// zero before the first measurement. It is for any goroutine, and does not ask the disk: one
// that hangs must not take the other metrics along.
func (n *Node) Room() volume.Room { return *n.roomSeen.Load() }

// errMargin is ErrNoSpace before the disk says so.
func (n *Node) errMargin() error {
	return fmt.Errorf("%w: %d bytes are free, and %d are kept", log.ErrNoSpace, n.space.room.Free, n.space.room.Margin)
}

// watchSpace looks at the room from time to time: it ends a refusal that no append asks
// about any more, lets retention make room, and takes the reserve again.
func (n *Node) watchSpace() {
	now := n.cfg.Now()
	if n.cfg.NoSpaceMargin || now-n.space.watched < spaceEvery {
		return
	}
	n.space.watched = now
	n.measure()
	if s := &n.space; s.full {
		if s.room.Free >= s.room.Margin && s.room.Free > s.atRefusal {
			n.setFull(false, nil)
		} else {
			n.retain() // it need not wait for its minute
		}
	}
	n.takeReserve()
}

func (n *Node) takeReserve() {
	if n.cfg.NoSpaceMargin {
		return
	}
	if err := n.volume.Reserve(); err != nil {
		n.cfg.Log.Error(err, "no reserve on the volume")
	}
}

// withReserve does what must not fail for want of space: it gives the reserve back to the
// volume, and tries once more.
func (n *Node) withReserve(do func() error) error {
	err := do()
	if noSpace(err) && n.volume.Release() {
		n.cfg.Log.Info("the volume is full: its reserve was given up for what the partition record demands")
		err = do()
	}
	return err
}

// noSpace reports that an operation failed for want of space, and for that only: a log that
// could not cut off what it had begun to write has failed as well, and more space is no help.
func noSpace(err error) bool {
	return (errors.Is(err, log.ErrNoSpace) || vfs.IsNoSpace(err)) && !errors.Is(err, log.ErrFailed)
}

// noteSpace reports whether an append or a change of the log was refused for want of
// space.
func (n *Node) noteSpace(err error) bool {
	full := noSpace(err)
	if full {
		n.measure()
		n.space.atRefusal = n.space.room.Free
		n.setFull(true, err)
	}
	return full
}

// setFull says whether appends are refused for want of space, and logs when that begins
// and ends.
func (n *Node) setFull(full bool, err error) {
	if full == n.space.full {
		return
	}
	n.space.full = full
	n.tellTrouble()
	if full {
		n.cfg.Log.Error(err, "the volume is full: appends are refused, reads go on; give it more space (spec.storage.size)")
	} else {
		n.cfg.Log.Info("the volume has space again")
	}
}

// changeLogAtAllCosts changes the log as the partition record demands, if need be at the
// cost of the reserve.
func (n *Node) changeLogAtAllCosts(change func() error) error {
	return n.withReserve(func() error { return n.changeLog(change) })
}

// persist keeps the record that is about to be acted upon. A high watermark that does not
// count any more, since the record is a recovered one, goes before: with that record on the
// volume no start would forget it.
func (n *Node) persist(rec epoch.Record) error {
	return n.withReserve(func() error {
		if hw := n.core.HighWatermark(); hw < n.log.CheckpointedHighWatermark() {
			if err := n.log.Checkpoint(hw); err != nil {
				return err
			}
		}
		return n.volume.PersistRecord(rec)
	})
}
