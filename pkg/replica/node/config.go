package node

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// Config is what a replica process is made of before it knows the partition record.
type Config struct {
	// Volume says which data directory, whose, and on which file system. Its topic,
	// topic id, replica id and pod UID are the process's own, too.
	Volume volume.Config
	// StartID is random, and new with every process.
	StartID epoch.StartID
	// Address is what the record tells clients and peers.
	Address epoch.Address
	// RestartCount is the container's.
	RestartCount int32
	Settings     Settings

	// Now is a monotonic clock that begins anywhere; Wall is the clock that times in
	// the record and ages of segments are told by. Nobody compares it with another
	// machine's.
	Now  func() time.Duration
	Wall func() time.Time
	// NewChangeID draws random ids for changes of the record.
	NewChangeID func() epoch.ChangeID
	// Checking is told how far Open is in reading and checking the log, in bytes. May be nil.
	Checking func(done, total int64)
	// NoSpaceMargin lets appends go on until the disk itself is full. Simulations use it.
	NoSpaceMargin bool
	// Log gets what happens to this replica; the zero value discards it.
	Log logr.Logger
}

// Settings come from the ReplicatedPartition's spec.
type Settings struct {
	SegmentBytes int64
	// SegmentAge is by how much a batch may be newer than the first of its segment.
	SegmentAge     time.Duration
	RetentionBytes int64         // -1: no limit
	Retention      time.Duration // negative: no limit
	// Cleanup says whether the two above count, and whether the log is compacted, by the three
	// below.
	Cleanup          CleanupPolicy
	MinCompactionLag time.Duration
	DeleteRetention  time.Duration // of tombstones
	MinDirtyPercent  int
	MaxMessageBytes  int
	// AppendTime makes the time at which the leader takes a batch that of its records, else
	// it is the client's: at most that much older, zero for any, or newer than the leader's.
	AppendTime                            bool
	TimestampMaxBehind, TimestampMaxAhead time.Duration
	// ProducerExpiry is after how long without a batch an idempotent producer is forgotten.
	ProducerExpiry  time.Duration
	FlushEveryBatch bool
	LagTimeMax      time.Duration
	FetchMaxWait    time.Duration
	FetchMaxBytes   int
	LeaseDuration   time.Duration
}

// DefaultSettings are the API's defaults, but that nothing is deleted: without a spec nobody
// has asked for that.
func DefaultSettings() Settings {
	return Settings{SegmentBytes: 256 << 20, SegmentAge: 7 * 24 * time.Hour, RetentionBytes: -1, Retention: -1, DeleteRetention: 24 * time.Hour, MinDirtyPercent: 50, MaxMessageBytes: 1<<20 + 12,
		TimestampMaxAhead: batch.DefaultMaxAhead, ProducerExpiry: 24 * time.Hour,
		LagTimeMax: 30 * time.Second, FetchMaxWait: 500 * time.Millisecond, FetchMaxBytes: 10 << 20, LeaseDuration: 10 * time.Second}
}

func (s Settings) core() core.Options {
	return core.Options{LagTimeMax: s.LagTimeMax, LeaseDuration: s.LeaseDuration, FlushEveryBatch: s.FlushEveryBatch}
}

// retention is what is deleted by size and age.
func (s Settings) retention() (int64, time.Duration) {
	if !s.Cleanup.Deletes() {
		return -1, -1
	}
	return s.RetentionBytes, s.Retention
}

func (c Config) log() log.Config {
	l := c.Settings.log()
	l.Topic, l.TopicID = c.Volume.Topic, c.Volume.TopicID
	return l
}

// log is what of the settings the log keeps to.
func (s Settings) log() log.Config {
	bytes, age := s.retention()
	return log.Config{SegmentBytes: s.SegmentBytes, SegmentAge: s.SegmentAge, RetentionBytes: bytes, Retention: age, ProducerExpiry: s.ProducerExpiry}
}

// RecordPort begins reads and writes of the partition record, in the background. The
// results come back as calls of the Node: Written or WriteFailed, ReadDone or
// ReadFailed. The Node has one outstanding at a time.
type RecordPort interface {
	// Write swaps base for next.
	Write(base epoch.Snapshot, next epoch.Record)
	// Read is a quorum read.
	Read()
}

// FetchPort is the follower's loop: it asks NextFetch what to send, and tells what came
// back by Fetched, OutOfRange or FetchFailed. Its methods are called within calls of
// the Node, must not block and must not call back.
type FetchPort interface {
	// Follow starts to fetch from that leader; a loop that runs is abandoned with what
	// it has outstanding.
	Follow(leader epoch.ReplicaID, address epoch.Address, e epoch.LeaderEpoch)
	// Stop ends the loop.
	Stop()
	// Wake says that NextFetch may have something to send now.
	Wake()
	// Backoff asks for a pause: what was fetched could not be used.
	Backoff()
	// Configure changes limits for the fetches to come.
	Configure(maxWait time.Duration, maxBytes int)
}

// Ports are what a Node acts on beside its volume.
type Ports struct {
	Records RecordPort
	Fetcher FetchPort
	// Flush runs work in the background, which may take its time in a sync of the log,
	// and hands its result to FlushDone. One is outstanding at a time.
	Flush func(work func() error)
	// Compact runs work in the background, slowly: it tells of every byte before it reads it,
	// and goes on when pace returns. What it returns is handed to Compacted. One is
	// outstanding at a time. Nil: nothing is compacted.
	Compact func(work func(pace func(bytes int64) error) error)
	// Published gets every newer view, after View returns it and before anything is
	// answered on the strength of it. May be nil.
	Published func(*View)
	// Regressed is told when the record was seen to go backwards. May be nil.
	Regressed func(read, known epoch.Record)
	// Effect gets every effect of the core before it is carried out. May be nil.
	Effect func(core.Effect)
}
