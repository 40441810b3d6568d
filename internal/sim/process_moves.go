package sim

import (
	"syscall"
	"time"

	"github.com/tidemark-io/tidemark/internal/vfs"
)

// The moves of processes.

func (w *world) askSome() {
	if p, ok := pick(w, w.awake()); ok {
		p.ask()
		w.after(p)
	}
}

func (w *world) flushSome() {
	if p, ok := pick(w, w.awake()); ok && p.flush != nil && p.node != nil {
		p.finishFlush()
	}
}

func (p *process) finishFlush() {
	work := p.flush
	p.flush = nil
	p.node.FlushDone(work())
	p.w.after(p)
}

func (w *world) startSome() {
	var down []*host
	for _, h := range w.hosts {
		if _, assigned := w.store.current().Record.Replica(h.id); assigned && h.process == nil {
			down = append(down, h)
		}
	}
	if h, ok := pick(w, down); ok {
		w.start(h)
	}
}

func (w *world) killSome() {
	if p, ok := pick(w, w.procs); ok {
		w.kill(p)
	}
}

func (w *world) stopSome() {
	if p, ok := pick(w, w.awake()); ok && p.node != nil && !p.zombie {
		w.say("%s is asked to stop", p)
		p.stopping = true
		p.node.Stop()
		w.after(p)
	}
}

// finishSome ends a stop: released, or out of patience.
func (w *world) finishSome() {
	p, ok := pick(w, w.awake())
	if !ok || p.node == nil || !p.stopping || !p.node.Released() && w.chance(70) {
		return
	}
	w.finish(p)
}

func (w *world) finish(p *process) {
	for p.flush != nil && !p.dead { // no work of its runs any more
		p.finishFlush()
	}
	if p.dead {
		return
	}
	_ = p.node.End() // nothing has failed
	err := p.node.Finish()
	w.say("%s stops in good order: %v", p, orOK(err))
	w.kill(p)
}

// zombieSome takes the volume away from a process that does not know: the next process
// of its replica gets it. What the zombie still writes goes nowhere, and its syncs fail,
// as they do on a device that was detached.
func (w *world) zombieSome() {
	p, ok := pick(w, w.procs)
	if !ok || p.zombie || w.count(func(q *process) bool { return q.zombie }) > 1 {
		return
	}
	w.say("%s becomes a zombie", p)
	p.zombie = true
	h := p.host
	old := h.disk
	h.disk, h.content, h.strayed = old.Crash(vfs.ProcessCrash()), p.mirror.clone(), p.strayed
	h.damaged = h.damaged || !p.every || w.cfg.Faults.Toggle // what the zombie goes on to acknowledge is not on the volume
	w.fault(old, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
			return syscall.EIO
		}
		return nil
	})
	h.process = nil
	h.pod++
	h.memory = &tmpfs{}
}

func (w *world) count(what func(*process) bool) int {
	n := 0
	for _, p := range w.procs {
		if what(p) {
			n++
		}
	}
	return n
}

// awake are the processes that are not paused.
func (w *world) awake() []*process {
	out := make([]*process, 0, len(w.procs))
	for _, p := range w.procs {
		if !p.paused {
			out = append(out, p)
		}
	}
	return out
}

// pauseSome stops a process, as SIGSTOP and a hung disk do, or lets it go on.
func (w *world) pauseSome() {
	if p, ok := pick(w, w.procs); ok {
		p.paused = !p.paused
		w.say("%s is paused: %t", p, p.paused)
	}
}

// clockJumps lets a process's clock jump ahead, as a stopped machine's does.
func (w *world) clockJumps() {
	if p, ok := pick(w, w.procs); ok {
		p.offset += time.Duration(w.rng.IntN(30)) * time.Second
	}
}

func (w *world) passTime() {
	w.now += []time.Duration{time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond, time.Second, 4 * time.Second, 11 * time.Second}[w.rng.IntN(6)]
	for _, p := range w.awake() {
		if p.node != nil && !p.dead && w.chance(70) {
			p.node.Tick()
			w.after(p)
		}
	}
}

// configureSome lets a process sync every batch from now on, or no more.
func (w *world) configureSome() {
	if p, ok := pick(w, w.awake()); ok && p.node != nil {
		p.every = !p.every
		w.say("%s syncs every batch: %t", p, p.every)
		s := w.settings()
		s.FlushEveryBatch = p.every
		p.node.Configure(s)
		w.after(p)
	}
}

// midway is the panic by which a process ends in the middle of an operation on its
// disk, as by kill -9, or with its machine.
type midway struct {
	host  *host
	power bool
}

// cutShort lets the process of a host end a few operations of its disk from now.
func (w *world) cutShort() {
	h, ok := pick(w, w.hosts)
	if !ok || h.faulty {
		return
	}
	left, power := w.rng.IntN(12), w.cfg.Faults.Machines && w.chance(50)
	w.say("%d will be cut short in %d operations, with its machine: %t", h.id, left, power)
	w.fault(h.disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen {
			return nil
		}
		if left--; left < 0 {
			w.say("  cut short at %s of %s", op.Kind, op.Name)
			panic(midway{h, power})
		}
		return nil
	})
}

func (w *world) unlessCutShort(do func()) {
	defer func() {
		switch m := recover().(type) {
		case nil:
		case midway:
			w.looking = false
			m.host.disk.SetFault(nil)
			w.take(m.host)
			if m.power {
				w.powerCut(m.host)
			} else {
				w.reopen(m.host)
			}
		default:
			panic(m)
		}
	}()
	do()
}
