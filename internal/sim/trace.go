package sim

import (
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

func (w *world) say(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

// show tells, after a step, every replica that it changed: role, log, log end, high
// watermark and epoch cache, as the tables of the protocol notes do.
func (w *world) show() {
	for _, p := range w.procs {
		if p.node == nil {
			continue
		}
		c := p.node.Core()
		role := "idle"
		switch c.Role() {
		case core.Leader:
			role = fmt.Sprintf("leads %d", c.Record().LeaderEpoch)
		case core.Follower:
			role = fmt.Sprintf("follows %d", c.Record().Leader)
		case core.Idle:
		}
		line := fmt.Sprintf("        %-14s %-10s %s· LEO %d · HW %d · %s", p, role, p.mirror, p.node.Log().EndOffset(), c.HighWatermark(), p.node.Log().EpochCache())
		if line != p.shown {
			p.shown = line
			w.trace = append(w.trace, line)
		}
	}
}

// summary is the state at the end of a run.
func (w *world) summary() string {
	out := fmt.Sprintf("record: %s\n", describe(w.store.current().Record))
	for _, h := range w.hosts {
		if p := h.process; p != nil {
			state := "starting"
			if p.node != nil {
				state = fmt.Sprintf("%s, HW %d", p.node.Core().Role(), p.node.Core().HighWatermark())
			}
			out += fmt.Sprintf("%s: %s, log %s\n", p, state, p.mirror)
		} else {
			out += fmt.Sprintf("%d: down, log %s\n", h.id, h.content)
		}
	}
	return out
}

func describe(r epoch.Record) string {
	return fmt.Sprintf("partition epoch %d, leader %d.%d, leader epoch %d, ISR %v, min ISR %d,%s%s", r.PartitionEpoch, r.Leader, r.LeaderSession, r.LeaderEpoch, r.ISR, r.MinISR, assigned(r), marks(r))
}
