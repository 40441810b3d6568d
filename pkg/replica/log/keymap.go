package log

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// DefaultKeyMapBytes is the memory that a compaction takes for its map of keys.
const DefaultKeyMapBytes = 16 << 20

// keySlotBytes is the size of a keySlot, which a test checks.
const keySlotBytes = 24

// keyMap knows for each key the last offset that it was seen at. Of a key it keeps 128
// bits of its SHA-256: nobody can make two keys meet. It is a table with open addressing,
// and never grows: who fills it must stop.
type keyMap struct {
	slots []keySlot
	used  int
}

type keySlot struct {
	hash [2]uint64
	next epoch.Offset // the key's last offset + 1; 0 in a free slot
}

// newKeyMap makes one of at most that many bytes, and no larger than so many keys need.
func newKeyMap(bytes, keys int64) *keyMap {
	n := min(max(bytes/keySlotBytes, 4), keys+keys/2+4)
	return &keyMap{slots: make([]keySlot, n)}
}

// full: a quarter of the slots stays free, so that searches end soon.
func (m *keyMap) full() bool { return m.used >= len(m.slots)*3/4 }

func hashOf(key []byte) [2]uint64 {
	sum := sha256.Sum256(key)
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// slot is where a hash is, or would be.
func (m *keyMap) slot(hash [2]uint64) *keySlot {
	n := uint64(len(m.slots))
	for i := hash[0] % n; ; i = (i + 1) % n {
		if s := &m.slots[i]; s.next == 0 || s.hash == hash {
			return s
		}
	}
}

// put notes a record. It reports false, and notes nothing, if there is no room for one
// more key.
func (m *keyMap) put(key []byte, o epoch.Offset) bool {
	hash := hashOf(key)
	s := m.slot(hash)
	if s.next == 0 {
		if m.full() {
			return false
		}
		s.hash = hash
		m.used++
	}
	s.next = max(s.next, o+1)
	return true
}

// last is the last offset of a key, NoOffset if it was not seen.
func (m *keyMap) last(key []byte) epoch.Offset {
	if s := m.slot(hashOf(key)); s.next > 0 {
		return s.next - 1
	}
	return epoch.NoOffset
}
