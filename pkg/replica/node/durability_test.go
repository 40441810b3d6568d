package node

import (
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// harsh is what a power cut leaves at the worst: nothing that was not synced.
func harsh(m *vfs.Mem) *vfs.Mem { return m.Crash(vfs.Crash{}) }

// TestDurability is the table of docs/durability.md: three replicas, min ISR 2, a record
// acknowledged with acks=all, and then what befalls some of them at one moment, at its
// worst. Afterwards everybody is started again, and the partition recovers by itself with
// the record; or nobody may lead, and only a user's request for an unclean election goes on.
func TestDurability(t *testing.T) {
	kill := func(p *proc) { p.kill() }
	power := func(p *proc) { p.powerCut(harsh) }
	lose := func(p *proc) { p.powerCut(func(*vfs.Mem) *vfs.Mem { return vfs.NewMem() }) }
	type row struct {
		name              string
		what              func(*proc)
		whom              []int
		never, everyBatch bool // that nobody may lead afterwards, by policy
	}
	for _, r := range []row{
		{"the leader's process is killed", kill, []int{0}, false, false},
		{"every process is killed", kill, []int{0, 1, 2}, false, false},
		{"the leader's machine loses power", power, []int{0}, false, false},
		{"a follower's machine loses power", power, []int{1}, false, false},
		{"all machines but a follower's lose power", power, []int{0, 2}, false, false},
		{"every machine loses power", power, []int{0, 1, 2}, true, false},
		{"the leader's disk is lost", lose, []int{0}, false, false},
		{"all disks but a follower's are lost", lose, []int{0, 2}, false, false},
		{"every disk is lost", lose, []int{0, 1, 2}, true, true},
	} {
		for _, mode := range []struct {
			name  string
			edit  func(*Settings)
			waits bool
		}{{"flush Never", nil, r.never}, {"flush EveryBatch", everyBatch, r.everyBatch}} {
			t.Run(r.name+"/"+mode.name, func(t *testing.T) {
				w := newWorld(t, 3, 2, mode.edit)
				for _, p := range w.procs {
					must(t, p.start())
				}
				w.elect(0)
				w.run("all in sync", w.inSync(0, 1, 2))
				for range 100 { // what was registered and marked is on the disks by now
					w.step()
				}
				acked := w.procs[0].produce("acknowledged")
				w.run("the commit", func() bool { return acked.Err == nil })

				for _, i := range r.whom {
					r.what(w.procs[i])
				}
				for _, i := range r.whom {
					must(t, w.procs[i].start())
				}
				leader := func() *proc {
					for _, p := range w.procs {
						if w.leads(p.id)() {
							return p
						}
					}
					return nil
				}
				if mode.waits {
					if n, err := epoch.Elect(w.record.Record, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{0, 1, 2}, Change: "x"}); err == nil && n.Leader != epoch.NoReplica {
						t.Fatalf("replica %d is elected, with the ISR %v", n.Leader, n.ISR)
					}
					return
				}
				w.run("a leader", func() bool {
					if leader() != nil {
						return true
					}
					if n, err := epoch.Elect(w.record.Record, epoch.Election{Reason: epoch.ReasonLeaseExpired, Live: []epoch.ReplicaID{0, 1, 2}, LeaderEnded: true, Change: w.changeID()}); err == nil {
						_, _ = w.swap(w.record, n)
					}
					return false
				})
				w.run("all in sync again", w.inSync(0, 1, 2))
				more := leader().produce("more")
				w.run("another commit", func() bool { return more.Err == nil })
				for range 10 {
					w.step()
				}
				for _, p := range w.procs {
					if got := p.values(); !slices.Equal(got, []string{"acknowledged", "more"}) {
						t.Errorf("replica %d holds %q", p.id, got)
					}
				}
			})
		}
	}
}
