package explore

import (
	"fmt"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// trace tells a way as a table: a row per step, and for each replica its log, log end,
// high watermark and epoch cache, as the protocol notes do (section 2.1). A replica
// that leads is marked with *, one that is down with †.
func (x *Explorer) trace(w world, way []action) string {
	var b strings.Builder
	b.WriteString("| step | action | record")
	for i := range x.Replicas {
		fmt.Fprintf(&b, " | %c log · LEO · HW · cache", letter(i))
	}
	b.WriteString(" |\n|---|---|---" + strings.Repeat("|---", x.Replicas) + "|\n")
	x.row(&b, 0, "at first", &w)
	for k, a := range way {
		name := x.tell(&w, a)
		_, f := x.apply(&w, a)
		x.row(&b, k+1, name, &w)
		if f != nil {
			fmt.Fprintf(&b, "\n%v broken: %s\n", f.breaks, f.what)
		}
	}
	return b.String()
}

func (x *Explorer) row(b *strings.Builder, step int, action string, w *world) {
	fmt.Fprintf(b, "| %d | %s | %s", step, action, x.describe(w.record))
	for i := range x.Replicas {
		p := &x.tables.replicas.things[w.replicas[i]]
		r := p.replica
		mark := ""
		if p.leads {
			mark = fmt.Sprintf("*%d ", p.epoch)
		} else if !p.up {
			mark = "† "
		}
		fmt.Fprintf(b, " | %s%s · %d · %d · %s", mark, r.log, p.leo, p.hw, r.log.cache)
	}
	b.WriteString(" |\n")
}

func (x *Explorer) describe(n uint32) string {
	r := x.tables.records.things[n].snap.Record
	leader := "-"
	if r.Leader != epoch.NoReplica {
		leader = string(letter(r.Leader))
	}
	isr := ""
	for _, id := range r.ISR {
		isr += string(letter(id))
	}
	s := fmt.Sprintf("%d: %s leads epoch %d, ISR {%s}", r.PartitionEpoch, leader, r.LeaderEpoch, isr)
	if r.Switchover != nil {
		s += ", asks to be replaced"
	}
	return s
}

// letter is the name of a replica in traces: A, B, C.
func letter[I ~int | ~int32](id I) rune { return 'A' + rune(id) }

// tell adds to an action's name what it is about.
func (x *Explorer) tell(w *world, a action) string {
	k, i, arg := a.parts()
	name := a.String()
	switch k {
	case produce:
		name = fmt.Sprintf("%s m%d", name, w.records+1)
	case see:
		n := w.record
		if arg > 0 {
			n = w.older[arg-1]
		}
		name = fmt.Sprintf("%s %d", name, x.tables.records.things[n].change)
	case land:
		name = fmt.Sprintf("%s: record %d", name, x.tables.records.things[x.tables.writes.things[w.writes[i]].next].change)
	case landLate:
		name = fmt.Sprintf("%s: record %d", name, x.tables.records.things[x.tables.writes.things[w.orphans[arg]].next].change)
	case fetch, fetchLost, send:
		name += x.tellFetch(w, i)
	case deliver, receive:
		name += ": " + x.tables.messages.things[w.messages[i][arg&^twice]].String()
	}
	return name
}

// tellFetch is what replica i would ask, and would be answered now.
func (x *Explorer) tellFetch(w *world, i int) string {
	n := x.happen(w.replicas[i], asked, 0).message
	if n == 0 {
		return ""
	}
	m := x.tables.messages.things[n]
	if a := x.happen(w.replicas[m.to], gotFetch, n).message; a != 0 {
		m = x.tables.messages.things[a]
	}
	return ": " + m.String()
}

// String is fetch(offset, last epoch, current epoch), and what it was answered.
func (m message) String() string {
	s := fmt.Sprintf("fetch(%d,%d,%d)", m.query.Offset, m.query.LastEpoch, m.query.LeaderEpoch)
	switch {
	case !m.answer:
	case m.outOfRange:
		s += fmt.Sprintf(" → out of range, log end %d", m.end)
	case m.diverging:
		s += fmt.Sprintf(" → div(%d,%d)", m.common.Epoch, m.common.Start)
	default:
		s += fmt.Sprintf(" → %d records, HW %d", len(m.records)/2, m.hw)
	}
	return s
}
