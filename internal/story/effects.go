package story

import (
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// observe shows the record to one process, by watch. Who waits for the answer to a
// write that was stored gets that first.
func (c *cluster) observe(p *replica) {
	waits := slices.ContainsFunc(p.writes, func(w write) bool { return w.landed && !w.timedOut })
	if !p.up() || c.isCut(p.name, api) || c.isCut(p.name, watch) || waits {
		return
	}
	p.core.Observe(c.now, c.snapshot(), core.FromWatch)
	c.settle(p)
}

// maxRounds bounds what may follow from one event. With a rule taken away a leader may
// change its mind about the ISR for ever, where in a real cluster time would pass.
const maxRounds = 40

// settle carries out what a core wants, and looks at its high watermark.
func (c *cluster) settle(p *replica) {
	for round := 0; p.up() && round < maxRounds; round++ {
		effects := p.core.Take()
		if len(effects) == 0 {
			break
		}
		for _, e := range effects {
			if p.up() {
				c.carryOut(p, e)
			}
		}
	}
	c.watchHighWatermark(p)
}

// watchHighWatermark tells of what no leader may do: take back what it called
// committed.
func (c *cluster) watchHighWatermark(p *replica) {
	if !p.leads() {
		p.ledEpoch = epoch.NoEpoch
		return
	}
	e, hw := p.core.Record().LeaderEpoch, p.core.HighWatermark()
	if p.ledEpoch == e && hw < p.ledHW {
		c.print("%s takes its high watermark back from %d to %d", p.name, p.ledHW, hw)
	}
	p.ledEpoch, p.ledHW = e, hw
}

func (c *cluster) carryOut(p *replica, e core.Effect) {
	switch e := e.(type) {
	case core.PersistRecord:
		p.persisted = e.Record
	case core.AssignEpoch:
		p.log.cache.Assign(e.Epoch, p.log.EndOffset())
	case core.Truncate:
		c.truncated(p, e.To, p.log.truncate(e.To), e.BelowHighWatermark)
	case core.TruncateFully:
		gone, at := p.log.records, p.log.start
		p.log.restart(e.StartAt)
		state := p.state()
		c.note(Event{Kind: Truncated, Replica: p.name, Offset: at, Records: gone, State: &state}, "%s empties its log and begins at %d", p.name, e.StartAt)
	case core.AppendFetched:
		c.appendFetched(p, e)
	case core.WriteRecord:
		c.writeRecord(p, e)
	case core.ReadRecord:
		c.readRecord(p)
	case core.Complete:
		c.complete(p, e)
	case core.Exit:
		c.note(Event{Kind: Exited, Replica: p.name}, "%s exits: %s", p.name, e.Reason)
		c.stop(p)
	case core.Regression:
		c.note(Event{Kind: Alarm, Replica: p.name}, "%s reports that the record went back: it read partition epoch %d and leader epoch %d, and knew %d and %d",
			p.name, e.Read.PartitionEpoch, e.Read.LeaderEpoch, e.Known.PartitionEpoch, e.Known.LeaderEpoch)
	}
}

func (c *cluster) truncated(p *replica, to epoch.Offset, gone []Record, below bool) {
	lost := make([]string, len(gone))
	for i, r := range gone {
		lost[i] = r.Value
	}
	what := ""
	if n := len(lost); n > 6 {
		lost = append(append(lost[:2:2], "…"), lost[n-2:]...)
	}
	if len(lost) > 0 {
		what = ", without " + strings.Join(lost, " ")
	}
	if below {
		what += " (below its high watermark)"
	}
	state := p.state()
	c.note(Event{Kind: Truncated, Replica: p.name, Offset: to, Records: gone, State: &state}, "%s truncates to %d%s", p.name, to, what)
}

// appendFetched does as the owner of a log does: records, log start, high watermark.
func (c *cluster) appendFetched(p *replica, e core.AppendFetched) {
	if err := p.log.appendParcel(decode(e.Records), e.MaxEpoch); err != nil {
		c.note(Event{Kind: Alarm, Replica: p.name}, "%s cannot append: %v", p.name, err)
		return
	}
	hw := min(max(e.HighWatermark, p.log.start), p.log.EndOffset())
	p.log.raiseStart(min(e.LogStartOffset, hw))
	p.core.AppliedFetch(e)
}

func (c *cluster) complete(p *replica, e core.Complete) {
	value := p.waiting[e.Token]
	delete(p.waiting, e.Token)
	if e.Err != nil {
		c.note(Event{Kind: Refused, Replica: p.name}, "%s not acknowledged: %v", value, e.Err)
		return
	}
	at := epoch.NoOffset
	for i, r := range slices.Backward(p.log.records) {
		if r.Value == value {
			at = p.log.start + epoch.Offset(i)
			break
		}
	}
	c.acknowledged = append(c.acknowledged, acknowledged{at, value})
	c.note(Event{Kind: Acknowledged, Replica: p.name, Offset: at}, "%s acknowledged at offset %d", value, at)
}
