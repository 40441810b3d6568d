package epoch

import (
	"fmt"
	"slices"
	"strings"
)

// Entry says at which offset a leader epoch begins.
type Entry struct {
	Epoch LeaderEpoch
	Start Offset
}

// Cache is the leader-epoch cache of one log: entries strictly increasing in
// epoch and in start offset. The zero value is empty. An entry may stand for an
// epoch in which nothing was written, at the tail (KAFKA-7415).
//
// It is a plain value with no lock and no file: package log writes it to
// leader-epoch-checkpoint.
type Cache struct {
	entries []Entry
}

// NewCache makes a cache of entries that must be strictly increasing in both
// fields, as a checkpoint file holds them.
func NewCache(entries []Entry) (Cache, error) {
	for i, e := range entries {
		if e.Epoch < 0 || e.Start < 0 {
			return Cache{}, fmt.Errorf("leader epoch %d at offset %d: negative", e.Epoch, e.Start)
		}
		if i > 0 && (e.Epoch <= entries[i-1].Epoch || e.Start <= entries[i-1].Start) {
			return Cache{}, fmt.Errorf("leader epoch %d at offset %d does not follow epoch %d at offset %d",
				e.Epoch, e.Start, entries[i-1].Epoch, entries[i-1].Start)
		}
	}
	return Cache{entries: slices.Clone(entries)}, nil
}

// Entries returns a copy of the entries in ascending order.
func (c Cache) Entries() []Entry { return slices.Clone(c.entries) }

// Latest is the newest epoch, NoEpoch if the cache is empty. It is what a fetch
// carries as its last fetched epoch: the newest epoch of the cache, which may be
// one in which nothing was written.
func (c Cache) Latest() LeaderEpoch {
	if len(c.entries) == 0 {
		return NoEpoch
	}
	return c.entries[len(c.entries)-1].Epoch
}

// Equal reports whether both caches hold the same entries.
func (c Cache) Equal(d Cache) bool { return slices.Equal(c.entries, d.entries) }

// Assign notes that epoch begins at start, and reports whether that changed the
// cache. Entries of that or a later epoch, and entries that begin at or behind
// start, are dropped: they stand for epochs in which nothing was written, or for
// a history that was truncated.
func (c *Cache) Assign(epoch LeaderEpoch, start Offset) bool {
	if n := len(c.entries); n > 0 && c.entries[n-1].Epoch == epoch && start >= c.entries[n-1].Start {
		return false
	}
	n := len(c.entries)
	for n > 0 && (c.entries[n-1].Epoch >= epoch || c.entries[n-1].Start >= start) {
		n--
	}
	c.entries = append(slices.Clone(c.entries[:n]), Entry{epoch, start})
	return true
}

// EndOffset answers "where does epoch end in a log that ends at end?" with the
// largest epoch ≤ the asked one and the offset at which that epoch ends. An epoch
// that the cache cannot place is (NoEpoch, NoOffset). Both answers are needed to
// find where two histories part (KIP-279).
func (c Cache) EndOffset(epoch LeaderEpoch, end Offset) (LeaderEpoch, Offset) {
	if epoch == NoEpoch || len(c.entries) == 0 {
		return NoEpoch, NoOffset
	}
	if epoch == c.Latest() {
		return epoch, end
	}
	i, _ := slices.BinarySearchFunc(c.entries, epoch, func(e Entry, want LeaderEpoch) int {
		if e.Epoch <= want {
			return -1
		}
		return 1
	})
	switch {
	case i == len(c.entries):
		return NoEpoch, NoOffset
	case i == 0:
		return epoch, c.entries[0].Start
	default:
		return c.entries[i-1].Epoch, c.entries[i].Start
	}
}

// StartAfter is where the first epoch above e begins; ok is false if there is none.
func (c Cache) StartAfter(e LeaderEpoch) (start Offset, ok bool) {
	for _, x := range c.entries {
		if x.Epoch > e {
			return x.Start, true
		}
	}
	return NoOffset, false
}

// EpochAt is the epoch that owns offset: the newest that begins at or before it.
func (c Cache) EpochAt(offset Offset) LeaderEpoch {
	for _, e := range slices.Backward(c.entries) {
		if e.Start <= offset {
			return e.Epoch
		}
	}
	return NoEpoch
}

// TruncateFromEnd drops what begins at or behind offset, and reports whether the
// cache changed. It must run even when offset is the log's end, to drop epochs in
// which nothing was written (KAFKA-10706).
func (c *Cache) TruncateFromEnd(offset Offset) bool {
	n := len(c.entries)
	for n > 0 && c.entries[n-1].Start >= offset {
		n--
	}
	changed := n != len(c.entries)
	c.entries = slices.Clone(c.entries[:n])
	return changed
}

// TruncateFromStart drops what ends at or before offset, and reports whether the
// cache changed. The epoch that owns offset stays, beginning there.
func (c *Cache) TruncateFromStart(offset Offset) bool {
	n := 0
	for n < len(c.entries) && c.entries[n].Start <= offset {
		n++
	}
	if n == 0 || n == 1 && c.entries[0].Start == offset {
		return false
	}
	kept := slices.Clone(c.entries[n-1:])
	kept[0].Start = offset
	c.entries = kept
	return true
}

// Clear drops everything.
func (c *Cache) Clear() { c.entries = nil }

// String prints {epoch:start,…} as the scenario files do.
func (c Cache) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range c.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:%d", e.Epoch, e.Start)
	}
	b.WriteByte('}')
	return b.String()
}
