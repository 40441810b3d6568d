package explore

import (
	"errors"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

var errNoAnswer = errors.New("no answer")

// stepping is one event at one replica while it is worked out.
type stepping struct {
	x   *Explorer
	r   *replica
	out outcome
}

// work lets an event happen to a copy of the replica.
func (x *Explorer) work(e event) outcome {
	return x.workAt(x.tables.replicas.things[e.replica()], e)
}

func (x *Explorer) workAt(before replicaInfo, e event) outcome {
	s := stepping{x: x, r: before.replica.clone()}
	if (s.r.core != nil) == (e.kind() == started) && e.kind() != cut {
		return outcome{impossible: true}
	}
	s.r.now += pause
	s.do(e)
	if s.out.impossible {
		return s.out
	}
	s.settle()
	s.judge(&before)
	if e.kind() == gotAnswer && before.asks(x.tables.messages.things[e.arg()]) {
		s.converges(&before, x.tables.messages.things[e.arg()])
	}
	s.out.replica = x.tables.replica(s.r)
	after := &x.tables.replicas.things[s.out.replica]
	s.out.acted = s.out.acted || s.out.write != 0 || s.out.acked != 0 || after.hw != before.hw || s.r.reading != before.replica.reading
	return s.out
}

func (s *stepping) do(e event) {
	r := s.r
	switch e.kind() {
	case started:
		s.start(e.arg())
	case crashed:
		r.crash(s.x.StaleCheckpoint)
	case cut:
		s.crashMachine(epoch.Offset(e.arg()))
	case produced:
		s.produce(int8(e.arg()))
	case flushed:
		s.out.impossible = r.log.synced == r.log.EndOffset()
		r.log.synced = r.log.EndOffset()
		r.core.Flushed()
	case asked:
		s.ask()
	case gotFetch:
		s.answer(s.x.tables.messages.things[e.arg()])
	case gotAnswer:
		s.apply(s.x.tables.messages.things[e.arg()])
	default:
		s.observe(e)
	}
}

// observe is what comes of the record and of time.
func (s *stepping) observe(e event) {
	r := s.r
	switch e.kind() {
	case saw:
		r.core.Observe(r.now, s.x.tables.records.things[e.arg()].snap, core.FromWatch)
	case read:
		r.reading = false
		r.core.ReadDone(r.now, s.x.tables.records.things[e.arg()].snap)
	case wrote:
		r.core.Written(r.now, s.x.tables.records.things[e.arg()].snap)
	case conflicted:
		r.core.WriteFailed(r.now, epoch.ErrConflict)
	case gaveUp:
		r.core.WriteFailed(r.now, errNoAnswer)
		s.tick(pause)
	case timePassed:
		s.tick(long)
	case lostSight:
		r.core.Disconnected(r.now, epoch.ReplicaID(e.arg()), connection)
		s.tick(pause)
	}
}

func (s *stepping) tick(d time.Duration) {
	s.settle()
	s.r.now += d
	s.r.core.Tick(s.r.now)
}

// connection is the number of everybody's connection: a closed one is as good as any.
const connection = 1

func (x *Explorer) options() core.Options {
	return core.Options{LagTimeMax: lagTime, ShowGrace: lagTime, DisconnectGrace: pause / 2, LeaseDuration: lease, FlushEveryBatch: x.EveryBatch}
}

func (s *stepping) start(record uint32) {
	r, base := s.r, s.x.tables.records.things[record].snap
	if r.void {
		r.directory, r.void = r.directory+1, false
	}
	r.log.synced = r.log.EndOffset() // a start syncs
	next, err := epoch.Register(base.Record, epoch.Registration{ID: r.id, DirectoryID: r.directoryID(), VolumeID: epoch.UUID{byte(r.id + 1)},
		StartID: epoch.StartID(base.Version), LastEpoch: epoch.NoEpoch})
	if err != nil {
		s.out.impossible = true
		return
	}
	s.out.record = s.x.tables.record(record, next)
	s.flawed(changeFlaw(base.Record, next))
	snap := s.x.tables.records.things[s.out.record].snap
	r.now = long
	p, _ := snap.Record.Replica(r.id)
	r.core = core.New(core.Identity{ID: r.id, Session: p.Session, StartID: p.StartID, DirectoryID: p.DirectoryID}, s.x.options(), r.log, r.hw,
		func() epoch.ChangeID { return "" })
	r.hw = 0
	r.core.Observe(r.now, snap, core.FromWrite)
}

func (s *stepping) crashMachine(keeps epoch.Offset) {
	r := s.r
	if r.core != nil {
		r.crash(s.x.StaleCheckpoint)
	}
	if keeps < r.log.synced && s.x.EveryBatch || keeps > r.log.EndOffset() {
		s.out.impossible = true
		return
	}
	r.log.truncate(keeps)
	r.hw = min(r.hw, keeps)
	r.void = !s.x.EveryBatch
}

// produce appends with acks=all where that is admitted, else with acks=1.
func (s *stepping) produce(value int8) {
	r := s.r
	e, err := r.core.AdmitProduce(r.now, core.AcksAll)
	all := err == nil
	if !all {
		if e, err = r.core.AdmitProduce(r.now, core.AcksOne); err != nil {
			s.out.impossible = true
			return
		}
	}
	r.log.append(entry{int8(e), value})
	r.core.Appended()
	if all {
		r.core.Await(uint64(value), r.log.EndOffset(), r.now+lease)
	}
}

func (s *stepping) ask() {
	r := s.r
	q, ok := r.core.NextFetch()
	if !ok {
		s.out.impossible = true
		return
	}
	me := r.core.Identity()
	f := core.ReplicaFetch{Replica: r.id, Session: me.Session, StartID: me.StartID, DirectoryID: me.DirectoryID, LeaderEpoch: q.LeaderEpoch,
		Offset: q.Offset, LastEpoch: q.LastEpoch, Connection: connection}
	m := message{to: r.core.Record().Leader, fetch: f, query: q}
	s.out.message = s.x.tables.messages.intern(m, m)
}

// answer is the leader's side of a fetch. A refusal is no message: it would make the
// follower look at the record, which a watch may do at any time.
func (s *stepping) answer(m message) {
	r := s.r
	a, err := r.core.Fetch(r.now, m.fetch)
	if err != nil && !errors.Is(err, core.ErrOffsetOutOfRange) {
		return
	}
	m.answer, m.to, m.hw, m.end = true, m.fetch.Replica, a.HighWatermark, r.log.EndOffset()
	switch {
	case err != nil:
		m.outOfRange = true
	case a.Diverging != nil:
		m.diverging, m.common = true, *a.Diverging
	default:
		m.records = r.log.encode(m.query.Offset)
	}
	if !m.outOfRange {
		m.end = 0
	}
	s.out.message = s.x.tables.messages.intern(m, m)
}

// apply is the follower's side of an answer.
func (s *stepping) apply(m message) {
	switch {
	case m.outOfRange:
		s.r.core.OutOfRange(m.query, 0, m.end)
	case m.diverging:
		common := m.common
		s.r.core.Fetched(s.r.now, m.query, core.FetchResponse{HighWatermark: m.hw, Diverging: &common})
	default:
		s.r.core.Fetched(s.r.now, m.query, core.FetchResponse{HighWatermark: m.hw, Records: []byte(m.records)})
	}
}

// settle carries out what the core wants.
func (s *stepping) settle() {
	for s.r.core != nil {
		effects := s.r.core.Take()
		if len(effects) == 0 {
			return
		}
		for _, e := range effects {
			s.carryOut(e)
		}
	}
}

func (s *stepping) carryOut(effect core.Effect) {
	r := s.r
	if r.core == nil {
		return
	}
	switch e := effect.(type) {
	case core.AssignEpoch:
		r.log.cache.Assign(e.Epoch, r.log.EndOffset())
	case core.Truncate:
		if e.BelowHighWatermark {
			s.flawed(flawf(BelowHighWatermark, "%c truncates to %d, below its high watermark", letter(r.id), e.To))
		}
		r.log.truncate(e.To)
	case core.TruncateFully:
		s.flawed(flawf(BelowHighWatermark, "%c begins its log anew at %d", letter(r.id), e.StartAt))
	case core.AppendFetched:
		r.log.appendEncoded(e.Records, e.MaxEpoch)
		r.core.AppliedFetch(e)
	case core.WriteRecord:
		s.write(e)
	case core.ReadRecord:
		r.reading = true
	case core.Complete:
		s.complete(e)
	case core.Regression:
		s.flawed(flawf(RecordHistory, "%c reports that the record went backwards", letter(r.id)))
	case core.Exit:
		s.out.acted = true
		r.crash(s.x.StaleCheckpoint)
	}
}

func (s *stepping) write(e core.WriteRecord) {
	if s.out.write != 0 {
		s.flawed(flawf(OneWrite, "%c writes the record twice at once", letter(s.r.id)))
		return
	}
	base := s.x.tables.snapshot(e.Base)
	s.out.write = s.x.tables.write(base, s.x.tables.record(base, e.Next))
	s.flawed(changeFlaw(e.Base.Record, e.Next))
	s.flawed(joinFlaw(s.r.core, e.Base.Record, e.Next))
}

func (s *stepping) complete(e core.Complete) {
	if e.Err != nil {
		return
	}
	s.out.acked |= 1 << e.Token
	rec := s.r.core.Record()
	if n := len(s.r.core.MaximalISR()); n < rec.MinISR {
		s.flawed(flawf(Acknowledged, "%c acknowledges m%d with %d members of the maximal ISR, min ISR %d", letter(s.r.id), e.Token, n, rec.MinISR))
	}
}

// flawed remembers the first flaw that is watched for.
func (s *stepping) flawed(f *flaw) {
	if f != nil && s.out.flaw == 0 && s.x.watched[f.breaks] {
		s.out.flaw = s.x.tables.flaw(*f)
	}
}
