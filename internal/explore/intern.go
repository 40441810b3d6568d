package explore

import (
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// table gives every distinct thing a number, from 1.
type table[K comparable, V any] struct {
	numbers map[K]uint32
	things  []V
}

func newTable[K comparable, V any]() table[K, V] {
	return table[K, V]{numbers: map[K]uint32{}, things: make([]V, 1)}
}

func (t *table[K, V]) number(k K) (uint32, bool) {
	n, ok := t.numbers[k]
	return n, ok
}

func (t *table[K, V]) add(k K, v V) uint32 {
	n := uint32(len(t.things))
	t.numbers[k] = n
	t.things = append(t.things, v)
	return n
}

func (t *table[K, V]) intern(k K, v V) uint32 {
	if n, ok := t.numbers[k]; ok {
		return n
	}
	return t.add(k, v)
}

// message is a fetch on its way, or the answer to one.
type message struct {
	answer bool
	to     epoch.ReplicaID
	fetch  core.ReplicaFetch
	query  core.FetchRequest

	// Of an answer:
	outOfRange bool
	end        epoch.Offset // the leader's log end
	hw         epoch.Offset
	diverging  bool
	common     epoch.Entry
	records    string
}

// write is a change of the record on its way.
type write struct {
	base, next uint32
	heartbeat  bool // changes nothing but the version
}

// recordInfo is a record with what the checks ask of it at hand.
type recordInfo struct {
	snap      epoch.Snapshot
	isr       uint8
	leader    int8
	epoch     int8
	change    int16 // the partition epoch
	session   [MaxReplicas]epoch.Session
	directory [MaxReplicas]int8
}

// replicaInfo is a replica with what the checks ask of it at hand.
type replicaInfo struct {
	replica *replica
	up      bool
	leads   bool
	follows bool
	leader  int8 // whom it takes for the leader
	epoch   int8 // the leader epoch that it knows
	change  int16
	session epoch.Session
	hw, leo int8
	log     [MaxRecords]entry
}

// asks reports that an answer is to what p may ask now.
func (p *replicaInfo) asks(m message) bool {
	return p.follows && p.epoch == int8(m.query.LeaderEpoch) && p.leo == int8(m.query.Offset) && p.replica.log.cache.Latest() == m.query.LastEpoch
}

// interned are the tables of one exploration.
type interned struct {
	everyBatch bool
	replicas   table[string, replicaInfo]
	records    table[string, recordInfo]
	messages   table[message, message]
	writes     table[write, write]
	flaws      []flaw // found inside of a replica or a record; from 1
	buf        []byte
	// merged is told of every replica that is taken for one known already: tests look
	// whether it really is the same.
	merged func(known uint32, r replicaInfo)
}

func newInterned(everyBatch bool) *interned {
	return &interned{everyBatch: everyBatch, replicas: newTable[string, replicaInfo](), records: newTable[string, recordInfo](),
		messages: newTable[message, message](), writes: newTable[write, write](), flaws: make([]flaw, 1)}
}

func (t *interned) replica(r *replica) uint32 {
	t.buf = r.appendState(t.buf[:0], t.everyBatch)
	if n, ok := t.replicas.numbers[string(t.buf)]; ok {
		if t.merged != nil {
			t.merged(n, infoOf(r))
		}
		return n
	}
	return t.replicas.add(string(t.buf), infoOf(r))
}

func infoOf(r *replica) replicaInfo {
	info := replicaInfo{replica: r, up: r.core != nil, leader: -1, leo: int8(len(r.log.entries)), hw: int8(r.hw)}
	copy(info.log[:], r.log.entries)
	if r.core != nil {
		rec := r.core.Record()
		info.leads, info.follows = r.core.Role() == core.Leader, r.core.Role() == core.Follower
		info.leader, info.epoch, info.change = int8(rec.Leader), int8(rec.LeaderEpoch), int16(rec.PartitionEpoch)
		info.session, info.hw = r.session(), int8(r.core.HighWatermark())
	}
	return info
}

// record numbers a record as the successor of another: a change begins versions anew,
// a heartbeat counts them on.
func (t *interned) record(base uint32, r epoch.Record) uint32 {
	r = simplify(r)
	version := versionOf(r.PartitionEpoch, 0)
	if base != 0 {
		if s := t.records.things[base].snap; s.Record.PartitionEpoch == r.PartitionEpoch {
			_, beat, _ := strings.Cut(s.Version, ".")
			n, _ := strconv.Atoi(beat)
			version = versionOf(r.PartitionEpoch, n+1)
		}
	}
	return t.snapshot(epoch.Snapshot{Record: r, Version: version})
}

func versionOf(p epoch.PartitionEpoch, beat int) string {
	return strconv.Itoa(int(p)) + "." + strconv.Itoa(beat)
}

func (t *interned) snapshot(s epoch.Snapshot) uint32 {
	key := string(appendRecord(nil, s))
	if n, ok := t.records.number(key); ok {
		return n
	}
	r := s.Record
	info := recordInfo{snap: s, leader: int8(r.Leader), epoch: int8(r.LeaderEpoch), change: int16(r.PartitionEpoch)}
	for _, id := range r.ISR {
		info.isr |= 1 << id
	}
	for _, p := range r.Replicas {
		info.session[p.ID], info.directory[p.ID] = p.Session, int8(p.DirectoryID[1])
	}
	return t.records.add(key, info)
}

func (t *interned) write(base, next uint32) uint32 {
	w := write{base: base, next: next, heartbeat: t.records.things[base].change == t.records.things[next].change}
	return t.writes.intern(w, w)
}

func (t *interned) flaw(f flaw) uint32 {
	t.flaws = append(t.flaws, f)
	return uint32(len(t.flaws) - 1)
}
