package sim

import (
	"slices"
	"strings"
	"syscall"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// What disks do to what they had taken is here: damage that shows at the next start, so
// that the promise of the volume has to end. Damage that shows in nothing is nobody's
// promise: a bit below the recovery point, or a tail that ends where a power cut might
// have left it.

// diskRots turns a bit of a batch, or loses synced batches at the end of the log.
func (w *world) diskRots() {
	h, ok := pick(w, w.hosts)
	if !ok || h.faulty || w.foreign(h) {
		return
	}
	w.looking = true
	disk := h.disk.Clone()
	var what string
	var shows func(log.Recovery, epoch.Offset) bool
	if w.chance(60) {
		what = "a bit turns in the log of %d"
		at := w.turnBit(disk)
		shows = func(r log.Recovery, end epoch.Offset) bool {
			return end <= at && r.CutAt != epoch.NoOffset && !r.OnlyTornTail
		}
	} else {
		what = "the disk of %d loses the end of the log"
		shows = func(r log.Recovery, end epoch.Offset) bool { return r.HighWatermark > end }
		w.loseEnd(disk)
	}
	w.looking = false
	if !w.shows(disk, shows) {
		return
	}
	w.take(h)
	w.say(what, h.id)
	w.replaceDisk(h, disk)
}

// syncDrops lets the next sync of a log fail, which drops what it was to write: the one
// after it succeeds ("fsyncgate"). All else on that disk works.
func (w *world) syncDrops() {
	h, ok := pick(w, w.hosts)
	if !ok || h.process == nil {
		return
	}
	h.faulty = true
	w.say("the next sync of the log of %d drops what it was to write", h.id)
	f := &vfs.Fault{Kind: vfs.OpSync, Name: ".log", Times: 1, Err: &vfs.Dropped{Err: syscall.EIO}}
	w.fault(h.disk, vfs.Faults{f}.Judge)
}

// shows reports that whoever opens a log finds the damage.
func (w *world) shows(disk *vfs.Mem, what func(log.Recovery, epoch.Offset) bool) bool {
	_, err := disk.Stat("/v/.kafka_cleanshutdown")
	l, r, err := log.Open(disk.Crash(vfs.ProcessCrash()), "/v", log.Config{Topic: "t", TopicID: topicID, SegmentBytes: w.cfg.SegmentBytes}, err == nil, discard)
	if err != nil {
		return false
	}
	defer func() { _ = l.Close() }()
	return what(r, l.EndOffset())
}

// turnBit turns one bit of one batch, behind the leader epoch: nothing sums that up. It
// returns where the batch begins.
func (w *world) turnBit(disk *vfs.Mem) epoch.Offset {
	name, data := w.someSegment(disk)
	batches := split(data)
	if len(batches) == 0 {
		return epoch.NoOffset
	}
	at, b := 0, w.rng.IntN(len(batches))
	for _, before := range batches[:b] {
		at += len(before)
	}
	at += 16 + w.rng.IntN(len(batches[b])-16)
	overwrite(disk, name, []byte{data[at] ^ 1<<w.rng.IntN(8)}, int64(at), int64(len(data)))
	return batches[b].BaseOffset()
}

// loseEnd takes some batches off the end of the log's last segment.
func (w *world) loseEnd(disk *vfs.Mem) {
	name, data := w.lastSegment(disk)
	batches := split(data)
	if len(batches) == 0 {
		return
	}
	left := 0
	for _, b := range batches[:w.rng.IntN(len(batches))] {
		left += len(b)
	}
	overwrite(disk, name, nil, 0, int64(left))
}

func (w *world) segments(disk *vfs.Mem) []string {
	names, _ := disk.List("/v/t-0")
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(names)
	return names
}

func (w *world) someSegment(disk *vfs.Mem) (string, []byte) {
	name, ok := pick(w, w.segments(disk))
	if !ok {
		return "", nil
	}
	return read(disk, name)
}

func (w *world) lastSegment(disk *vfs.Mem) (string, []byte) {
	names := w.segments(disk)
	if len(names) == 0 {
		return "", nil
	}
	return read(disk, names[len(names)-1])
}

func read(disk *vfs.Mem, segment string) (string, []byte) {
	name := "/v/t-0/" + segment
	data, err := vfs.ReadFile(disk, name, 1<<24)
	if err != nil {
		return "", nil
	}
	return name, data
}

func split(data []byte) []batch.Batch {
	var out []batch.Batch
	for len(data) > 0 {
		b, rest, err := batch.Next(data)
		if err != nil {
			break
		}
		out, data = append(out, b), rest
	}
	return out
}

// overwrite changes a file as it is on the disk, without a trace.
func overwrite(disk *vfs.Mem, name string, data []byte, at, size int64) {
	f, err := disk.Open(name)
	if err != nil {
		return
	}
	if len(data) > 0 {
		_, _ = f.WriteVec([][]byte{data}, at)
	}
	_ = f.Truncate(size)
	_ = f.Sync()
	_ = f.Close()
}

// volumeGoesBack puts a volume back to an image of the present session, under a process
// that is killed for it. The witness in its memory knows better, and nothing else speaks
// for the image.
func (w *world) volumeGoesBack() {
	h, ok := pick(w, w.hosts)
	if !ok || h.process == nil || h.process.node == nil || h.faulty || w.foreign(h) {
		return
	}
	r, _ := w.store.current().Record.Replica(h.id)
	if h.image == nil || w.chance(30) {
		w.takeImage(h)
		return
	}
	if h.image.has("/v/.kafka_cleanshutdown") || h.image.has("/v/.every_batch") {
		return // a proof of its own: if the witness is lost, too, nothing tells
	}
	if p := h.process; r.StartID != p.startID || h.image.start != p.startID || p.pod != h.pod {
		return
	}
	w.take(h)
	w.say("the volume of %d goes back to its image, under its pod", h.id)
	before := h.content
	h.disk = h.image.disk.Crash(vfs.Crash{})
	w.reopen(h)
	w.lose(h, before)
}

func (i *image) has(file string) bool {
	_, err := i.disk.Stat(file)
	return err == nil
}

// tmpfs is where a witness lives. If it is full it takes no new one, and an old one stays.
type tmpfs struct {
	volume.PlainMemory
	full bool
}

// Replace implements volume.WitnessMemory.
func (m *tmpfs) Replace(size int, fill func([]byte)) ([]byte, error) {
	if m.full {
		return nil, syscall.ENOSPC
	}
	return m.PlainMemory.Replace(size, fill)
}

// tmpfsFills lets no process of a host have a witness of its own, or again.
func (w *world) tmpfsFills() {
	if h, ok := pick(w, w.hosts); ok {
		h.memory.full = !h.memory.full
		w.say("the memory of the witness of %d is full: %t", h.id, h.memory.full)
	}
}

// volumeReclaimed is what becomes of the volume of a replica that was dropped.
func (w *world) volumeReclaimed() {
	h, ok := pick(w, w.hosts)
	if _, assigned := w.store.current().Record.Replica(h.id); !ok || assigned || h.process != nil || w.foreign(h) || w.store.line.lost {
		return
	}
	w.say("the volume of %d, which was dropped, is reclaimed", h.id)
	n := newHost(h.id)
	n.boot, n.pod, n.damaged = h.boot, h.pod+1, true
	*h = *n
	w.oracle.copies(h)
}
