package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// entry is one record: the epoch that wrote it, and its value, which is unique.
type entry struct {
	epoch epoch.LeaderEpoch
	value uint32
}

func (e entry) String() string { return fmt.Sprintf("v%d/%d", e.value, e.epoch) }

// mirror is what a log holds, as the simulator has read it from the log.
type mirror struct {
	start   epoch.Offset
	entries []entry
	last    log.BatchID
	cache   epoch.Cache
	// same is how many of the committed records were found in it, from offset 0 on.
	same  epoch.Offset
	looks int
}

func (m *mirror) end() epoch.Offset { return m.start + epoch.Offset(len(m.entries)) }

func (m *mirror) at(o epoch.Offset) (entry, bool) {
	if o < m.start || o >= m.end() {
		return entry{}, false
	}
	return m.entries[o-m.start], true
}

func (m *mirror) clone() *mirror {
	n := *m
	n.entries = slices.Clone(m.entries)
	return &n
}

func (m *mirror) String() string {
	var b strings.Builder
	for _, e := range m.entries {
		fmt.Fprintf(&b, "%s ", e)
	}
	if m.start > 0 {
		return fmt.Sprintf("%d: %s", m.start, b.String())
	}
	return b.String()
}

// changed reports that a log is not as the mirror has it.
func (m *mirror) changed(l *log.Log) bool {
	id, _ := l.LastBatch()
	return m.start != l.StartOffset() || m.end() != l.EndOffset() || m.last != id || !m.cache.Equal(l.EpochCache())
}

// update brings the mirror in line with a log, mostly by what was appended.
func (m *mirror) update(l *log.Log, w *world) {
	if !m.changed(l) {
		return
	}
	m.looks++
	start, end := l.StartOffset(), l.EndOffset()
	if start != m.start || end <= m.end() || m.looks%32 == 0 {
		was := m.clone()
		m.readAll(l)
		m.same = min(was.same, m.commonEnd(was))
	} else {
		m.readFrom(l, m.end())
		m.last, _ = l.LastBatch()
		m.cache = l.EpochCache()
	}
	w.oracle.log(m)
}

// commonEnd is up to where two mirrors of one log agree, what one of them has dropped
// at its start counted as agreed.
func (m *mirror) commonEnd(n *mirror) epoch.Offset {
	o := max(m.start, n.start)
	for ; o < min(m.end(), n.end()); o++ {
		a, _ := m.at(o)
		if b, _ := n.at(o); a != b {
			break
		}
	}
	return o
}

// readAll reads a whole log.
func (m *mirror) readAll(l *log.Log) {
	m.start, m.entries, m.same = l.StartOffset(), m.entries[:0], 0
	m.readFrom(l, m.start)
	m.last, _ = l.LastBatch()
	m.cache = l.EpochCache()
}

// readFrom reads what follows the mirror's end.
func (m *mirror) readFrom(l *log.Log, from epoch.Offset) {
	end := l.EndOffset()
	for from < end {
		b, err := l.Read(from, end, 1<<20, true)
		if err != nil || len(b) == 0 {
			return
		}
		for len(b) > 0 {
			var next batch.Batch
			if next, b, err = batch.Next(b); err != nil {
				return
			}
			base := next.BaseOffset()
			for i, v := range values(next) {
				if o := base + epoch.Offset(i); o >= from {
					m.entries = append(m.entries, entry{next.LeaderEpoch(), v})
				}
			}
			from = max(from, next.NextOffset())
		}
	}
}

// The records of a simulation hold four bytes, their value, and nothing else, so that
// batches are of one shape and can be read without a decoder.
const recordSize = 11

func newBatch(vals []uint32, producer int64, sequence int32) batch.Batch {
	b := batch.NewBuilder()
	if producer >= 0 {
		b.Producer(producer, 0, sequence)
	}
	for _, v := range vals {
		b.Record(0, nil, binary.BigEndian.AppendUint32(nil, v))
	}
	return b.Build()
}

func values(b batch.Batch) []uint32 {
	out := make([]uint32, b.Count())
	for i := range out {
		end := batch.HeaderSize + (i+1)*recordSize - 1 // behind the value is the count of headers
		out[i] = binary.BigEndian.Uint32(b[end-4 : end])
	}
	return out
}
