package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// memoryLog is a log without a disk: one record per batch.
type memoryLog struct {
	start   epoch.Offset
	entries []entry
	cache   epoch.Cache
}

type entry struct {
	epoch epoch.LeaderEpoch
	value string
}

func (l *memoryLog) StartOffset() epoch.Offset   { return l.start }
func (l *memoryLog) EndOffset() epoch.Offset     { return l.start + epoch.Offset(len(l.entries)) }
func (l *memoryLog) FlushedOffset() epoch.Offset { return l.EndOffset() }
func (l *memoryLog) EpochCache() epoch.Cache     { return l.cache }

func (l *memoryLog) append(e epoch.LeaderEpoch, value string) {
	l.cache.Assign(e, l.EndOffset())
	l.entries = append(l.entries, entry{e, value})
}

func (l *memoryLog) truncate(to epoch.Offset) {
	l.cache.TruncateFromEnd(to)
	if to < l.EndOffset() {
		l.entries = l.entries[:max(0, to-l.start)]
	}
}

func (l *memoryLog) String() string {
	parts := make([]string, len(l.entries))
	for i, e := range l.entries {
		parts[i] = fmt.Sprintf("%s/%d", e.value, e.epoch)
	}
	if n := len(parts); n > 8 {
		parts = append(append(slices.Clone(parts[:3]), fmt.Sprintf("…%d…", n-6)), parts[n-3:]...)
	}
	return strings.Join(parts, " ")
}

// encode and decode are the wire form of records between these logs.
func (l *memoryLog) encode(from epoch.Offset) []byte {
	var b []byte
	for _, e := range l.entries[from-l.start:] {
		b = binary.BigEndian.AppendUint32(b, uint32(e.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.value)))
		b = append(b, e.value...)
	}
	return b
}

func (l *memoryLog) appendEncoded(b []byte, maxEpoch epoch.LeaderEpoch) int {
	n := 0
	for ; len(b) > 0; n++ {
		e, size := epoch.LeaderEpoch(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
		if e > maxEpoch {
			break
		}
		l.append(e, string(b[8:8+size]))
		b = b[8+size:]
	}
	return n
}

// peer is one replica: what survives a crash of its process, and the process.
type peer struct {
	name       string
	id         epoch.ReplicaID
	log        *memoryLog
	checkpoint epoch.Offset // the checkpointed high watermark
	directory  epoch.UUID
	persisted  epoch.Record
	core       *Core // nil while it is down
	starts     int
	connection uint64
	held       []heldResponse
	acks       map[uint64]string
}

type heldResponse struct {
	request  FetchRequest
	response FetchResponse
}

// cluster is a partition with its record, in one goroutine and without time of its
// own: every step is a call.
type cluster struct {
	record  epoch.Record
	version int
	peers   []*peer
	now     time.Duration
	out     strings.Builder
	tokens  uint64
	changes int
	acked   []ackedRecord
}

// ackedRecord was acknowledged with acks=all: it must stay.
type ackedRecord struct {
	offset epoch.Offset
	value  string
}

func newCluster(n, minISR int) *cluster {
	c := &cluster{}
	var ids []epoch.ReplicaID
	for i := range n {
		ids = append(ids, epoch.ReplicaID(i))
		c.peers = append(c.peers, &peer{name: string(rune('A' + i)), id: epoch.ReplicaID(i), log: &memoryLog{}, directory: epoch.UUID{byte(i + 1), 1},
			acks: map[uint64]string{}})
	}
	c.record = epoch.New(epoch.UUID{9}, ids, minISR, c.changeID())
	// Epochs begin at -1 here so that the first election gives epoch 0, as the tables
	// of the protocol notes count.
	c.record.LeaderEpoch = -1
	c.version = 1
	return c
}

func (c *cluster) changeID() epoch.ChangeID {
	c.changes++
	return epoch.ChangeID(fmt.Sprint("c", c.changes))
}

func (c *cluster) snapshot() epoch.Snapshot {
	return epoch.Snapshot{Record: c.record.Clone(), Version: fmt.Sprint(c.version)}
}

func (c *cluster) peer(name string) *peer {
	for _, p := range c.peers {
		if p.name == name {
			return p
		}
	}
	return nil
}

// commit stores a changed record; who is up hears of it by show.
func (c *cluster) commit(r epoch.Record) {
	c.record = r
	c.version++
}

// start starts a process: it registers and observes the record.
func (c *cluster) start(p *peer) error {
	p.starts++
	g := epoch.Registration{ID: p.id, DirectoryID: p.directory, VolumeID: epoch.UUID{byte(p.id + 1)}, StartID: epoch.StartID(fmt.Sprint(p.name, p.starts)),
		Change: c.changeID(), LastEpoch: p.log.cache.Latest(), LogEndOffset: p.log.EndOffset()}
	r, err := epoch.Register(c.record, g)
	if err != nil {
		return err
	}
	c.commit(r)
	mine, _ := r.Replica(p.id)
	p.core = New(Identity{ID: p.id, Session: mine.Session, StartID: g.StartID, DirectoryID: p.directory}, Options{}, p.log, p.checkpoint, c.changeID)
	p.connection++
	p.core.Observe(c.now, c.snapshot(), FromWrite)
	c.settle(p)
	return nil
}

// stop ends a process; the others see its connection close.
func (c *cluster) stop(p *peer) {
	p.core = nil
	p.held = nil
	for _, q := range c.peers {
		if q.core != nil {
			q.core.Disconnected(c.now, p.id, p.connection)
		}
	}
}

// settle carries out a peer's effects. Writes of the record are swapped in at once.
func (c *cluster) settle(p *peer) {
	for p.core != nil {
		effects := p.core.Take()
		if len(effects) == 0 {
			return
		}
		for _, e := range effects {
			c.carryOut(p, e)
		}
	}
}

func (c *cluster) carryOut(p *peer, e Effect) {
	switch e := e.(type) {
	case PersistRecord:
		p.persisted = e.Record
	case AssignEpoch:
		p.log.cache.Assign(e.Epoch, p.log.EndOffset())
	case Truncate:
		p.log.truncate(e.To)
	case TruncateFully:
		*p.log = memoryLog{start: e.StartAt}
	case AppendFetched:
		p.log.appendEncoded(e.Records, e.MaxEpoch)
		p.core.AppliedFetch(e)
	case WriteRecord:
		if e.Base.Version != fmt.Sprint(c.version) {
			p.core.WriteFailed(c.now, epoch.ErrConflict)
			return
		}
		c.commit(e.Next)
		p.core.Written(c.now, c.snapshot())
	case ReadRecord:
		p.core.ReadDone(c.now, c.snapshot())
	case Complete:
		value := p.acks[e.Token]
		delete(p.acks, e.Token)
		if e.Err != nil {
			fmt.Fprintf(&c.out, "%s not acknowledged: %v\n", value, e.Err)
			return
		}
		at := epoch.NoOffset
		for i, x := range p.log.entries {
			if x.value == value {
				at = p.log.start + epoch.Offset(i)
			}
		}
		c.acked = append(c.acked, ackedRecord{at, value})
		fmt.Fprintf(&c.out, "%s acknowledged at offset %d\n", value, at)
	}
}

// produce appends one record with acks=all at a leader.
func (c *cluster) produce(p *peer, value string, acks int16) error {
	e, err := p.core.AdmitProduce(c.now, acks)
	if err != nil {
		return err
	}
	p.log.append(e, value)
	p.core.Appended()
	if acks == AcksAll {
		c.tokens++
		p.acks[c.tokens] = value
		p.core.Await(c.tokens, p.log.EndOffset(), c.now+time.Hour)
	}
	c.settle(p)
	return nil
}

// ask sends a follower's next fetch to its leader and returns what comes back.
func (c *cluster) ask(p *peer) (q FetchRequest, a FetchResponse, err error) {
	q, ok := p.core.NextFetch()
	if !ok {
		return q, a, fmt.Errorf("%s follows nobody", p.name)
	}
	leader := c.peers[p.core.Record().Leader]
	if leader.core == nil {
		return q, a, fmt.Errorf("%s is down", leader.name)
	}
	f := ReplicaFetch{Replica: p.id, Session: p.core.me.Session, StartID: p.core.me.StartID, DirectoryID: p.directory, LeaderEpoch: q.LeaderEpoch,
		Offset: q.Offset, LastEpoch: q.LastEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: p.connection}
	answer, err := leader.core.Fetch(c.now, f)
	if err == nil {
		a = FetchResponse{HighWatermark: answer.HighWatermark, LogStartOffset: answer.LogStartOffset, Diverging: answer.Diverging}
		if a.Diverging == nil {
			a.Records = leader.log.encode(q.Offset)
		}
	}
	c.settle(leader)
	return q, a, err
}

// deliver hands a response to the follower that asked.
func (c *cluster) deliver(p *peer, h heldResponse) {
	p.core.Fetched(c.now, h.request, h.response)
	c.settle(p)
}
