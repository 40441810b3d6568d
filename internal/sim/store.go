package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// store is the API server with the partition's record: compare-and-swap on one object,
// and nothing else that anybody could rely on. Reads and writes take effect at some
// moment between request and answer, or never; answers get lost; watches lag, skip and
// begin again at an older state; all of it can be away.
type store struct {
	w        *world
	versions []epoch.Snapshot // every state that was ever current, the newest last
	calls    []*call          // under way
	orphans  []*call          // writes that their callers have given up, which may still land
	down     bool
	writes   int
	line     line
}

// caller gets the answer to a call.
type caller interface {
	answered(c *call, s epoch.Snapshot, err error)
	String() string
}

// call is one read or write under way.
type call struct {
	by     caller
	next   *epoch.Record // nil for a read
	base   string
	made   bool // it has taken effect, or cannot any more
	result epoch.Snapshot
	err    error
}

func (c *call) String() string {
	if c.next == nil {
		return fmt.Sprintf("read by %s", c.by)
	}
	return fmt.Sprintf("write by %s to partition epoch %d on version %s", c.by, c.next.PartitionEpoch, c.base)
}

var (
	errTimeout     = errors.New("no answer in time")
	errUnreachable = errors.New("connection refused")
)

func newStore(w *world, r epoch.Record) *store {
	s := &store{w: w, versions: []epoch.Snapshot{{Record: r, Version: "0"}}, line: line{changes: map[epoch.ChangeID]bool{}}}
	s.line.add(r)
	return s
}

func (s *store) current() epoch.Snapshot { return s.versions[len(s.versions)-1] }

func (s *store) read(by caller) *call {
	c := &call{by: by}
	s.calls = append(s.calls, c)
	return c
}

func (s *store) write(by caller, base epoch.Snapshot, next epoch.Record) *call {
	n := next.Clone()
	c := &call{by: by, base: base.Version, next: &n}
	s.calls = append(s.calls, c)
	return c
}

// take makes a call take effect.
func (s *store) take(c *call) {
	if c.made {
		return
	}
	c.made = true
	switch {
	case c.next == nil:
		c.result = s.current()
	case c.base != s.current().Version:
		c.err = epoch.ErrConflict
	default:
		c.result = s.commit(*c.next, c.by.String())
	}
}

// commit stores a record.
func (s *store) commit(r epoch.Record, by string) epoch.Snapshot {
	old := s.current().Record
	s.w.oracle.recordChanged(old, r)
	if old.Recovery != nil && r.Recovery == nil {
		s.line.lost, s.line.resumed = false, r.LeaderEpoch
	}
	s.line.add(r)
	s.forgetRounds(old, r)
	return s.replace(r, by)
}

// replace stores whatever it is given, as a restored backup does.
func (s *store) replace(r epoch.Record, by string) epoch.Snapshot {
	s.writes++
	snap := epoch.Snapshot{Record: r, Version: strconv.Itoa(s.writes)}
	s.versions = append(s.versions, snap)
	if s.w.tracing {
		s.w.say("  record %s by %s: partition epoch %d, leader %d.%d, leader epoch %d, ISR %v, min ISR %d,%s%s", snap.Version, by, r.PartitionEpoch,
			r.Leader, r.LeaderSession, r.LeaderEpoch, r.ISR, r.MinISR, assigned(r), marks(r))
	}
	return snap
}

func marks(r epoch.Record) string {
	out := ""
	if v := r.Recovery; v != nil {
		out += fmt.Sprintf(", recovery from %d/%d, round %q, reports %v", v.PartitionEpoch, v.LeaderEpoch, v.Round, v.Reports)
		if v.Newest != nil {
			out += fmt.Sprintf(", newest %v", v.Newest.LastChange())
		}
	}
	if r.Switchover != nil {
		out += fmt.Sprintf(", switchover of session %d", r.Switchover.Session)
	}
	return out
}

// assigned lists the replicas with session, directory id and marks.
func assigned(r epoch.Record) string {
	out := ""
	for _, p := range r.Replicas {
		out += fmt.Sprintf(" %d.%d/%x", p.ID, p.Session, p.DirectoryID[:2])
		for _, m := range []struct {
			on   bool
			name string
		}{{p.Adding, "+"}, {p.Removing, "-"}, {p.Stopping, "s"}, {p.Gone, "g"}} {
			if m.on {
				out += m.name
			}
		}
	}
	return out
}

// answer ends a call.
func (s *store) answer(c *call, err error) {
	s.calls = slices.DeleteFunc(s.calls, func(d *call) bool { return d == c })
	if err == nil {
		err = c.err
	}
	if c.next != nil && !c.made {
		s.orphans = append(s.orphans, c)
	}
	if s.w.tracing {
		s.w.say("%s: %v", c, orOK(err))
	}
	if err != nil {
		c.by.answered(c, epoch.Snapshot{}, err)
		return
	}
	c.by.answered(c, c.result, nil)
}

func orOK(err error) any {
	if err == nil {
		return "ok"
	}
	return err
}

// drop forgets what a caller has under way, since it is gone; its writes may land.
func (s *store) drop(by caller) {
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		if c.by != by {
			return false
		}
		if c.next != nil && !c.made {
			s.orphans = append(s.orphans, c)
		}
		return true
	})
}

// heard reports that whoever called can take an answer.
func heard(c *call) bool {
	p, ok := c.by.(*process)
	return !ok || !p.paused
}

// The store's moves.

func (w *world) storeActs() {
	s := w.store
	if n := len(s.orphans); n > 0 && w.chance(30) {
		i := w.rng.IntN(n)
		c := s.orphans[i]
		s.orphans = slices.Delete(s.orphans, i, i+1)
		w.say("a write lands late: %s", c)
		s.take(c)
		return
	}
	if c, ok := pick(w, s.calls); ok && !s.down {
		s.take(c)
	}
}

func (w *world) storeAnswers() {
	if c, ok := pick(w, w.store.calls); ok && heard(c) {
		if w.store.down && !c.made {
			w.store.answer(c, errUnreachable)
			return
		}
		w.store.take(c)
		w.store.answer(c, nil)
	}
}

// storeIsSilent lets a call time out, whatever became or will become of it.
func (w *world) storeIsSilent() {
	if c, ok := pick(w, w.store.calls); ok && heard(c) {
		w.store.answer(c, errTimeout)
	}
}

// storeAtRest lets everything under way happen.
func (w *world) storeAtRest() {
	for i := 0; i < 20 && !w.store.down; i++ {
		at := slices.IndexFunc(w.store.calls, heard)
		if at < 0 {
			return
		}
		c := w.store.calls[at]
		w.store.take(c)
		w.store.answer(c, nil)
	}
}

func (w *world) storeOutage() {
	w.store.down = !w.store.down
	w.say("the API server is down: %t", w.store.down)
}

// watchSome shows a process a newer state of the record, or after a restart of its
// watch a state that is older than one it has seen.
func (w *world) watchSome() {
	p, ok := pick(w, w.awake())
	if !ok || p.node == nil || w.store.down || w.cut(p.id, api) {
		return
	}
	newest := len(w.store.versions) - 1
	from := min(p.watched, newest)
	if w.chance(10) {
		from = max(0, from-3)
	}
	i := from + w.rng.IntN(newest-from+1)
	if w.chance(50) {
		i = newest
	}
	p.watched = max(p.watched, i)
	if w.tracing {
		w.say("%s watches record %s", p, w.store.versions[i].Version)
	}
	p.node.Observe(w.store.versions[i])
	w.after(p)
}
