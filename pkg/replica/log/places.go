package log

import "github.com/tidemark-io/tidemark/pkg/epoch"

// place is where the batch stands that begins at an offset.
type place struct {
	segment  *segment
	offset   epoch.Offset
	position int64
	changes  uint64
}

// places remembers where the newest reads have ended: who reads on from there, as followers
// and consumers do, is spared the index and the way from its entry to the batch. A
// truncation or a compaction makes all of it void. Log.mu guards it.
type places struct {
	ring [32]place
	next int
}

func (p *places) add(at place) {
	p.ring[p.next] = at
	p.next = (p.next + 1) % len(p.ring)
}

// find returns the position of the batch that begins at an offset of a segment, -1 if
// nothing is remembered.
func (p *places) find(s *segment, o epoch.Offset, changes uint64) int64 {
	for i := range p.ring {
		if at := &p.ring[i]; at.offset == o && at.segment == s && at.changes == changes {
			return at.position
		}
	}
	return -1
}
