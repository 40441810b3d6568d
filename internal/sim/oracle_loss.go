package sim

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// What disks may lose, and what nobody has to hold, is judged here.

// gone reports that nobody has to hold a record: it is lost with its bearers, or the leader
// after an unclean election has deleted it. A follower that ends where that leader begins
// may have another history up to there, and drops it with the answer to its fetch.
func (o *oracle) gone(off epoch.Offset) bool {
	return o.unclean > 0 && off < o.deleted || o.lostWithBearers(off)
}

// uncleanPending: nobody knows yet what an unclean election has lost. It shows when its leader
// takes over.
func (o *oracle) uncleanPending() bool {
	u := o.w.store.current().Record.UncleanElection
	return u != nil && u.LeaderEpoch > o.forgiven
}

// lostWithBearers: as many disks lost a record as had to hold it, and the record of the
// partition was put back. Who knew that the ISR had shrunk to them may be gone with it.
func (o *oracle) lostWithBearers(off epoch.Offset) bool {
	c := o.committed[off]
	return o.w.store.line.left && o.lost[c.value] >= c.minISR
}

// missing notes which records of a log its host's disk does not hold.
func (o *oracle) missing(before *mirror, h *host) {
	now := h.content
	if h.process != nil {
		now = h.process.mirror
	}
	for off := now.start; off < min(before.start, epoch.Offset(len(o.committed))); off++ {
		if _, ok := now.at(off); !ok { // it was deleted here, and an older volume does not know that
			o.lost[o.committed[off].value]++
		}
	}
	for off := before.start; off < before.end(); off++ {
		e, _ := before.at(off)
		if got, ok := now.at(off); !ok && off >= now.start || ok && got != e {
			o.lost[e.value]++
		}
	}
	o.afterLoss()
}

// copies is judged after the volume of a dropped replica has gone, which is no loss: what
// is committed is on as many disks as had to hold it, but for those that lost it.
func (o *oracle) copies(dropped *host) {
	if o.w.store.line.left {
		return
	}
	if o.uncleanPending() {
		return
	}
	for off := o.deleted; int(off) < len(o.committed); off++ {
		c, n := o.committed[off], 0
		for _, m := range o.w.mirrors() {
			if e, ok := m.at(off); ok && e == c.entry {
				n++
			}
		}
		if !c.deleted && n+o.lost[c.value] < c.minISR {
			o.w.fail("copies", "replica %d was dropped, and of %s, committed at offset %d with min ISR %d, there are %d copies, and %d disks lost one", dropped.id, c.entry, off, c.minISR, n, o.lost[c.value])
			return
		}
	}
}

// afterLoss is judged after a disk lost something: a committed record may be gone from
// everywhere only if as many disks lost it as had to hold it before it was committed.
func (o *oracle) afterLoss() {
	if o.uncleanPending() {
		return
	}
	if o.w.store.line.lost && o.unclean > 0 {
		return // an unclean election on lost ground makes others truncate what counts
	}
	for off := o.deleted; int(off) < len(o.committed); off++ {
		c := o.committed[off]
		if c.deleted {
			continue
		}
		held := slices.ContainsFunc(o.w.mirrors(), func(m *mirror) bool {
			e, ok := m.at(off)
			return ok && e == c.entry
		})
		if !held && o.lost[c.value] < c.minISR {
			o.w.fail("durability", "%s, committed at offset %d with min ISR %d, is in no log any more after %d disks lost it", c.entry, off, c.minISR, o.lost[c.value])
			return
		}
	}
}
