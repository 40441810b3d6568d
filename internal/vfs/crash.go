package vfs

import (
	"bytes"
	"maps"
)

// Crash says what a crash leaves of what was not durable. The zero value is the
// harshest: unsynced bytes and unsynced names are gone.
type Crash struct {
	// KeepNames keeps names as the program saw them: creations, renames and
	// removals count even without SyncDir.
	KeepNames bool
	// Content chooses what a file holds afterwards, from what is durable and what
	// was written. Nil: what is durable.
	Content func(name string, durable, written []byte) []byte
}

// ProcessCrash keeps everything that was written, as the page cache does.
func ProcessCrash() Crash {
	return Crash{KeepNames: true, Content: func(_ string, _, written []byte) []byte { return written }}
}

// Crash returns the file system that a crash would leave now. m goes on
// undisturbed, so that a test can ask at every step. Open handles, faults and
// capacity stay with m.
func (m *Mem) Crash(c Crash) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := NewMem()
	out.dirs = maps.Clone(m.dirs)
	names := m.durable
	if c.KeepNames {
		names = m.names
	}
	for name, n := range names {
		data := n.synced
		if c.Content != nil {
			data = c.Content(name, bytes.Clone(n.synced), bytes.Clone(n.data))
		}
		data = bytes.Clone(data)
		kept := &node{data: data, synced: bytes.Clone(data), mod: n.mod}
		out.names[name], out.durable[name] = kept, kept
	}
	return out
}
