package vfs

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
)

// EachCrash calls f with what a power cut may leave now, one file system after another,
// by the rules of [Mem.RandomCrash], until it has tried all or limit of them. All are
// tried as far as these choices go: which changes of names have happened (every subset
// of up to six; of more a beginning, and all but one or two); and of each file's content,
// every moment since the last sync, each with the bytes or the size of its next write
// only, and all of it without any one sector. Beyond the limit the choices that differ in one file only come
// first, then others by a fixed seed. It returns how many there were.
func (m *Mem) EachCrash(limit int, f func(*Mem)) int {
	m.mu.Lock()
	var all []choices
	for _, chosen := range m.subsets() {
		names, dirs := m.namesAfter(chosen)
		all = append(all, choicesOf(names, dirs))
	}
	m.mu.Unlock()
	seen, seed := map[uint64]bool{}, maphash.MakeSeed()
	for share, i := limit/len(all)+1, 0; i < len(all) && len(seen) < limit; i++ {
		all[i].each(share, func(contents map[*node][]byte) {
			if h := all[i].hash(seed, contents); !seen[h] && len(seen) < limit {
				seen[h] = true
				f(m.after(all[i].names, all[i].dirs, func(_ string, n *node) []byte { return slices.Clone(contents[n]) }))
			}
		})
	}
	return len(seen)
}

// subsets are the choices of which groups of changes of names have happened.
func (m *Mem) subsets() []func(group int) bool {
	var groups []int
	for _, c := range m.pending {
		if !slices.Contains(groups, c.group) {
			groups = append(groups, c.group)
		}
	}
	var out []func(int) bool
	if len(groups) <= 6 {
		for bits := range 1 << len(groups) {
			out = append(out, func(group int) bool { return bits>>slices.Index(groups, group)&1 == 1 })
		}
		slices.Reverse(out) // all of them first
		return out
	}
	for n := len(groups); n >= 0; n-- {
		out = append(out, func(group int) bool { return slices.Index(groups, group) < n })
	}
	for i, a := range groups {
		for _, b := range groups[i:] { // b is a first: then only one is missing
			out = append(out, func(group int) bool { return group != a && group != b })
		}
	}
	return out
}

// choices are what may be left of the contents, for one choice of names.
type choices struct {
	names    map[string]*node
	dirs     map[string]bool
	files    []*node    // those of which there is a choice
	variants [][][]byte // of each of them, the written content first
	settled  map[*node][]byte
}

func choicesOf(names map[string]*node, dirs map[string]bool) choices {
	o := choices{names: names, dirs: dirs, settled: map[*node][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if o.settled[n] != nil || slices.Contains(o.files, n) {
			continue
		}
		if v := n.variants(); len(v) > 1 {
			o.files, o.variants = append(o.files, n), append(o.variants, v)
		} else {
			o.settled[n] = v[0]
		}
	}
	return o
}

// variants are the contents that a power cut may leave of a file, without doubles.
func (n *node) variants() [][]byte {
	out := [][]byte{slices.Clone(n.data)}
	add := func(b []byte) {
		if !slices.ContainsFunc(out, func(c []byte) bool { return slices.Equal(b, c) }) {
			out = append(out, b)
		}
	}
	for t := len(n.history); t >= 0; t-- {
		before := n.mix(nil, t)
		add(before)
		if t == len(n.history) || n.history[t].cuts() {
			continue
		}
		c, after := n.history[t], n.mix(nil, t+1)
		for at := c.off/SectorSize*SectorSize + SectorSize; at < c.end; at += SectorSize { // a beginning of the write
			torn := slices.Clone(after[:max(at, int64(len(before)))])
			if at < int64(len(before)) {
				copy(torn[at:], before[at:])
			}
			add(torn)
		}
		if c.end > c.was { // the size without the bytes
			add(append(slices.Clone(before), make([]byte, c.end-c.was)...))
		}
	}
	if len(n.history) > 0 && !slices.ContainsFunc(n.history, change.cuts) {
		old := n.durableContent()
		for s := range (int64(len(n.data)) + SectorSize - 1) / SectorSize {
			without := slices.Clone(n.data)
			put(without, s, sector(old, s))
			add(without)
		}
	}
	for s, b := range n.lost {
		dropped := slices.Clone(n.data)
		put(dropped, s, b)
		add(dropped)
	}
	return out
}

// each calls f with up to limit combinations.
func (o choices) each(limit int, f func(map[*node][]byte)) {
	pick := make([]int, len(o.files))
	try := func() {
		contents := maps.Clone(o.settled)
		for i, n := range o.files {
			contents[n] = o.variants[i][pick[i]]
		}
		f(contents)
	}
	total := 1
	for _, v := range o.variants {
		if total *= len(v); total > limit {
			o.some(limit, pick, try)
			return
		}
	}
	for range total {
		try()
		for i := range pick {
			if pick[i]++; pick[i] < len(o.variants[i]) {
				break
			}
			pick[i] = 0
		}
	}
}

// some tries all that differ in one file from what was written, or from what is durable,
// and then others at random.
func (o choices) some(limit int, pick []int, try func()) {
	for _, last := range []bool{false, true} {
		for i, v := range o.variants {
			for j, w := range o.variants {
				if pick[j] = 0; last {
					pick[j] = len(w) - 1
				}
			}
			for k := range v {
				pick[i] = k
				try()
				limit--
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(o.files))))
	for ; limit > 0; limit-- {
		for i, v := range o.variants {
			pick[i] = rng.IntN(len(v))
		}
		try()
	}
}

func (o choices) hash(seed maphash.Seed, contents map[*node][]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range slices.Sorted(maps.Keys(o.names)) {
		_, _ = h.WriteString(name)
		_ = h.WriteByte(0)
		b := contents[o.names[name]]
		_, _ = h.Write([]byte{byte(len(b)), byte(len(b) >> 8), byte(len(b) >> 16)})
		_, _ = h.Write(b)
	}
	return h.Sum64()
}
