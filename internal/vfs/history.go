package vfs

import (
	"bytes"
	"slices"
)

// SectorSize is what a disk writes as a whole or not at all, in bytes.
const SectorSize = 512

// undo takes a change back from content as it was right after it.
func (c change) undo(content []byte) []byte {
	if n := c.was - int64(len(content)); n > 0 {
		content = append(content, make([]byte, n)...)
	}
	content = content[:c.was]
	if c.off < c.was {
		copy(content[c.off:], c.old)
	}
	return content
}

// cuts reports a truncation that made the file shorter.
func (c change) cuts() bool { return c.end == c.off && c.off < c.was }

// sectors are the first sector that a change touches and the one behind the last. A
// write behind the end fills the gap with zeros.
func (c change) sectors() (first, behind int64) {
	from, to := min(c.off, c.was), max(c.end, c.was)
	if c.end > c.off { // a write
		from, to = c.off, c.end
		if c.was < c.off {
			from = c.was
		}
	}
	return from / SectorSize, (to + SectorSize - 1) / SectorSize
}

// durableContent is what the disk holds for certain, as a new slice.
func (n *node) durableContent() []byte {
	content := bytes.Clone(n.data)
	for _, c := range slices.Backward(n.history) {
		content = c.undo(content)
	}
	for s, b := range n.lost {
		put(content, s, b)
	}
	return content
}

// sector is a copy of a sector of content, zeros where that ends before.
func sector(content []byte, s int64) []byte {
	b := make([]byte, SectorSize)
	if at := s * SectorSize; at < int64(len(content)) {
		copy(b, content[at:])
	}
	return b
}

// put writes a sector into content as far as that goes.
func put(content []byte, s int64, b []byte) {
	if at := s * SectorSize; at < int64(len(content)) {
		copy(content[at:min(at+SectorSize, int64(len(content)))], b)
	}
}

// settle makes everything durable but what an earlier sync has dropped.
func (n *node) settle() {
	if len(n.lost) > 0 {
		for _, c := range n.history[n.dropped:] {
			first, behind := c.sectors()
			for s := first; s < behind; s++ {
				delete(n.lost, s) // dirty again, so written now
			}
		}
		for s := range n.lost {
			if s*SectorSize >= int64(len(n.data)) {
				delete(n.lost, s)
			}
		}
	}
	clear(n.history)
	n.history, n.dropped = n.history[:0], 0
}

// drop is what a kernel does with pages that it could not write: it reports the
// error once, and takes them for clean ("fsyncgate").
func (n *node) drop() {
	if len(n.history) == n.dropped {
		return
	}
	disk := n.durableContent()
	if n.lost == nil {
		n.lost = map[int64][]byte{}
	}
	for _, c := range n.history[n.dropped:] {
		first, behind := c.sectors()
		for s := first; s < behind; s++ {
			if n.lost[s] == nil {
				n.lost[s] = sector(disk, s)
			}
		}
	}
	n.dropped = len(n.history)
}

func (n *node) clone() *node {
	out := *n
	out.data = bytes.Clone(n.data)
	out.history = slices.Clone(n.history) // what is replaced is never written again
	if n.lost != nil {
		out.lost = make(map[int64][]byte, len(n.lost))
		for s, b := range n.lost {
			out.lost[s] = b
		}
	}
	return &out
}
