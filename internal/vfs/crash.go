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
// capacity stay with m. Directories survive.
func (m *Mem) Crash(c Crash) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.durable
	if c.KeepNames {
		names = m.names
	}
	return m.after(names, m.dirs, func(name string, n *node) []byte {
		durable := n.durableContent()
		if c.Content == nil {
			return durable
		}
		return bytes.Clone(c.Content(name, durable, bytes.Clone(n.data)))
	})
}

// after is the file system that a crash leaves of these names, all of it durable.
func (m *Mem) after(names map[string]*node, dirs map[string]bool, content func(string, *node) []byte) *Mem {
	out := NewMem()
	out.now = m.now
	out.dirs = maps.Clone(dirs)
	for name, n := range names {
		kept := &node{data: content(name, n), mod: n.mod}
		out.link(name, kept)
		out.durable[name] = kept
	}
	return out
}

// Clone is a copy that knows as well what is durable, such as a snapshot of the volume
// to be restored later. Faults and open handles stay with m.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := map[*node]*node{}
	copyOf := func(n *node) *node {
		if n == nil {
			return nil
		}
		if copies[n] == nil {
			copies[n] = n.clone()
		}
		return copies[n]
	}
	out := NewMem()
	out.now, out.capacity, out.used, out.group = m.now, m.capacity, m.used, m.group
	out.dirs = maps.Clone(m.dirs)
	for name, n := range m.names {
		out.names[name] = copyOf(n)
	}
	for name, n := range m.durable {
		out.durable[name] = copyOf(n)
	}
	for _, c := range m.pending {
		c.file = copyOf(c.file)
		out.pending = append(out.pending, c)
	}
	return out
}
