package explore

import "fmt"

// action is one step of a world: its kind, the replica concerned, and an argument.
type action uint32

type actionKind uint8

const (
	see         actionKind = iota // a watch shows a version of the record; arg: how old
	readRecord                    // a quorum read of the record ends
	produce                       // a record is appended by a leader
	fetch                         // a follower's fetch reaches its leader; Prompt: and the answer is applied
	fetchLost                     // the same, and the answer is lost
	send                          // a follower's fetch goes on its way
	deliver                       // a fetch on its way arrives; arg: which, and twice if another of it is to come
	receive                       // an answer on its way arrives; arg: as before
	flush                         // a leader's log becomes durable
	timers                        // at a leader, all limits run out
	lose                          // a leader takes follower arg for gone
	land                          // a write of the record takes effect
	tell                          // a writer is told what became of its write
	giveUp                        // a writer waits no longer
	landLate                      // a write whose writer waits no more takes effect; arg: which
	elect                         // the operator elects
	crash                         // a process dies
	machineDies                   // a machine dies and keeps the log up to arg
	start                         // a process starts and registers
)

var actionNames = [...]string{"sees version", "has read the record", "appends", "fetches", "fetches, answer lost", "sends a fetch", "fetch arrives",
	"answer arrives", "flushes", "timers run out at", "loses sight", "write lands, of", "is told of its write", "gives up its write", "late write lands",
	"operator elects", "process dies:", "machine dies:", "starts"}

func act(k actionKind, i, arg int) action {
	return action(k) | action(i)<<8 | action(arg)<<12
}

func (a action) parts() (actionKind, int, int) {
	return actionKind(a & 0xff), int(a >> 8 & 0xf), int(a >> 12)
}

func (a action) String() string {
	k, i, arg := a.parts()
	name := actionNames[k]
	switch k {
	case lose:
		return fmt.Sprintf("%c loses sight of %c", letter(i), letter(arg))
	case machineDies:
		return fmt.Sprintf("machine of %c dies, log cut to %d", letter(i), arg)
	case see:
		return fmt.Sprintf("%c sees the record", letter(i))
	case landLate:
		return name
	case timers, land, elect, crash:
		return fmt.Sprintf("%s %c", name, letter(i))
	case deliver, receive:
		if name = fmt.Sprintf("late fetch of %c arrives", letter(i)); k == receive {
			name = fmt.Sprintf("%c is answered", letter(i))
		}
		if arg&twice != 0 {
			name += ", not for the last time"
		}
		return name
	}
	return fmt.Sprintf("%c %s", letter(i), name)
}

// possible lists what may happen in a world. Some of it will turn out to change
// nothing.
func (x *Explorer) possible(w *world, out []action) []action {
	for i := range x.Replicas {
		p := &x.tables.replicas.things[w.replicas[i]]
		if p.up {
			out = x.possibleUp(w, i, p, out)
		} else {
			out = append(out, act(start, i, 0))
		}
		if int(w.machine) < x.MachineCrashes {
			for keeps := range p.leo + 1 {
				out = append(out, act(machineDies, i, int(keeps)))
			}
		}
		if w.writes[i] != 0 {
			out = x.possibleWrite(w, i, out)
		}
		if rec := &x.tables.records.things[w.record]; rec.session[i] != 0 {
			out = append(out, act(elect, i, 0))
		}
	}
	for k, n := range w.orphans {
		if n != 0 {
			out = append(out, act(landLate, 0, k))
		}
	}
	return out
}

func (x *Explorer) possibleUp(w *world, i int, p *replicaInfo, out []action) []action {
	if x.tables.records.things[w.record].change > p.change {
		out = append(out, act(see, i, 0))
	}
	for k, n := range w.older {
		if n != 0 && x.tables.records.things[n].change > p.change {
			out = append(out, act(see, i, k+1))
		}
	}
	if p.replica.reading {
		out = append(out, act(readRecord, i, 0))
	}
	if int(w.crashes) < x.Crashes {
		out = append(out, act(crash, i, 0))
	}
	switch {
	case p.leads:
		out = x.possibleLeader(w, i, out)
	case p.follows:
		out = x.possibleFollower(w, i, out)
	}
	return out
}

func (x *Explorer) possibleLeader(w *world, i int, out []action) []action {
	if int(w.records) < x.Records {
		out = append(out, act(produce, i, 0))
	}
	if x.EveryBatch {
		out = append(out, act(flush, i, 0))
	}
	if x.OnlyElections {
		return out
	}
	out = append(out, act(timers, i, 0))
	for f := range x.Replicas {
		if f != i {
			out = append(out, act(lose, i, f))
		}
	}
	return out
}

func (x *Explorer) possibleFollower(w *world, i int, out []action) []action {
	out = append(out, act(fetch, i, 0))
	if x.Fetching == Prompt {
		return append(out, act(fetchLost, i, 0))
	}
	if x.Fetching == Disordered && w.messages[i][slots-1] == 0 {
		out = append(out, act(send, i, 0))
	}
	for k, n := range w.messages[i] {
		if n == 0 {
			continue
		}
		kind, room := deliver, w.messages[i][1-k] == 0
		if x.tables.messages.things[n].answer {
			kind, room = receive, true
		}
		out = append(out, act(kind, i, k))
		if x.Fetching == Disordered && room {
			out = append(out, act(kind, i, k|twice))
		}
	}
	return out
}

// twice marks a message that is delivered, and will be once more.
const twice = 1 << 4

func (x *Explorer) possibleWrite(w *world, i int, out []action) []action {
	up := x.tables.replicas.things[w.replicas[i]].up
	if w.fate[i] == onItsWay {
		out = append(out, act(land, i, 0))
	} else if up {
		out = append(out, act(tell, i, 0))
	}
	if x.UndecidedWrites && up && w.fate[i] != refused {
		out = append(out, act(giveUp, i, 0))
	}
	return out
}
