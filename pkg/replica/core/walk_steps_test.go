package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const maxValues = 14 // records of one walk: the checks look at all of them

// moves are what may happen, and how often: in a wild walk, and in one in which most
// things go well, so that it gets further.
var moves = []struct {
	wild, calm int
	name       string
	do         func(*walk)
}{
	{14, 6, "ask", (*walk).askSomebody}, {18, 5, "fetch arrives", (*walk).fetchArrives}, {16, 5, "answer arrives", (*walk).answerArrives},
	{2, 0, "message lost", (*walk).loseMessage}, {1, 1, "leader ended", (*walk).mournLeader}, {6, 24, "exchange", (*walk).exchangeSome}, {8, 8, "produce", (*walk).produceSome},
	{8, 10, "flush", (*walk).flushSome}, {4, 4, "time", (*walk).passTime}, {9, 6, "watch", (*walk).watchSome}, {3, 2, "news", (*walk).tellNews},
	{9, 2, "write lands", (*walk).writeLands}, {8, 2, "write answered", (*walk).writeAnswered}, {2, 1, "write undecided", (*walk).writeUndecided},
	{6, 2, "read", (*walk).readSome}, {3, 24, "record at rest", (*walk).finishRecord}, {6, 8, "start", (*walk).startSome}, {2, 1, "kill", (*walk).killSome},
	{2, 1, "machine crash", (*walk).crashMachine}, {1, 1, "zombie", (*walk).makeZombie}, {3, 3, "elect", (*walk).electSome}, {1, 0, "stop", (*walk).stopSome},
	{1, 2, "disconnect", (*walk).disconnectSome}, {2, 0, "assign", (*walk).assignSome}, {1, 0, "checkpoint", (*walk).checkpointSome}, {1, 0, "retain", (*walk).retainSome},
}

// drawWeights gives every walk a character of its own: calm, or some moves are
// frequent in it, some rare, and some do not happen.
func (w *walk) drawWeights() {
	calm := w.chance(50)
	for _, m := range moves {
		factor, _ := pick(w, []int{0, 1, 2, 2, 4, 8})
		weight := m.wild * factor
		if calm {
			weight = m.calm
		}
		w.weights = append(w.weights, weight)
		w.totalWeight += weight
	}
	w.totalWeight = max(1, w.totalWeight)
}

// step makes one move.
func (w *walk) step() {
	w.steps++
	n := w.rng.IntN(w.totalWeight)
	for i, m := range moves {
		if n -= w.weights[i]; n < 0 {
			m.do(w)
			break
		}
	}
	w.check()
}

func pick[T any](w *walk, from []T) (T, bool) {
	if len(from) == 0 {
		var none T
		return none, false
	}
	return from[w.rng.IntN(len(from))], true
}

func (w *walk) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *walk) pickProc() (*proc, bool) { return pick(w, w.procs) }

func (w *walk) leader() (*proc, bool) {
	var leaders []*proc
	for _, p := range w.procs {
		if p.core.Role() == Leader {
			leaders = append(leaders, p)
		}
	}
	return pick(w, leaders)
}

func (w *walk) askSomebody() {
	if p, ok := w.pickProc(); ok {
		w.ask(p)
	}
}

// ask sends a fetch on its way. An earlier one may still be.
func (w *walk) ask(p *proc) {
	q, ok := p.core.NextFetch()
	if !ok {
		return
	}
	f := ReplicaFetch{Replica: p.id, Session: p.core.me.Session, StartID: p.core.me.StartID, DirectoryID: p.directory, LeaderEpoch: q.LeaderEpoch,
		Offset: q.Offset, LastEpoch: q.LastEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: p.connection}
	w.fetches = append(w.fetches, fetchInAir{from: p, to: p.core.following.leader, query: q, fetch: f, copies: 1 + w.rng.IntN(2)})
	w.say("%s asks %d: fetch(%d,%d,%d)", p, p.core.following.leader, q.Offset, q.LastEpoch, q.LeaderEpoch)
}

// exchangeSome is a fetch that nothing disturbs.
func (w *walk) exchangeSome() {
	p, ok := w.pickProc()
	if !ok {
		return
	}
	n := len(w.fetches)
	w.ask(p)
	if len(w.fetches) == n {
		return
	}
	m := len(w.answers)
	w.arrive(n)
	if len(w.answers) > m {
		w.answer(m)
	}
}

func (w *walk) fetchArrives() {
	if len(w.fetches) > 0 {
		w.arrive(w.rng.IntN(len(w.fetches)))
	}
}

// arrive hands a fetch to a process of the replica that it was sent to.
func (w *walk) arrive(i int) {
	f := w.fetches[i]
	if w.fetches[i].copies--; w.fetches[i].copies == 0 || w.settled {
		w.fetches = slices.Delete(w.fetches, i, i+1)
	}
	var at []*proc
	for _, p := range w.procs {
		if p.id == f.to && !p.stopped {
			at = append(at, p)
		}
	}
	p, ok := pick(w, at)
	if !ok {
		return
	}
	a, err := p.core.Fetch(w.now, f.fetch)
	out := answerInAir{to: f.from, query: f.query, err: err, bounds: [2]epoch.Offset{p.log.StartOffset(), p.log.EndOffset()}}
	out.response = FetchResponse{HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset, Diverging: a.Diverging}
	if err == nil && a.Diverging == nil {
		n := int(p.log.EndOffset() - f.query.Offset)
		if !w.settled && n > 1 && w.chance(40) {
			n = 1 + w.rng.IntN(n)
		}
		part := memoryLog{entries: p.log.entries[f.query.Offset-p.log.start:][:n]}
		out.response.Records = part.encode(0)
	}
	if w.tracing {
		w.say("%s gets fetch(%d,%d,%d) of %d.%d: %v div %v HW %d", p, f.query.Offset, f.query.LastEpoch, f.query.LeaderEpoch, f.fetch.Replica, f.fetch.Session, err, a.Diverging, a.HighWatermark)
	}
	w.settle(p)
	w.answers = append(w.answers, out)
}

func (w *walk) answerArrives() {
	if len(w.answers) > 0 {
		w.answer(w.rng.IntN(len(w.answers)))
	}
}

func (w *walk) answer(i int) {
	a := w.answers[i]
	if w.settled || w.chance(80) {
		w.answers = slices.Delete(w.answers, i, i+1)
	}
	p := a.to
	if !slices.Contains(w.procs, p) || p.stopped {
		return
	}
	w.say("%s is answered: fetch(%d,%d,%d) %v, %d records", p, a.query.Offset, a.query.LastEpoch, a.query.LeaderEpoch, a.err, countRecords(a.response.Records))
	switch {
	case errors.Is(a.err, ErrOffsetOutOfRange):
		p.core.OutOfRange(a.query, a.bounds[0], a.bounds[1])
	case a.err != nil:
		p.core.FetchFailed(a.query, errors.Is(a.err, ErrFencedLeaderEpoch))
	default:
		p.core.Fetched(w.now, a.query, a.response)
	}
	w.settle(p)
}

func (w *walk) loseMessage() {
	if n := len(w.fetches); n > 0 && w.chance(50) {
		i := w.rng.IntN(n)
		w.fetches = slices.Delete(w.fetches, i, i+1)
	}
	if n := len(w.answers); n > 0 && w.chance(50) {
		i := w.rng.IntN(n)
		w.answers = slices.Delete(w.answers, i, i+1)
	}
	if p, ok := w.pickProc(); ok && p.core.following.outstanding != nil {
		p.core.FetchFailed(*p.core.following.outstanding, false)
		w.settle(p)
	}
}

// mournLeader tells a follower that its leader's process has ended, whether that is so or not.
func (w *walk) mournLeader() {
	if p, ok := w.pickProc(); ok && p.core.Role() == Follower {
		w.say("%s is told that the leader of epoch %d has ended", p, p.core.following.epoch)
		p.core.LeaderEnded(w.now, p.core.following.epoch)
		w.settle(p)
	}
}

func (w *walk) produceSome() {
	if p, ok := w.leader(); ok && w.counters.values < maxValues {
		acks := AcksAll
		if w.chance(30) {
			acks = AcksOne
		}
		w.produce(p, acks)
	}
}

func (w *walk) produce(p *proc, acks int16) (string, bool) {
	e, err := p.core.AdmitProduce(w.now, acks)
	if err != nil || p.stopped {
		return "", false
	}
	w.counters.values++
	value := fmt.Sprint("v", w.counters.values)
	w.say("%s appends %s at %d with acks %d", p, value, p.log.EndOffset(), acks)
	p.log.append(e, value)
	p.core.Appended()
	if acks == AcksAll {
		p.acks[uint64(w.counters.values)] = value
		p.core.Await(uint64(w.counters.values), p.log.EndOffset(), w.now+time.Duration(w.rng.IntN(20))*time.Second)
	}
	w.settle(p)
	return value, true
}

// flushSome makes a part of a tail durable: an fsync covers what was there when it began.
func (w *walk) flushSome() {
	p, ok := w.pickProc()
	if !ok || p.zombie || !w.everyBatch && w.chance(70) {
		return
	}
	if n := int(p.log.EndOffset() - p.log.synced); n > 0 {
		p.log.synced += epoch.Offset(1 + w.rng.IntN(n))
		w.say("%s has flushed up to %d", p, p.log.synced)
		p.core.Flushed()
		w.settle(p)
	}
}

func (w *walk) passTime() {
	steps := [...]time.Duration{10, 100, 300, 600, 1000, 3000, 11000}
	d, _ := pick(w, steps[:])
	w.now += d * time.Millisecond
	w.say("time is %v", w.now)
	for _, p := range slices.Clone(w.procs) {
		if w.chance(70) {
			p.core.Tick(w.now)
			w.settle(p)
		}
	}
}

func (w *walk) watchSome() {
	p, ok := w.pickProc()
	if !ok {
		return
	}
	i := len(w.history) - 1
	if w.chance(40) {
		i = max(0, i-w.rng.IntN(10))
	}
	w.say("%s watches version %s", p, w.history[i].Version)
	p.core.Observe(w.now, w.history[i], FromWatch)
	w.settle(p)
}

func (w *walk) readSome() {
	p, ok := w.pickProc()
	if !ok || !p.readBusy {
		return
	}
	switch {
	case w.chance(10):
		p.readBusy = false
		p.core.ReadFailed(w.now, errLost)
	case p.reading == nil:
		s := w.current()
		p.reading = &s
		return
	default:
		s := *p.reading
		p.readBusy = false
		w.say("%s has read version %s", p, s.Version)
		p.core.ReadDone(w.now, s)
	}
	w.settle(p)
}

func (w *walk) disconnectSome() {
	p, ok := w.pickProc()
	if !ok {
		return
	}
	w.disconnect(p)
	w.counters.connections++
	p.connection = uint64(w.counters.connections)
}

// disconnect tells everybody that the connection of p has closed.
func (w *walk) disconnect(p *proc) {
	for _, q := range w.procs {
		q.core.Disconnected(w.now, p.id, p.connection)
		if w.chance(30) { // whether its process has ended or not
			q.core.Refused(w.now, p.id, p.connection)
		}
		w.settle(q)
	}
}

func (w *walk) stopSome() {
	p, ok := w.pickProc()
	if !ok {
		return
	}
	w.say("%s is asked to stop", p)
	p.core.Stop(w.now)
	w.settle(p)
}

func (w *walk) checkpointSome() {
	if p, ok := w.pickProc(); ok && !p.zombie {
		w.drives[p.id].checkpoint = p.core.HighWatermark()
	}
}

// retainSome drops committed records at a leader.
func (w *walk) retainSome() {
	p, ok := w.leader()
	if !ok || !w.retains || !p.core.MayServe(w.now) || p.core.HighWatermark() == p.log.start {
		return
	}
	to := p.log.start + 1 + epoch.Offset(w.rng.IntN(int(p.core.HighWatermark()-p.log.start)))
	w.say("%s drops what is below %d", p, to)
	w.deleted = max(w.deleted, to)
	w.raiseStart(p.log, to)
	w.settle(p)
}
