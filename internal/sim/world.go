package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// world is a simulated cluster.
type world struct {
	cfg     Config
	pcg     *rand.PCG
	rng     *rand.Rand // of the step that is being made
	now     time.Duration
	steps   int
	healing bool // nothing is lost or late any more
	looking bool // the simulator reads, and no disk fails

	store     *store
	hosts     []*host
	procs     []*process
	packets   []packet
	strays    []packet // on a way of their own
	cuts      map[[2]epoch.ReplicaID]bool
	operators [2]*operator
	producers []*producer
	consumers []*consumer
	oracle    *oracle
	target    []epoch.ReplicaID // of the assignment; nil before the first
	minISR    int
	maxValues int
	// uncleanWish is the leader epoch that a user wanted to end, who forgot about it.
	uncleanWish epoch.LeaderEpoch
	counters    struct{ changes, uuids, starts, connections, values, producers int }

	failure *Failure
	tracing bool
	trace   []string
}

// maxValues bounds the records of one run: the checks look at many of them.
const maxValues = 60

func newWorld(c Config, tracing bool) *world {
	w := &world{cfg: c, pcg: rand.NewPCG(c.Seed, 4), cuts: map[[2]epoch.ReplicaID]bool{}, tracing: tracing, maxValues: maxValues, uncleanWish: epoch.NoEpoch}
	w.rng = rand.New(w.pcg)
	var ids []epoch.ReplicaID
	for i := range maxReplicas {
		id := epoch.ReplicaID(i)
		if i < c.Replicas {
			ids = append(ids, id)
		}
		w.hosts = append(w.hosts, newHost(id))
	}
	w.oracle = newOracle(w)
	w.store = newStore(w, epoch.New(topicID, ids, c.MinISR, w.newChangeID()))
	w.operators = [2]*operator{{w: w, name: "operator 0"}, {w: w, name: "operator 1"}}
	w.producers = newProducers(w)
	for i := range 2 {
		w.consumers = append(w.consumers, &consumer{name: fmt.Sprint("consumer ", i), lastEpoch: epoch.NoEpoch})
	}
	return w
}

func (w *world) newChangeID() epoch.ChangeID {
	w.counters.changes++
	return epoch.ChangeID("c" + strconv.Itoa(w.counters.changes))
}

func (w *world) newUUID() epoch.UUID {
	w.counters.uuids++
	var u epoch.UUID
	binary.BigEndian.PutUint16(u[:], uint16(w.counters.uuids))
	u[15] = 1
	return u
}

// do makes one step.
func (w *world) do(s Step) {
	w.pcg.Seed(s.Seed, 4)
	w.steps++
	w.say("%4d %s", w.steps, moves[s.Move].name)
	w.unlessCutShort(func() { moves[s.Move].do(w) })
	w.oracle.step()
	if w.tracing {
		w.show()
	}
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func pick[T any](w *world, from []T) (T, bool) {
	if len(from) == 0 {
		var none T
		return none, false
	}
	return from[w.rng.IntN(len(from))], true
}

// move is something that may happen. wild and calm say how often, in a wild run and in
// one in which most things go well; needs, which runs have it at all.
type move struct {
	wild, calm int
	name       string
	needs      func(Faults) bool
	do         func(*world)
}

// moves are all that can happen. Their order is part of what a seed means.
var moves []move

func init() {
	disk := func(f Faults) bool { return f.Disk }
	volumes := func(f Faults) bool { return f.Volumes }
	machines := func(f Faults) bool { return f.Machines }
	zombies := func(f Faults) bool { return f.Zombies }
	assign := func(f Faults) bool { return f.Assign }
	record := func(f Faults) bool { return f.Record }
	unclean := func(f Faults) bool { return f.Unclean }
	retain := func(f Faults) bool { return f.Retain }
	toggle := func(f Faults) bool { return f.Toggle }
	midway := func(f Faults) bool { return f.Midway }
	strangers := func(f Faults) bool { return f.Strangers }
	rot := func(f Faults) bool { return f.Rot }
	moves = []move{
		{14, 10, "ask", nil, (*world).askSome},
		{20, 6, "packet arrives", nil, (*world).packetArrives},
		{8, 24, "oldest packets arrive", nil, (*world).oldestArrives},
		{2, 0, "packet lost", nil, (*world).packetLost},
		{1, 0, "link cut", nil, (*world).linkCut},
		{1, 0, "connection reset", nil, (*world).connectionReset},
		{8, 8, "produce", nil, (*world).produceSome},
		{3, 2, "retry", nil, (*world).retrySome},
		{4, 4, "consume", nil, (*world).consumeSome},
		{8, 10, "flush", nil, (*world).flushSome},
		{5, 4, "time", nil, (*world).passTime},
		{1, 0, "clock jumps", nil, (*world).clockJumps},
		{9, 8, "watch", nil, (*world).watchSome},
		{9, 2, "store acts", nil, (*world).storeActs},
		{8, 2, "store answers", nil, (*world).storeAnswers},
		{2, 0, "store is silent", nil, (*world).storeIsSilent},
		{3, 24, "store at rest", nil, (*world).storeAtRest},
		{1, 0, "store outage", nil, (*world).storeOutage},
		{6, 8, "start", nil, (*world).startSome},
		{2, 1, "kill", nil, (*world).killSome},
		{1, 1, "stop", nil, (*world).stopSome},
		{3, 3, "finish", nil, (*world).finishSome},
		{1, 0, "pod replaced", nil, (*world).podReplaced},
		{2, 1, "machine crash", machines, (*world).machineCrash},
		{1, 1, "zombie", zombies, (*world).zombieSome},
		{1, 1, "volume changes", volumes, (*world).volumeChanges},
		{1, 1, "disk fails", disk, (*world).diskFails},
		{3, 3, "elect", nil, (*world).electSome},
		{1, 0, "switchover", nil, (*world).switchoverSome},
		{2, 1, "assign", assign, (*world).assignSome},
		{1, 1, "restore record", record, (*world).restoreRecord},
		{2, 3, "recover", record, (*world).recoverSome},
		{1, 1, "unclean election", unclean, (*world).electUncleanSome},
		{1, 1, "delete records", retain, (*world).deleteSome},
		{1, 1, "configure", toggle, (*world).configureSome},
		{2, 1, "cut short", midway, (*world).cutShort},
		{1, 1, "pause", nil, (*world).pauseSome},
		{2, 1, "packet strays", nil, (*world).packetStrays},
		{2, 1, "answer read late", nil, (*world).readLate},
		{1, 1, "stray packet arrives", nil, (*world).strayArrives},
		{2, 1, "stranger fetches", strangers, (*world).strangerFetches},
		{1, 0, "replica replaced", zombies, (*world).replicaReplaced},
		{1, 1, "forgotten request", unclean, (*world).forgottenRequest},
		{1, 1, "disk rots", rot, (*world).diskRots},
		{1, 1, "volume goes back", volumes, (*world).volumeGoesBack},
		{1, 1, "sync drops", disk, (*world).syncDrops},
		{1, 1, "tmpfs fills", volumes, (*world).tmpfsFills},
		{1, 1, "volume reclaimed", assign, (*world).volumeReclaimed},
	}
}
