package explore

import (
	"slices"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// normalize drops what cannot make a difference any more.
func (x *Explorer) normalize(w *world) {
	for i := range x.Replicas {
		if n := w.writes[i]; n != 0 && w.fate[i] == onItsWay && x.tables.writes.things[n].base != w.record {
			w.fate[i] = refused
		}
		if x.Fetching != Prompt {
			x.normalizeMessages(w, i)
		}
	}
	for k, n := range w.orphans {
		if n != 0 && x.tables.writes.things[n].base != w.record {
			w.orphans[k] = 0
		}
	}
	if w.orphans[0] != w.orphans[1] || w.orphans[1] != w.orphans[2] {
		slices.SortFunc(w.orphans[:], func(a, b uint32) int { return int(b) - int(a) })
	}
	if x.SkipNothing {
		x.normalizeVersions(w)
	}
}

// forget drops in which epochs records were committed, once no leader of an earlier
// epoch is left and none can come.
func (x *Explorer) forget(w *world) {
	eldest := x.tables.records.things[w.record].epoch
	for i := range x.Replicas {
		if p := &x.tables.replicas.things[w.replicas[i]]; p.leads {
			eldest = min(eldest, p.epoch)
		}
	}
	for o := range w.ncommitted {
		if w.by[o] <= eldest && !x.SkipNothing {
			w.by[o] = 0
		}
	}
}

// normalizeVersions forgets versions that everybody who is up has seen.
func (x *Explorer) normalizeVersions(w *world) {
	oldest := int16(1 << 14)
	for i := range x.Replicas {
		if p := &x.tables.replicas.things[w.replicas[i]]; p.up {
			oldest = min(oldest, p.change)
		}
	}
	for k, n := range w.older {
		if n != 0 && x.tables.records.things[n].change <= oldest {
			w.older[k] = 0
		}
	}
}

// normalizeMessages drops fetches that will be refused whatever happens, and answers
// that will be dropped.
func (x *Explorer) normalizeMessages(w *world, i int) {
	p := &x.tables.replicas.things[w.replicas[i]]
	m := &w.messages[i]
	for k, n := range m {
		if n == 0 {
			continue
		}
		q := &x.tables.messages.things[n]
		if q.answer {
			if !p.follows || p.session != q.fetch.Session || p.epoch != int8(q.query.LeaderEpoch) || x.idle(p, q) {
				m[k] = 0
			}
			continue
		}
		if x.tables.replicas.things[w.replicas[q.to]].epoch > int8(q.query.LeaderEpoch) && !guard.Off(guard.FetchOlderEpoch) {
			m[k] = 0
		}
	}
	if m[0] == 0 && m[1] != 0 {
		m[0], m[1] = m[1], 0
	}
}

// idle reports that an answer brings nothing.
func (x *Explorer) idle(p *replicaInfo, q *message) bool {
	return !q.outOfRange && !q.diverging && q.records == "" && int8(q.query.Offset) == p.leo && int8(q.hw) == p.hw
}
