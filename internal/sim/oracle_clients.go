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

// replaced notes since when a leader's epoch is not the newest any more.
func (o *oracle) replaced(rec epoch.Record) {
	for _, p := range o.w.procs {
		if p.node == nil || p.node.Core().Role() != core.Leader {
			p.replaced = 0
			continue
		}
		switch e := p.node.Core().Record().LeaderEpoch; {
		case e >= rec.LeaderEpoch:
			p.replaced = 0
		case p.replaced == 0 || p.replacedIn != e:
			p.replaced, p.replacedIn = max(p.clock(), 1), e
		}
	}
}

// stale judges a leader that has appended what does not wait for the high watermark
// (rule 8): it can renew nothing once there is a newer epoch, and goes on for a lease's
// duration, or while it is fetched from.
func (o *oracle) stale(p *process, v uint32) {
	lease, now := o.w.cfg.Lease, p.clock()
	if p.replaced > 0 && now-p.replaced > lease && now-p.fetched > lease && len(p.node.Core().Record().Replicas) > 1 && !o.w.store.line.left {
		o.w.fail("R8", "%s leads an epoch that ended %s ago, is fetched from by nobody, and takes v%d without acks=all", p, now-p.replaced, v)
	}
}

// admitted judges what a leader has appended from an offset on: nothing that was sent
// with acks=all while it knew fewer members of the ISR to be live than min ISR. It could
// only time out, and its client would not know what became of it.
func (o *oracle) admitted(p *process, live int, from epoch.Offset, sent []*producePacket) {
	if p.dead || p.node.Core().Role() != core.Leader {
		return
	}
	o.replaced(o.w.store.current().Record)
	for off := from; off < p.mirror.end(); off++ {
		e, _ := p.mirror.at(off)
		for _, q := range sent {
			switch {
			case !slices.Contains(q.sending.values, e.value):
			case q.producer.acks != core.AcksAll:
				o.stale(p, e.value)
			case live < p.node.Core().Record().MinISR:
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
