package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A walk is a cluster that is handled as badly as the rules allow: every message may
// be late, lost, doubled or overtaken, every write of the record may be undecided and
// land late, every process may die at any moment, and everybody may ask for any
// change of the record. What must hold all the same is in invariants_test.go.
type walk struct {
	walkConfig
	rng     *rand.Rand
	tracing bool
	trace   []string
	failed  string
	steps   int
	weights []int // of the moves, by index

	totalWeight int

	now      time.Duration
	history  []epoch.Snapshot // every version of the record, the newest last
	drives   []*drive
	procs    []*proc
	fetches  []fetchInAir
	answers  []answerInAir
	swaps    []*swap
	counters struct{ changes, starts, values, connections int }
	settled  bool              // healing: nothing is lost or late any more
	target   []epoch.ReplicaID // of the assignment; nil before the first
	wanted   int

	abandoned *drive // will never come back

	committed []committedRecord
	lost      map[string]int // machine crashes that took a record, by value
	deleted   epoch.Offset   // retention has dropped what is below
	leaders   map[epoch.LeaderEpoch]*proc
}

// walkConfig is drawn from the seed.
type walkConfig struct {
	seed       uint64
	replicas   int
	minISR     int
	everyBatch bool
	reassigns  bool
	retains    bool
}

// drive is the volume of one replica.
type drive struct {
	id         epoch.ReplicaID
	log        *diskLog
	directory  epoch.UUID
	checkpoint epoch.Offset
	starting   *starting
	running    *proc
}

// diskLog is a log of which a tail may not be durable yet.
type diskLog struct {
	memoryLog
	synced epoch.Offset
}

func (l *diskLog) SizeFrom(o epoch.Offset) int64 { return int64(l.EndOffset() - o) }
func (l *diskLog) FlushedOffset() epoch.Offset   { return l.synced }

func (l *diskLog) cut(to epoch.Offset) {
	l.truncate(to)
	l.synced = min(l.synced, to)
}

func (l *diskLog) copy() *diskLog {
	n := *l
	n.entries = slices.Clone(l.entries)
	return &n
}

// at is the record at an offset.
func (l *diskLog) at(o epoch.Offset) (entry, bool) {
	if o < l.start || o >= l.EndOffset() {
		return entry{}, false
	}
	return l.entries[o-l.start], true
}

// starting is a process that has not got its session yet.
type starting struct {
	drive   *drive
	startID epoch.StartID
	swap    *swap // the outstanding attempt
}

// proc is a registered process. A zombie has lost its volume to a newer process of
// the same id and goes on with what it remembers.
type proc struct {
	id         epoch.ReplicaID
	core       *Core
	log        *diskLog
	directory  epoch.UUID
	connection uint64
	zombie     bool
	stopped    bool
	reading    *epoch.Snapshot // a quorum read under way; its result once it was made
	readBusy   bool
	acks       map[uint64]string
	ledEpoch   epoch.LeaderEpoch
	ledHW      epoch.Offset
}

func (p *proc) String() string {
	if p.zombie {
		return fmt.Sprintf("%d.%d(zombie)", p.id, p.core.me.Session)
	}
	return fmt.Sprintf("%d.%d", p.id, p.core.me.Session)
}

type fetchInAir struct {
	from   *proc
	to     epoch.ReplicaID
	query  FetchRequest
	fetch  ReplicaFetch
	copies int
}

type answerInAir struct {
	to       *proc
	query    FetchRequest
	response FetchResponse
	err      error
	bounds   [2]epoch.Offset
}

// swap is a write of the record on its way. Whoever wrote it may be told nothing.
type swap struct {
	by       *proc     // nil for a registration
	start    *starting // nil for a write of a core
	base     string
	next     epoch.Record
	landed   bool
	conflict bool
	result   epoch.Snapshot
}

var errLost = errors.New("no answer")

const maxReplicas = 4

func newWalk(c walkConfig, tracing bool) *walk {
	w := &walk{walkConfig: c, rng: rand.New(rand.NewPCG(c.seed, 1)), tracing: tracing, lost: map[string]int{}, leaders: map[epoch.LeaderEpoch]*proc{}}
	var ids []epoch.ReplicaID
	for i := range maxReplicas {
		id := epoch.ReplicaID(i)
		if i < c.replicas {
			ids = append(ids, id)
		}
		w.drives = append(w.drives, &drive{id: id, log: &diskLog{}, directory: w.newDirectory(id)})
	}
	w.drawWeights()
	r := epoch.New(epoch.UUID{9}, ids, c.minISR, w.changeID())
	w.history = []epoch.Snapshot{{Record: r, Version: "0"}}
	return w
}

func (w *walk) changeID() epoch.ChangeID {
	w.counters.changes++
	return epoch.ChangeID(strconv.Itoa(w.counters.changes))
}

func (w *walk) newDirectory(id epoch.ReplicaID) epoch.UUID {
	w.counters.starts++
	n := w.counters.starts
	return epoch.UUID{byte(id + 1), byte(n >> 8), byte(n)}
}

func (w *walk) current() epoch.Snapshot { return w.history[len(w.history)-1] }

func (w *walk) say(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, args...))
	}
}

func (w *walk) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.say("FAILED: %s", w.failed)
	}
}

// commit stores a record.
func (w *walk) commit(r epoch.Record) epoch.Snapshot {
	w.checkChange(w.current().Record, r)
	s := epoch.Snapshot{Record: r, Version: strconv.Itoa(len(w.history))}
	w.history = append(w.history, s)
	if w.tracing {
		w.say("  record %s: pe %d leader %d.%d epoch %d ISR %v min %d %s", s.Version, r.PartitionEpoch, r.Leader, r.LeaderSession, r.LeaderEpoch, r.ISR, r.MinISR, assigned(r))
	}
	return s
}

func assigned(r epoch.Record) string {
	out := ""
	for _, p := range r.Replicas {
		out += fmt.Sprintf(" %d.%d/%x", p.ID, p.Session, p.DirectoryID[1:3])
		for _, mark := range []struct {
			on   bool
			name string
		}{{p.Adding, "+"}, {p.Removing, "-"}, {p.Stopping, "s"}, {p.Gone, "g"}} {
			if mark.on {
				out += mark.name
			}
		}
	}
	return out
}

// land makes a write take effect, or finds that it cannot any more.
func (w *walk) land(s *swap) {
	if s.landed {
		return
	}
	s.landed = true
	if s.conflict = s.base != w.current().Version; !s.conflict {
		s.result = w.commit(s.next)
	}
}

// settle carries out what a core wants.
func (w *walk) settle(p *proc) {
	for effects := p.core.Take(); len(effects) > 0; effects = p.core.Take() {
		for _, e := range effects {
			w.carryOut(p, e)
		}
	}
	w.dirty(p)
}

func (w *walk) carryOut(p *proc, e Effect) {
	switch e := e.(type) {
	case AssignEpoch:
		p.log.cache.Assign(e.Epoch, p.log.EndOffset())
	case Truncate:
		if e.BelowHighWatermark {
			w.fail("%s truncates to %d, below its high watermark", p, e.To)
		}
		w.say("  %s truncates to %d", p, e.To)
		p.log.cut(e.To)
	case TruncateFully:
		if p.zombie { // the new log start cannot be made durable on a volume that is gone
			p.stopped = true
			return
		}
		w.say("  %s starts anew at %d", p, e.StartAt)
		p.log.memoryLog, p.log.synced = memoryLog{start: e.StartAt}, e.StartAt
	case AppendFetched:
		w.appendFetched(p, e)
	case WriteRecord:
		w.swaps = append(w.swaps, &swap{by: p, base: e.Base.Version, next: e.Next})
	case ReadRecord:
		p.readBusy, p.reading = true, nil
	case Follow:
		w.counters.connections++
		p.connection = uint64(w.counters.connections)
	case Complete:
		w.complete(p, e)
	case Exit:
		w.say("  %s exits: %s", p, e.Reason)
		p.stopped = true
	case Regression:
		w.fail("%s reports a regression of the record", p)
	}
}

// appendFetched does as the owner of a log does: records, log start, high watermark.
func (w *walk) appendFetched(p *proc, e AppendFetched) {
	p.log.appendEncoded(e.Records, e.MaxEpoch)
	hw := min(max(e.HighWatermark, p.log.start), p.log.EndOffset())
	w.raiseStart(p.log, min(e.LogStartOffset, hw))
	p.core.AppliedFetch(e)
}

func (w *walk) raiseStart(l *diskLog, to epoch.Offset) {
	if to <= l.start {
		return
	}
	l.entries = slices.Clone(l.entries[to-l.start:])
	l.start, l.synced = to, max(l.synced, to)
	l.cache.TruncateFromStart(to)
}

func (w *walk) complete(p *proc, e Complete) {
	value := p.acks[e.Token]
	delete(p.acks, e.Token)
	if e.Err != nil {
		return
	}
	w.say("  %s acknowledges %s", p, value)
	if !slices.ContainsFunc(w.committed, func(c committedRecord) bool { return c.value == value }) {
		w.noteCommits(p)
	}
	if !slices.ContainsFunc(w.committed, func(c committedRecord) bool { return c.value == value }) {
		w.fail("%s acknowledges %s, which no leader has committed", p, value)
	}
}
