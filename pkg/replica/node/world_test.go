package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

var topicID = epoch.UUID{1, 2, 3}

// world is a partition in one goroutine: the record, the network, and a clock that
// moves when it is told to.
type world struct {
	t        testing.TB
	now      time.Duration
	settings Settings
	record   epoch.Snapshot
	fail     error // of every access to the record
	ids      uint64
	calls    []func()
	procs    []*proc
}

// proc is a replica: its machine, and the process that runs on it, if one does.
type proc struct {
	w         *world
	id        epoch.ReplicaID
	disk      *vfs.Mem
	witness   *volume.PlainMemory
	boot      int
	n         *Node
	leader    epoch.ReplicaID // that it fetches from
	following bool
	deaf      bool // its watch of the record shows nothing new
	effects   []string
}

func newWorld(t testing.TB, replicas, minISR int, edit func(*Settings)) *world {
	w := &world{t: t, settings: DefaultSettings()}
	if edit != nil {
		edit(&w.settings)
	}
	var ids []epoch.ReplicaID
	for i := range replicas {
		ids = append(ids, epoch.ReplicaID(i))
		w.procs = append(w.procs, &proc{w: w, id: epoch.ReplicaID(i), disk: vfs.NewMem(), witness: &volume.PlainMemory{}})
	}
	w.record = epoch.Snapshot{Record: epoch.New(topicID, ids, minISR, w.changeID()), Version: "1"}
	return w
}

func (w *world) changeID() epoch.ChangeID { w.ids++; return epoch.ChangeID(fmt.Sprint("c", w.ids)) }

func (w *world) uuid() (u epoch.UUID) {
	w.ids++
	binary.BigEndian.PutUint64(u[8:], w.ids)
	return u
}

func (w *world) swap(base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error) {
	switch {
	case w.fail != nil:
		return epoch.Snapshot{}, w.fail
	case base.Version != w.record.Version:
		return epoch.Snapshot{}, epoch.ErrConflict
	}
	w.ids++
	w.record = epoch.Snapshot{Record: next.Clone(), Version: fmt.Sprint(w.ids)}
	return w.record, nil
}

func (p *proc) config() Config {
	w := p.w
	return Config{
		Volume: volume.Config{Dir: "/data", Topic: "orders", TopicID: topicID, ReplicaID: p.id, BootID: fmt.Sprint("boot", p.boot), PodUID: "pod",
			FS: p.disk, Memory: p.witness, NewUUID: w.uuid, Patiently: func(work func(), _ time.Duration) { work() }},
		StartID: epoch.StartID(w.changeID()), Address: epoch.Address{Host: "h", ReplicationPort: 1}, Settings: w.settings,
		Now: func() time.Duration { return w.now }, Wall: func() time.Time { return time.UnixMilli(0).Add(w.now) }, NewChangeID: w.changeID,
	}
}

// start runs a process up to its first effects.
func (p *proc) start() error {
	s, err := Open(p.config())
	if err != nil {
		return err
	}
	read := p.w.record
	if mark, err := s.Compare(read); err != nil || mark != nil {
		s.Close()
		return fmt.Errorf("compare: %w", err)
	}
	next, err := s.Begin(read)
	if err != nil {
		s.Close()
		return fmt.Errorf("begin: %w", err)
	}
	snap, err := p.w.swap(read, next)
	if err != nil {
		s.Close()
		return err
	}
	p.n, p.following = s.Serve(snap, Ports{}), false
	p.n.ports = p.ports(p.n)
	p.n.Start()
	return nil
}

// later queues what is done unless the process has ended.
func (p *proc) later(n *Node, do func()) {
	p.w.calls = append(p.w.calls, func() {
		if p.n == n && n.Err() == nil {
			do()
		}
	})
}

func (p *proc) ports(n *Node) Ports {
	return Ports{Records: recordPort{p, n}, Fetcher: fetchPort{p}, Effect: func(e core.Effect) { p.effects = append(p.effects, fmt.Sprintf("%T", e)) },
		Flush:   func(work func() error) { p.later(n, func() { n.FlushDone(work()) }) },
		Compact: func(work func(func(int64) error) error) { p.later(n, func() { n.Compacted(work(unpaced)) }) }}
}

func unpaced(int64) error { return nil }

type recordPort struct {
	p *proc
	n *Node
}

func (r recordPort) Write(base epoch.Snapshot, next epoch.Record) {
	r.p.later(r.n, func() {
		if s, err := r.p.w.swap(base, next); err != nil {
			r.n.WriteFailed(err)
		} else {
			r.n.Written(s)
		}
	})
}

func (r recordPort) Read() {
	r.p.later(r.n, func() {
		if err := r.p.w.fail; err != nil {
			r.n.ReadFailed(err)
		} else {
			r.n.ReadDone(r.p.w.record)
		}
	})
}

type fetchPort struct{ p *proc }

func (f fetchPort) Follow(leader epoch.ReplicaID, _ epoch.Address, _ epoch.LeaderEpoch) {
	f.p.leader, f.p.following = leader, true
}
func (f fetchPort) Stop()                      { f.p.following = false }
func (fetchPort) Wake()                        {}
func (fetchPort) Backoff()                     {}
func (fetchPort) Configure(time.Duration, int) {}

// exchange is one fetch of a follower.
func (p *proc) exchange() {
	leader := p.w.procs[p.leader]
	if !p.following || leader.n == nil || leader.n.Err() != nil {
		return
	}
	q, ok := p.n.NextFetch()
	if !ok {
		return
	}
	me := p.n.Identity()
	leader.n.ReplicaFetch(&Fetch{
		Request: core.ReplicaFetch{Replica: me.ID, Session: me.Session, StartID: me.StartID, DirectoryID: me.DirectoryID, LeaderEpoch: q.LeaderEpoch,
			Offset: q.Offset, LastEpoch: q.LastEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: uint64(me.Session), Trouble: q.Trouble},
		Answer: func(a core.FetchAnswer, err error) {
			res, err2 := leader.n.ReadForReplica(q.Offset, 1<<20, a)
			n := p.n
			p.later(n, func() {
				if err := errors.Join(err, err2); err != nil {
					n.FetchFailed(q, errors.Is(err, core.ErrFencedLeaderEpoch))
				} else {
					n.Fetched(q, res)
				}
			})
		},
	})
}

// run lets everybody work until ok holds.
func (w *world) run(what string, ok func() bool) {
	w.t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		w.step()
	}
	w.t.Fatalf("in vain: %s; the record is %+v", what, w.record.Record)
}

// step is 50 ms of everybody's life.
func (w *world) step() {
	for len(w.calls) > 0 {
		call := w.calls[0]
		w.calls = w.calls[1:]
		call()
	}
	w.now += 50 * time.Millisecond
	for _, p := range w.procs {
		if p.n != nil && p.n.Err() == nil {
			if !p.deaf {
				p.n.Observe(w.record)
			}
			p.n.Tick()
			p.exchange()
		}
	}
}

// produce sends one record with acks=all; the result is filled in later.
func (p *proc) produce(value string) *Produced { return p.produceWith(value, core.AcksAll) }

func (p *proc) produceWith(value string, acks int16) *Produced {
	out := &Produced{Err: errWaiting}
	p.n.Produce([]Produce{{Batch: batch.NewBuilder().Values(value).Build(), Acks: acks, Timeout: time.Hour, Done: func(r Produced) { *out = r }}})
	return out
}

var errWaiting = errors.New("not answered yet")

// values are the records that a replica holds.
func (p *proc) values() []string {
	p.w.t.Helper()
	l := p.n.Log()
	var out []string
	for at := l.StartOffset(); at < l.EndOffset(); {
		b, err := l.Read(at, l.EndOffset(), 1<<20, true)
		if err != nil {
			p.w.t.Fatal(err)
		}
		for len(b) > 0 {
			one, rest, err := batch.Next(b)
			if err != nil {
				p.w.t.Fatal(err)
			}
			for r, err := range batch.Records(one) {
				if err != nil {
					p.w.t.Fatal(err)
				}
				out = append(out, string(r.Value))
			}
			at, b = one.NextOffset(), rest
		}
	}
	return out
}

// kill ends the process as kill -9 does.
func (p *proc) kill() { p.n = nil }

// powerCut ends the process and leaves of its disk what a crash does.
func (p *proc) powerCut(crash func(*vfs.Mem) *vfs.Mem) {
	p.n, p.disk, p.witness = nil, crash(p.disk), &volume.PlainMemory{}
	p.boot++
}

// stop ends the process in good order.
func (p *proc) stop() error {
	p.n.Stop()
	for range 100 {
		if p.n.Released() {
			break
		}
		p.w.step()
	}
	n := p.n
	p.n = nil
	if err := n.End(); err != nil {
		n.Close()
		return err
	}
	return n.Finish()
}

func (w *world) leads(id epoch.ReplicaID) func() bool {
	return func() bool { n := w.procs[id].n; return n != nil && n.Err() == nil && n.View().Role == core.Leader }
}

func (w *world) inSync(ids ...epoch.ReplicaID) func() bool {
	return func() bool {
		for _, id := range ids {
			if !w.record.Record.InSync(id) {
				return false
			}
		}
		return len(w.record.Record.ISR) == len(ids)
	}
}
