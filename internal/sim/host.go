package sim

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

var (
	topicID = epoch.UUID{0x71, 0xde, 0xa4}
	discard = logr.Discard()
)

// host is where a replica lives: a machine, a pod and a volume.
type host struct {
	id        epoch.ReplicaID
	disk      *vfs.Mem
	memory    *tmpfs // of the witness: outlives a process, not the pod or the machine
	boot, pod int
	process   *process // that has the volume; nil while it is down
	// content is what the log holds while no process is up; damaged says that it is
	// not what the last process acknowledged, and that no process has noticed yet.
	content *mirror
	damaged bool
	// directory is the id under which a process has last registered with the volume.
	directory epoch.UUID
	strayed   bool   // the last process had acted on a record of lost ground
	led       bool   // the last process did: it may have been deleting records
	faulty    bool   // the disk does, or did, fail or run full
	image     *image // taken earlier
}

// image is a volume as it was, in the session that its replica had then.
type image struct {
	disk    *vfs.Mem
	session epoch.Session
	start   epoch.StartID // of the process that ran
	end     epoch.Offset
}

func newHost(id epoch.ReplicaID) *host {
	return &host{id: id, disk: vfs.NewMem(), memory: &tmpfs{}, content: &mirror{}}
}

// reopen finds out what is on the disk now.
func (w *world) reopen(h *host) {
	h.content = w.contentOf(h.disk)
	if h.led {
		w.oracle.deleted = max(w.oracle.deleted, h.content.start)
	}
}

func (w *world) contentOf(disk *vfs.Mem) *mirror {
	m := &mirror{}
	l, err := openLog(disk, log.Config{Topic: "t", TopicID: topicID, SegmentBytes: w.cfg.SegmentBytes})
	if err != nil {
		return m
	}
	m.readAll(l)
	_ = l.Close()
	return m
}

// take ends the process of a host, so that something can be done to the machine.
func (w *world) take(h *host) {
	if h.process != nil {
		w.kill(h.process)
	}
}

// lose notes what a host's disk does not hold any more.
func (w *world) lose(h *host, before *mirror) {
	h.damaged = true
	w.oracle.missing(before, h)
}

// machineCrash is a power cut: what was not synced may be gone, wholly or in part.
func (w *world) machineCrash() {
	h, ok := pick(w, w.hosts)
	if !ok {
		return
	}
	w.take(h)
	w.powerCut(h)
}

func (w *world) powerCut(h *host) {
	w.say("the machine of %d loses power", h.id)
	before := h.content
	h.disk = h.disk.RandomCrash(w.rng)
	if w.chance(80) { // else somebody has put the witness on a disk
		h.memory = &tmpfs{}
	}
	h.boot++
	w.reopen(h)
	w.lose(h, before)
}

// podReplaced gives the replica another pod: the old process is told to stop, or dies.
func (w *world) podReplaced() {
	h, ok := pick(w, w.hosts)
	if !ok {
		return
	}
	if p := h.process; p != nil && p.node != nil && w.chance(60) {
		p.stopping = true
		p.node.Stop()
		w.after(p)
		if !p.dead {
			w.finish(p)
		}
	}
	w.take(h)
	w.say("%d gets another pod", h.id)
	h.pod++
	h.memory = &tmpfs{}
}

// volumeChanges takes an image of a volume, or puts an earlier one or an empty one in
// its place, under a witness that may remember the old one.
func (w *world) volumeChanges() {
	h, ok := pick(w, w.hosts)
	if !ok {
		return
	}
	if h.image == nil || w.chance(30) {
		w.takeImage(h)
		return
	}
	if w.chance(20) {
		other, _ := pick(w, w.hosts)
		w.swap(h, other)
		return
	}
	if restore := w.chance(60); restore && w.noticeable(h) {
		w.restore(h)
	} else if !restore {
		w.empty(h)
	}
}

func (w *world) takeImage(h *host) {
	r, _ := w.store.current().Record.Replica(h.id)
	h.image = &image{disk: h.disk.Crash(vfs.Crash{}), session: r.Session, start: r.StartID}
	if h.process != nil {
		h.image.start = h.process.startID
	}
	w.say("an image is taken of the volume of %d", h.id)
	h.image.end = w.contentOf(h.image.disk).end()
}

// noticeable reports that something outside of the volume can tell an image from the
// volume: a registration since, or a high watermark that the leader has told of. An
// image from within the present session and heartbeat cannot be told by anybody, and no
// promise is made about it.
func (w *world) noticeable(h *host) bool {
	rec := w.store.current().Record
	r, ok := rec.Replica(h.id)
	return !ok || r.Session != h.image.session && r.StartID != h.image.start || rec.Progress != nil && rec.Progress.HighWatermark > h.image.end && rec.InSync(h.id)
}

// swap gives two hosts each other's volume: nobody starts on it.
func (w *world) swap(a, b *host) {
	if a == b {
		return
	}
	w.take(a)
	w.take(b)
	w.say("the volumes of %d and %d are swapped", a.id, b.id)
	a.disk, b.disk = b.disk, a.disk
	a.content, b.content = b.content, a.content
	a.faulty, b.faulty = a.faulty || b.faulty, a.faulty || b.faulty
	a.image, b.image = nil, nil
	a.damaged, b.damaged = true, true
}

// unswap gives every host its own volume back, or a new one where that is lost.
func (w *world) unswap() {
	for range w.hosts {
		for _, h := range w.hosts {
			if owner := w.owner(h); owner != epoch.NoReplica && owner != h.id {
				w.swap(h, w.hosts[owner])
			}
		}
	}
	for _, h := range w.hosts {
		if w.foreign(h) { // its own one was made anew meanwhile
			w.empty(h)
		}
	}
}

var nodeID = regexp.MustCompile(`(?m)^node\.id=(\d+)$`)

// owner is whose volume a host has, by its identity file; NoReplica while it is nobody's.
func (w *world) owner(h *host) epoch.ReplicaID {
	w.looking = true
	defer func() { w.looking = false }()
	b, err := vfs.ReadFile(h.disk, "/v/meta.properties", 1<<16)
	if m := nodeID.FindSubmatch(b); err == nil && m != nil {
		if id, err := strconv.Atoi(string(m[1])); err == nil {
			return epoch.ReplicaID(id)
		}
	}
	return epoch.NoReplica
}

// foreign reports that a host has another replica's volume.
func (w *world) foreign(h *host) bool {
	owner := w.owner(h)
	return owner != epoch.NoReplica && owner != h.id
}

// empty gives a host a new volume, restore its image.
func (w *world) empty(h *host) {
	w.take(h)
	w.say("the volume of %d is emptied", h.id)
	w.replaceDisk(h, vfs.NewMem())
}

func (w *world) restore(h *host) {
	w.take(h)
	w.say("the volume of %d is restored from its image", h.id)
	w.replaceDisk(h, h.image.disk.Crash(vfs.Crash{}))
}

func (w *world) replaceDisk(h *host, disk *vfs.Mem) {
	before := h.content
	h.disk = disk
	if w.chance(40) {
		h.pod++
		h.memory = &tmpfs{}
	}
	w.reopen(h)
	w.lose(h, before)
}

// diskFails makes operations of a disk fail, once or until it is mended.
func (w *world) diskFails() {
	h, ok := pick(w, w.hosts)
	if !ok {
		return
	}
	h.faulty = true
	switch w.rng.IntN(4) {
	case 0:
		w.say("the disk of %d works again", h.id)
		h.disk.SetFault(nil)
		h.disk.SetCapacity(-1)
	case 1:
		w.say("the disk of %d is full", h.id)
		h.disk.SetCapacity(h.disk.Used() + int64(w.rng.IntN(400)))
	default:
		f := &vfs.Fault{After: w.rng.IntN(4), Err: syscall.EIO}
		f.Kind = []vfs.OpKind{vfs.OpWrite, vfs.OpSync, vfs.OpSync, vfs.OpSyncDir, vfs.OpRename, vfs.OpRead, vfs.OpTruncate}[w.rng.IntN(7)]
		if w.chance(70) {
			f.Times = 1
		}
		switch {
		case f.Kind == vfs.OpSync && w.chance(60): // "fsyncgate": the next sync succeeds
			f.Err = &vfs.Dropped{Err: syscall.EIO}
		case f.Kind == vfs.OpWrite && w.chance(50): // a torn write
			f.Err = &vfs.Short{Bytes: int64(w.rng.IntN(100)), Err: syscall.EIO}
		}
		w.say("the disk of %d fails at %s, after %d of them, %d times: %v", h.id, f.Kind, f.After, f.Times, f.Err)
		w.fault(h.disk, vfs.Faults{f}.Judge)
	}
}

// fault makes operations of a disk fail, but not those by which the simulator looks at
// the logs.
func (w *world) fault(disk *vfs.Mem, judge func(vfs.Op) error) {
	disk.SetFault(func(op vfs.Op) error {
		if w.looking {
			return nil
		}
		return judge(op)
	})
}

// mend lets a disk work.
func (h *host) mend() {
	h.disk.SetFault(nil)
	h.disk.SetCapacity(-1)
}

func (h *host) String() string { return fmt.Sprint(h.id) }

// openLog opens a copy of a disk's log, to see what is there.
func openLog(disk *vfs.Mem, cfg log.Config) (*log.Log, error) {
	l, _, err := log.Open(disk.Crash(vfs.ProcessCrash()), "/v", cfg, false, discard)
	return l, err
}
