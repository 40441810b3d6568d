package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// smallDisk is its size in bytes: the margin is 128 KiB, the reserve 32 KiB.
const smallDisk = 2 << 20

// limited is a world on small disks, with replica 0 as leader and all in sync.
func limited(t *testing.T, replicas, minISR int) *world {
	t.Helper()
	w := newWorld(t, replicas, minISR, nil)
	var ids []epoch.ReplicaID
	for _, p := range w.procs {
		p.disk.SetCapacity(smallDisk)
		must(t, p.start())
		ids = append(ids, p.id)
	}
	w.elect(0)
	w.run("all in sync", w.inSync(ids...))
	return w
}

// fill lets others take all but so many bytes of a replica's disk.
func (p *proc) fill(leave int64) {
	p.w.t.Helper()
	f, err := p.disk.Create("/others")
	if err != nil {
		p.w.t.Fatal(err)
	}
	s, err := p.disk.Space("/")
	if err == nil && s.Free > leave {
		err = f.Allocate(s.Free - leave)
	}
	if err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *proc) free() int64 {
	s, err := p.disk.Space("/")
	if err != nil {
		p.w.t.Fatal(err)
	}
	return s.Free
}

// Appends end while there is room for what the record may still demand, reads go on, and
// the leader remains one. A follower takes what the leader took, although its disk has
// less. Once there is space again, appends go on at once.
func TestAppendsEndBeforeTheDiskIsFull(t *testing.T) {
	w := limited(t, 2, 2)
	a, b := w.procs[0], w.procs[1]
	b.fill(b.free() - smallDisk/64)
	value := strings.Repeat("x", 8<<10)
	var sent []*Produced
	var refused *Produced
	for range 1000 {
		r := a.produce(value)
		if r.Err != nil && !errors.Is(r.Err, errWaiting) {
			refused = r
			break
		}
		sent = append(sent, r)
	}
	if refused == nil || !errors.Is(refused.Err, core.ErrStorage) {
		t.Fatalf("after %d records: %+v, want a storage error", len(sent), refused)
	}
	if got := a.free(); got < smallDisk/16-16<<10 {
		t.Errorf("%d bytes are left, want about %d", got, smallDisk/16)
	}
	w.run("all that was taken to be committed", func() bool { return sent[len(sent)-1].Err == nil })
	if got := b.n.Log().EndOffset(); got != epoch.Offset(len(sent)) {
		t.Errorf("the follower's log ends at %d, want %d", got, len(sent))
	}
	if got := len(a.values()); got != len(sent) || !w.leads(0)() {
		t.Errorf("%d records can be read, want %d, and replica 0 to lead", got, len(sent))
	}
	told := func(full bool) func() bool {
		return func() bool {
			p := w.record.Record.Progress
			return p != nil && slices.ContainsFunc(p.Replicas, func(r epoch.ReplicaProgress) bool { return r.ID == 0 && r.Full == full })
		}
	}
	w.run("the record to tell that the volume is full", told(true))
	for _, p := range w.procs {
		p.disk.SetCapacity(2 * smallDisk)
	}
	last := a.produce("again")
	w.run("appends to go on", func() bool { return last.Err == nil })
	w.run("the record to tell that there is space", told(false))
}

// What the metrics show follows the disk, whoever fills it or makes it larger.
func TestRoomFollowsTheDisk(t *testing.T) {
	w := limited(t, 1, 1)
	a := w.procs[0]
	shown := func() bool {
		s, err := a.disk.Space("/")
		must(t, err)
		r := a.n.Room()
		return r.Total == s.Total && r.Free == s.Free
	}
	w.run("the room of the new disk", shown)
	a.fill(smallDisk / 10)
	w.run("the room that others leave", shown)
	a.disk.SetCapacity(2 * smallDisk)
	w.run("the room of the larger disk", shown)
}

// A follower's full volume costs its place in the ISR, after the lag limit, and nothing
// else; the leader tells why.
func TestAFollowerWithoutSpaceFallsBehindAndSaysWhy(t *testing.T) {
	w := limited(t, 3, 2)
	a, b := w.procs[0], w.procs[1]
	id := b.n.Identity().DirectoryID
	b.fill(1 << 10)
	r := a.produce("one")
	w.run("a commit without replica 1", func() bool { return r.Err == nil && !w.record.Record.InSync(1) })
	w.run("the record to say why", func() bool {
		return slices.ContainsFunc(w.record.Record.Progress.Replicas, func(r epoch.ReplicaProgress) bool { return r.ID == 1 && r.Full })
	})
	must(t, b.disk.Remove("/others"))
	w.run("replica 1 to catch up", w.inSync(0, 1, 2))
	if b.n.Err() != nil || b.n.Identity().DirectoryID != id {
		t.Errorf("replica 1 ended (%v), or gave up its directory id", b.n.Err())
	}
}

// Somebody else has filled the volumes to the last byte. Elections are held all the
// same, a follower cuts what the new leader lacks, and nobody gives up a promise.
func TestTheRecordIsObeyedOnAFullDisk(t *testing.T) {
	w := limited(t, 3, 2)
	a, b := w.procs[0], w.procs[1]
	one := a.produce("one")
	w.run("a commit", func() bool { return one.Err == nil })
	for range 5 {
		w.step()
	}
	ids := []epoch.UUID{}
	for _, p := range w.procs {
		ids = append(ids, p.n.Identity().DirectoryID)
		p.fill(0)
	}
	for _, next := range []epoch.ReplicaID{1, 2, 1} {
		w.elect(next)
		if r := w.procs[next].produce("refused"); !errors.Is(r.Err, core.ErrStorage) {
			t.Errorf("a record on a full disk: %v, want a storage error", r.Err)
		}
		for range 5 {
			w.step()
		}
	}
	for i, p := range w.procs {
		if p.n == nil || p.n.Err() != nil {
			t.Fatalf("replica %d ended: %v", i, p.n.Err())
		}
	}
	a.kill()
	must(t, a.start())
	must(t, w.procs[2].stop())
	must(t, w.procs[2].start())
	for _, p := range w.procs {
		if got := p.n.Identity().DirectoryID; !slices.Contains(ids, got) {
			t.Errorf("replica %d has drawn the new directory id %s", p.id, got)
		}
	}
	for _, p := range w.procs {
		must(t, p.disk.Remove("/others"))
	}
	two := b.produce("two")
	w.run("a commit with space again", func() bool { return two.Err == nil })
	w.run("all in sync", w.inSync(0, 1, 2))
	if got := b.values(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the log holds %q", got)
	}
}

// Retention is what makes room on a full volume, so it does not wait for its minute.
func TestRetentionMakesRoomOnAFullVolume(t *testing.T) {
	w := newWorld(t, 1, 1, func(s *Settings) { s.SegmentBytes, s.RetentionBytes = 64<<10, 256<<10 })
	p := w.procs[0]
	p.disk.SetCapacity(smallDisk)
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	value := strings.Repeat("x", 8<<10)
	var r *Produced
	for range 1000 {
		if r = p.produce(value); r.Err != nil {
			break
		}
	}
	if r.Err == nil {
		t.Fatal("the disk is never full")
	}
	before := w.now
	w.run("room", func() bool { return p.produce(value).Err == nil })
	if waited := w.now - before; waited >= syncEvery/2 {
		t.Errorf("there was room after %s, want it within seconds", waited.Round(time.Second))
	}
}
