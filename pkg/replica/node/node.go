package node

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// Node is a registered process: the core, the log and the volume under it, and who
// waits. One owner calls its methods, one at a time; View, Read, ReadForReplica,
// Compactions, Room and what Ports.Flush and Ports.Compact run are for any goroutine. Every
// method carries out what the core wants before it returns. After Err has become non-nil
// every method does nothing but refuse.
type Node struct {
	cfg       Config
	settings  Settings
	me        core.Identity
	ports     Ports
	core      *core.Core
	log       *log.Log
	volume    *volume.Volume
	published atomic.Pointer[View]

	produces    map[uint64]func(error) // waiting for their commit, by token
	lastToken   uint64
	held        []Produce // waiting until another leads, or this one goes on (core.HoldsAppends)
	parked      []*Fetch
	deletions   []waitingDeletion
	flag        flag // of EveryBatch, as the volume is to have it
	flushing    bool
	failed      error // the volume is not to be trusted any more, or the process is to end
	space       space
	damage      error // what a read has found in the log; nil while it has found nothing
	deaf        bool  // a listener for clients outside of the cluster is not open
	recordError error // the last failure to reach the record

	stopping bool
	released bool // an orderly stop need not wait any longer

	checkpointed   time.Duration
	synced         time.Duration
	lastCheckpoint [3]epoch.Offset

	compaction compaction
	compacted  atomic.Pointer[CompactionTotals]
	roomSeen   atomic.Pointer[volume.Room]
}

// Serve makes the Node of a process whose registration is in the record. The Node owns
// log and volume from here on. Nothing is acted upon before Start.
func (s *Starting) Serve(registered epoch.Snapshot, p Ports) *Node {
	n := &Node{cfg: s.cfg, settings: s.cfg.Settings, me: s.Identity(registered), ports: p, log: s.log, volume: s.volume,
		produces: map[uint64]func(error){}}
	s.log, s.volume = nil, nil
	now := n.cfg.Now()
	n.checkpointed, n.synced = now, now
	n.compacted.Store(&CompactionTotals{})
	n.roomSeen.Store(&volume.Room{})
	n.core = core.New(n.me, n.settings.core(), n.log, n.log.CheckpointedHighWatermark(), n.cfg.NewChangeID)
	n.core.Observe(now, registered, core.FromWrite)
	n.takeReserve()
	n.publish()
	n.cfg.Log.Info("registered", "replica", n.me.ID, "session", n.me.Session, "directoryID", n.me.DirectoryID.String(),
		"logStartOffset", n.log.StartOffset(), "logEndOffset", n.log.EndOffset(), "epochCache", n.log.EpochCache().String())
	return n
}

// Start begins to act on the record of the registration.
func (n *Node) Start() { n.settle() }

// Identity is who this process is.
func (n *Node) Identity() core.Identity { return n.me }

// Core is the replication core. Only to look at.
func (n *Node) Core() *core.Core { return n.core }

// Log is the log. The owner may look at it; reads and lookups are for any goroutine.
func (n *Node) Log() *log.Log { return n.log }

// Volume is the volume. Only to look at.
func (n *Node) Volume() *volume.Volume { return n.volume }

// Err is why the process must end, nil if it need not. Call End, then Close.
func (n *Node) Err() error { return n.failed }

// Tick lets time pass, and does what is done from time to time. Call it several times
// per lag time and lease duration.
func (n *Node) Tick() {
	if n.failed != nil {
		return
	}
	n.core.Tick(n.cfg.Now())
	n.upkeep()
	n.leaveForDamage()
	n.settle()
}

// Configure takes over changed settings without a restart.
func (n *Node) Configure(s Settings) {
	if n.failed != nil || s == n.settings {
		return
	}
	n.configure(s)
	n.settle()
}

func (n *Node) configure(s Settings) {
	if n.settings.FlushEveryBatch && !s.FlushEveryBatch {
		// The flag goes durably before the first weaker acknowledgement.
		if err := n.withReserve(n.volume.ClearEveryBatch); err != nil {
			n.failUnlessFull(err)
			return
		}
	}
	if !n.settings.FlushEveryBatch && s.FlushEveryBatch {
		n.flag = flagWanted // once all that was acknowledged before is synced, too
	} else if !s.FlushEveryBatch {
		n.flag = flagSettled
	}
	n.settings = s
	n.core.SetOptions(s.core())
	n.ports.Fetcher.Configure(s.FetchMaxWait, s.FetchMaxBytes)
	n.log.Configure(s.log())
	n.cfg.Log.Info("settings changed", "flushEveryBatch", s.FlushEveryBatch, "segmentBytes", s.SegmentBytes, "segmentAge", s.SegmentAge.String(), "maxMessageBytes", s.MaxMessageBytes,
		"cleanupPolicy", s.Cleanup.String(), "retentionBytes", s.RetentionBytes, "retention", s.Retention.String(), "appendTime", s.AppendTime, "producerExpiry", s.ProducerExpiry.String(),
		"lagTimeMax", s.LagTimeMax.String(), "leaseDuration", s.LeaseDuration.String())
	n.flushSoon()
}

// settle carries out what the core wants, until it wants nothing more, and then
// shows the outcome.
func (n *Node) settle() {
	n.carryOutAll()
	for len(n.held) > 0 && n.failed == nil && !n.holds() {
		n.letGo()
		n.carryOutAll()
	}
	if n.failed != nil {
		return
	}
	n.publish()
	n.answerParked()
	n.answerDeletions()
	if n.stopping && !n.released && n.core.Released() {
		n.released = true
	}
}

func (n *Node) carryOutAll() {
	for effects := n.core.Take(); len(effects) > 0 && n.failed == nil; effects = n.core.Take() {
		for _, e := range effects {
			if n.ports.Effect != nil {
				n.ports.Effect(e)
			}
			if err := n.carryOut(e); noSpace(err) {
				n.Quit(fmt.Errorf("the volume is full, and what the partition record demands cannot be written; give it more space (spec.storage.size): %w", err))
			} else if err != nil {
				n.fail(err)
			}
			if n.failed != nil {
				break
			}
		}
	}
}
