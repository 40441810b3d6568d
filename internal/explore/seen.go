package explore

// seen is a set of hashes, none of which is 0: an open table without anything else in
// it, since that is what the memory of a search is spent on.
type seen struct {
	table []uint64
	n     int
}

func newSeen() *seen { return &seen{table: make([]uint64, 1<<16)} }

// add reports whether h is new.
func (s *seen) add(h uint64) bool {
	if s.n*4 >= len(s.table)*3 {
		s.grow()
	}
	return s.put(h)
}

func (s *seen) put(h uint64) bool {
	mask := uint64(len(s.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case 0:
			s.table[i] = h
			s.n++
			return true
		case h:
			return false
		}
	}
}

func (s *seen) grow() {
	old := s.table
	s.table, s.n = make([]uint64, 2*len(old)), 0
	for _, h := range old {
		if h != 0 {
			s.put(h)
		}
	}
}

// path remembers how each state was first reached.
type path struct{ chunks [][]link }

type link struct {
	from uint32
	act  action
}

const chunk = 1 << 20

func (p *path) add(l link) {
	if n := len(p.chunks); n == 0 || len(p.chunks[n-1]) == chunk {
		p.chunks = append(p.chunks, make([]link, 0, chunk))
	}
	last := &p.chunks[len(p.chunks)-1]
	*last = append(*last, l)
}

// to is the way to a state, from the first.
func (p *path) to(state uint32) []action {
	var acts []action
	for state != 0 {
		l := p.chunks[state/chunk][state%chunk]
		acts = append(acts, l.act)
		state = l.from
	}
	for i, j := 0, len(acts)-1; i < j; i, j = i+1, j-1 {
		acts[i], acts[j] = acts[j], acts[i]
	}
	return acts
}
