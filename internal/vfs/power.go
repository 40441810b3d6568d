package vfs

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// RandomCrash returns what a power cut may leave now, chosen by rng; m goes on
// undisturbed. Whatever was synced is there, unless it was written over or cut off
// since. Of the rest:
//
//   - of a file's content, nothing, everything, all up to some moment, or every sector
//     as of a moment of its own; of a write that made the file longer, the size may
//     count without the bytes (zeros), or only a part of the size. A truncation
//     happened or did not, and the bytes behind it with it;
//   - of changes of names, a beginning, as a journal keeps them, or any of them, as
//     POSIX allows. A rename happens as a whole. With a directory, what it holds is gone;
//   - sectors that a failed sync dropped are as on the disk or as in the page cache.
func (m *Mem) RandomCrash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, dirs := m.namesAfter(chooser(rng, m.pending))
	contents := map[*node][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // in order, for the seed's sake
		if n := names[name]; contents[n] == nil {
			contents[n] = n.contentAfter(rng)
		}
	}
	return m.after(names, dirs, func(_ string, n *node) []byte { return slices.Clone(contents[n]) })
}

// chooser decides which groups of changes of names have reached the disk.
func chooser(rng *rand.Rand, pending []naming) func(group int) bool {
	if len(pending) == 0 {
		return func(int) bool { return false }
	}
	if rng.IntN(2) == 0 { // in order
		first, last := pending[0].group, pending[len(pending)-1].group
		upTo := first - 1 + rng.IntN(last-first+2)
		return func(group int) bool { return group <= upTo }
	}
	chosen := map[int]bool{}
	for _, c := range pending {
		if _, known := chosen[c.group]; !known {
			chosen[c.group] = rng.IntN(2) == 0
		}
	}
	return func(group int) bool { return chosen[group] }
}

// namesAfter is what names are left if the chosen groups have happened.
func (m *Mem) namesAfter(chosen func(group int) bool) (map[string]*node, map[string]bool) {
	names, dirs := maps.Clone(m.durable), maps.Clone(m.dirs)
	var gone []string
	for _, c := range m.pending {
		switch {
		case chosen(c.group):
			c.apply(names)
		case c.directory:
			gone = append(gone, c.name)
		}
	}
	for _, dir := range gone {
		inside := func(name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
		maps.DeleteFunc(names, func(name string, _ *node) bool { return inside(name) })
		maps.DeleteFunc(dirs, func(name string, _ bool) bool { return inside(name) })
	}
	maps.DeleteFunc(names, func(name string, _ *node) bool { return !dirs[path.Dir(name)] })
	return names, dirs
}

// contentAfter is what a power cut may leave of a file's content.
func (n *node) contentAfter(rng *rand.Rand) []byte {
	var out []byte
	last := len(n.history)
	switch style := rng.IntN(4); {
	case last == 0 || style == 0:
		out = slices.Clone(n.data)
	case style == 1:
		out = n.mix(nil, 0)
	case style == 2:
		out = n.mix(nil, rng.IntN(last+1))
	default:
		out = n.mix(rng, rng.IntN(last+1))
	}
	for _, s := range slices.Sorted(maps.Keys(n.lost)) {
		if rng.IntN(2) == 0 {
			put(out, s, n.lost[s])
		}
	}
	return out
}

// sizeAt is the size after the first t changes of the history.
func (n *node) sizeAt(t int) int64 {
	if t < len(n.history) {
		return n.history[t].was
	}
	return int64(len(n.data))
}

// mix is the file with the size that it had after t changes, and without a rng its
// content then. With one, every sector that was changed is as of a moment of its own,
// and the size may be on its way to the next.
func (n *node) mix(rng *rand.Rand, t int) []byte {
	size := n.sizeAt(t)
	if rng != nil && t < len(n.history) {
		if steps := (n.sizeAt(t+1)-1)/SectorSize - size/SectorSize; n.history[t].end > size && steps > 0 {
			size = (size/SectorSize + rng.Int64N(steps+1)) * SectorSize
			size = max(size, n.sizeAt(t))
		}
	}
	moments := n.moments(rng, t, size)
	out := make([]byte, size)
	content := slices.Clone(n.data)
	copy(out, content)
	for at := len(n.history); ; at-- {
		for _, s := range moments[at] {
			put(out, s, sector(content, s))
		}
		if at == 0 {
			return out
		}
		content = n.history[at-1].undo(content)
	}
}

// moments are the changed sectors below size, by the moment as of which they are.
// What lies behind a truncation belongs to the time before it or after it, together
// with the size; t says on which side that is.
func (n *node) moments(rng *rand.Rand, t int, size int64) map[int][]int64 {
	changed := map[int64]bool{}
	for _, c := range n.history {
		first, behind := c.sectors()
		for s := first; s < min(behind, (size+SectorSize-1)/SectorSize); s++ {
			changed[s] = true
		}
	}
	out := map[int][]int64{}
	for _, s := range slices.Sorted(maps.Keys(changed)) {
		at := t
		if rng != nil {
			from, to := n.window(s, t)
			at = from + rng.IntN(to-from+1)
		}
		out[at] = append(out[at], s)
	}
	return out
}

// window is between which moments a sector may be, if the size is as of t.
func (n *node) window(s int64, t int) (from, to int) {
	from, to = 0, len(n.history)
	for i, c := range n.history {
		if !c.cuts() || c.off >= (s+1)*SectorSize {
			continue
		}
		if i < t {
			from = i + 1
		} else {
			return from, i
		}
	}
	return from, to
}
