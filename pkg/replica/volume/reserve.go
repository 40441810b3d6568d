package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/tidemark-io/tidemark/internal/vfs"
)

// This file is about a volume that is full, which costs neither leadership nor the
// promise (DESIGN.md rule 10), as long as what the partition record demands can still be
// written: records, epochs, checkpoints, truncations. Two things see to that. Appends
// stop while there is still room (Margin), and a file holds room that is given back when
// even that is gone (Reserve): the volume may be shared, or have been full before this
// program came to it.

const (
	reserveFile = ".reserve"
	// maxReserve and reserveShare bound what the file takes: enough for the indexes and
	// the producer snapshot of a segment, little of a small volume, and less than what any
	// append leaves: given back, it must not be taken for records.
	maxReserve   = 8 << 20
	reserveShare = 64
	// maxMargin and marginShare bound the room at which appends stop.
	maxMargin   = 32 << 20
	marginShare = 16
)

// Room is what a volume has left, in bytes.
type Room struct {
	// Free may still be written.
	Free int64
	// Margin is to be left free by a leader's appends. Half of it is to be left by a
	// follower's, so that it can take what its leader took.
	Margin int64
	// Total is what the volume holds; 0 where nobody sets a limit.
	Total int64
}

// Room measures. It is one system call.
func (v *Volume) Room() (Room, error) {
	s, err := v.fs.Space(v.cfg.Dir)
	if err != nil {
		return Room{}, fmt.Errorf("measure the space of the volume: %w", err)
	}
	if s.Total == math.MaxInt64 {
		return Room{Free: s.Free}, nil
	}
	return Room{Free: s.Free, Margin: min(maxMargin, s.Total/marginShare), Total: s.Total}, nil
}

// Reserve takes room for worse times, unless it is taken already, or there is not
// plenty.
func (v *Volume) Reserve() error {
	s, err := v.fs.Space(v.cfg.Dir)
	if err != nil {
		return fmt.Errorf("measure the space of the volume: %w", err)
	}
	want := min(maxReserve, s.Total/reserveShare)
	if s.Total == math.MaxInt64 || v.reserved() >= want || s.Free < want+2*min(maxMargin, s.Total/marginShare) {
		return nil
	}
	f, err := v.fs.Create(v.path(reserveFile))
	if err != nil {
		return fmt.Errorf("make the reserve: %w", err)
	}
	if err = errors.Join(f.Allocate(want), f.Close()); err != nil {
		_ = v.fs.Remove(v.path(reserveFile))
		if vfs.IsNoSpace(err) {
			return nil
		}
		return fmt.Errorf("make the reserve: %w", err)
	}
	return nil
}

// reserved is how much room the file holds.
func (v *Volume) reserved() int64 {
	s, err := v.fs.Stat(v.path(reserveFile))
	if err != nil {
		return 0
	}
	return s.Size
}

// Release gives the reserve back to the volume, and reports whether there was any:
// what failed for want of space is worth a second try then.
func (v *Volume) Release() bool {
	if v.reserved() == 0 {
		return false
	}
	err := v.fs.Remove(v.path(reserveFile))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// makeRoom gives the reserve up to a start on a volume that has nothing else: that writes
// an identity, checkpoints and marks.
func (v *Volume) makeRoom() {
	if room, err := v.Room(); err == nil && room.Free < room.Margin/8 && v.Release() {
		v.cfg.Log.Info("the volume is full: its reserve was given up for this start", "freeBytes", room.Free)
	}
}
