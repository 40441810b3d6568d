package sim

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// What clients are told is judged here.

// acknowledged judges a success of acks=all (I11, and Jepsen's lost write).
func (o *oracle) acknowledged(p *process, values []uint32, base epoch.Offset) {
	o.w.look(p)
	if !o.counts(p) {
		return
	}
	if p.node.Core().Role() == core.Leader {
		o.leader(p)
	}
	for i, v := range values {
		off := base + epoch.Offset(i)
		o.acked[v] = true
		switch {
		case off < o.deleted: // it was there once
		case int(off) >= len(o.committed):
			o.w.fail("I11", "%s acknowledges v%d at offset %d, and only %d records are committed", p, v, off, len(o.committed))
		case o.committed[off].value != v:
			o.w.fail("I11", "%s acknowledges v%d at offset %d, where v%d is committed", p, v, off, o.committed[off].value)
		}
	}
}

// admitted judges what a leader has appended from an offset on: nothing that was sent
// with acks=all while it knew fewer members of the ISR to be live than min ISR. It could
// only time out, and its client would not know what became of it.
func (o *oracle) admitted(p *process, live int, from epoch.Offset, sent []*producePacket) {
	if p.dead || p.node.Core().Role() != core.Leader || live >= p.node.Core().Record().MinISR {
		return
	}
	for off := from; off < p.mirror.end(); off++ {
		e, _ := p.mirror.at(off)
		for _, q := range sent {
			if q.producer.acks == core.AcksAll && slices.Contains(q.sending.values, e.value) {
				o.w.fail("min ISR", "%s appends v%d, sent with acks=all, while it knows %d members of the ISR to be live, and min ISR is %d", p, e.value, live, p.node.Core().Record().MinISR)
				return
			}
		}
	}
}

// once notes values that may be in a log only once.
func (o *oracle) once(values []uint32) {
	for _, v := range values {
		o.single[v] = true
	}
}

// latest judges ListOffsets(latest): what was visible stays visible, for whoever asks a
// leader of the same or a later epoch (I2, KIP-207).
func (o *oracle) latest(p *process, v *node.View) {
	if v.LeaderEpoch < o.latestBy || !o.counts(p) {
		return
	}
	if v.HighWatermark < o.latestHW && o.unclean == 0 {
		o.w.fail("I2", "%s of epoch %d shows the end %d, a leader of epoch %d has shown %d", p, v.LeaderEpoch, v.HighWatermark, o.latestBy, o.latestHW)
	}
	o.latestBy, o.latestHW = v.LeaderEpoch, v.HighWatermark
}

// consumed judges what a consumer was shown (I12; Jepsen's dirty, inconsistent and
// skipped reads).
func (o *oracle) consumed(c *consumer, p *process, off epoch.Offset, e entry) {
	switch {
	case off != c.position && off > max(c.position, o.deleted) && c.position >= o.deleted:
		o.w.fail("J skipped poll", "%s is at %d and is shown %d by %s", c.name, c.position, off, p)
	case int(off) >= len(o.committed):
		o.w.fail("I12", "%s shows %s at offset %d to %s, and only %d records are committed", p, e, off, c.name, len(o.committed))
	case o.committed[off].entry != e:
		o.w.fail("J inconsistent offset", "%s shows %s at offset %d to %s; committed there is %s", p, e, off, c.name, o.committed[off].entry)
	}
}

// outOfRange judges a consumer that is told so: retention explains it, or an unclean
// election.
func (o *oracle) outOfRange(c *consumer, v *node.View) {
	switch {
	case c.position < v.LogStartOffset:
		c.position, c.lastEpoch = v.LogStartOffset, epoch.NoEpoch
	case o.unclean == 0:
		o.w.fail("J lost write", "%s has read up to %d, and a leader of epoch %d says that it knows %d to %d", c.name, c.position, v.LeaderEpoch, v.LogStartOffset, v.LogEndOffset)
	default:
		c.position, c.lastEpoch = v.HighWatermark, epoch.NoEpoch
	}
}

// diverges judges a consumer that is told that its history was truncated (KIP-320).
func (o *oracle) diverges(c *consumer, p *process, at epoch.Entry) {
	if o.unclean == 0 {
		o.w.fail("J lost write", "%s has read up to %d, and %s says that histories part at %d", c.name, c.position, p, at.Start)
	}
	c.position, c.lastEpoch = min(c.position, at.Start), epoch.NoEpoch
}
