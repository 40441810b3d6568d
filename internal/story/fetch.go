package story

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// ask makes a follower's next fetch, addressed to whom it takes for the leader.
func (c *cluster) ask(p *replica) (question, error) {
	if !p.up() {
		return question{}, fmt.Errorf("%s is down", p.name)
	}
	q, ok := p.core.NextFetch()
	if !ok {
		return question{}, fmt.Errorf("%s has nothing to fetch: %s", p.name, c.whyNot(p))
	}
	rec := p.core.Record()
	f := core.ReplicaFetch{Replica: p.id, Session: p.me.Session, StartID: p.me.StartID, DirectoryID: p.directory, LeaderEpoch: q.LeaderEpoch,
		Offset: q.Offset, LastEpoch: q.LastEpoch, LogStartOffset: q.LogStartOffset, HighWatermark: q.HighWatermark, Connection: p.connection}
	return question{q, f, rec.Leader, rec.LeaderSession}, nil
}

func (c *cluster) whyNot(p *replica) string {
	switch {
	case p.core.Role() != core.Follower:
		return "it follows nobody"
	case p.log.FlushedOffset() < p.log.EndOffset():
		return "it has to flush first"
	}
	return "it waits for a newer record"
}

var errNoAnswer = errors.New("no connection")

// reach takes a fetch to the leader that it is addressed to, and returns the answer
// with the leader's name. An out-of-range fetch is answered with the bounds of the
// leader's log.
func (c *cluster) reach(from string, q question) (leader *replica, a core.FetchResponse, err error) {
	leader = c.addressed(q.leader, q.session)
	if leader == nil || !leader.up() || c.isCut(from, leader.name) {
		return nil, a, errNoAnswer
	}
	f, err := leader.core.Fetch(c.now, q.fetch)
	if err == nil {
		a = core.FetchResponse{HighWatermark: f.HighWatermark, LogStartOffset: f.LogStartOffset, Diverging: f.Diverging}
		if a.Diverging == nil {
			a.Records = leader.log.parcel(q.request.Offset).encode()
		}
	}
	c.settle(leader)
	return leader, a, err
}

// deliver hands an answer to the process that asked.
func (c *cluster) deliver(p *replica, a answer) {
	if !p.up() {
		c.print("nobody is there to take the answer")
		return
	}
	p.core.Fetched(c.now, a.request, a.response)
	effects := p.core.Take()
	if len(effects) == 0 {
		c.note(Event{Kind: Told, Replica: p.name}, "%s drops the answer: it is not to what it asked last", p.name)
	}
	for _, e := range effects {
		if p.up() {
			c.carryOut(p, e)
		}
	}
	c.settle(p)
}

// fail tells a follower that its fetch was refused or lost.
func (c *cluster) fail(p *replica, q question, leader *replica, err error) {
	if !p.up() {
		return
	}
	if leader != nil && errors.Is(err, core.ErrOffsetOutOfRange) {
		p.core.OutOfRange(q.request, leader.log.StartOffset(), leader.log.EndOffset())
	} else {
		p.core.FetchFailed(q.request, errors.Is(err, core.ErrFencedLeaderEpoch))
	}
	c.settle(p)
}

// how says what becomes of an answer.
type how struct {
	drop, hold, quiet bool
	upto              int // records at most, if not negative
}

// refusedStep tells a follower that nobody listens any more where its leader was.
func refusedStep(c *cluster, p *replica, _ []string) error {
	p.core.LeaderEnded(c.now, p.core.Record().LeaderEpoch)
	c.settle(p)
	return nil
}

// exchange takes a fetch to its leader and what comes back to its sender. It reports
// whether the sender has everything now.
func (c *cluster) exchange(p *replica, q question, h how) (inSync bool) {
	line := fmt.Sprintf("%s fetch(%d,%d,%d)", p.name, q.request.Offset, q.request.LastEpoch, q.request.LeaderEpoch)
	sent := len(c.events) // what follows at the leader comes after it
	c.event(Event{Kind: Fetched, Replica: p.name, Peer: nameOf(q.leader), Text: line})
	leader, a, err := c.reach(p.name, q)
	c.events[sent].Missed = leader == nil
	if leader != nil {
		c.events[sent].Peer = leader.name
	}
	peer := c.events[sent].Peer
	if h.upto >= 0 {
		a.Records = firstRecords(a.Records, h.upto)
	}
	if h.quiet && a.Diverging == nil && (err == nil || leader == nil) {
		c.events = slices.Delete(c.events, sent, sent+1)
	} else {
		c.tellOfFetch(p, line, leader, a, err, h)
	}
	switch {
	case err != nil:
		c.fail(p, q, leader, err)
	case h.drop:
		c.fail(p, q, leader, errNoAnswer)
	case h.hold:
		p.held = append(p.held, answer{q.request, a, peer})
	default:
		c.deliver(p, answer{q.request, a, peer})
	}
	return err == nil && a.Diverging == nil && len(a.Records) == 0
}

// tellOfFetch prints a fetch with its answer.
func (c *cluster) tellOfFetch(p *replica, line string, leader *replica, a core.FetchResponse, err error, h how) {
	text := describe(a, err)
	mark := ""
	switch {
	case leader == nil:
	case errors.Is(err, core.ErrOffsetOutOfRange):
		text += fmt.Sprintf(" [%d, %d]", leader.log.StartOffset(), leader.log.EndOffset())
	case h.drop:
		mark = " (answer lost)"
	case h.hold && err == nil:
		mark = " (answer held)"
	}
	c.print("%s → %s%s", line, text, mark)
	if leader != nil {
		c.event(Event{Kind: Answered, Replica: p.name, Peer: leader.name, Text: text, Missed: h.drop, Held: h.hold && err == nil})
	}
}

func describe(a core.FetchResponse, err error) string {
	if err != nil {
		return err.Error()
	}
	if a.Diverging != nil {
		return fmt.Sprintf("div(%d,%d)", a.Diverging.Epoch, a.Diverging.Start)
	}
	n := len(decode(a.Records).Records)
	records := "records"
	if n == 1 {
		records = "record"
	}
	return fmt.Sprintf("%d %s, HW %d", n, records, a.HighWatermark)
}

// firstRecords cuts an answer short.
func firstRecords(b []byte, n int) []byte {
	p := decode(b)
	p.Records = p.Records[:min(n, len(p.Records))]
	return p.encode()
}

// fetchPause is the time between two fetches while time passes.
const fetchPause = 100 * time.Millisecond

// passTime lets time pass, while those named fetch.
func (c *cluster) passTime(d time.Duration, fetching []*replica) {
	step := fetchPause
	if len(fetching) == 0 {
		step = d
	}
	for end := c.now + d; c.now < end; {
		c.now = min(c.now+step, end)
		for _, p := range fetching {
			if !p.up() || p.core.Role() != core.Follower {
				continue
			}
			if q, err := c.ask(p); err == nil {
				c.exchange(p, q, how{upto: -1, quiet: true})
			}
		}
		for _, p := range c.replicas {
			if p.up() {
				p.core.Tick(c.now)
				c.settle(p)
			}
		}
		c.see()
	}
}

// latest is ListOffsets(latest) at a leader, as package replica answers it.
func (c *cluster) latest(p *replica) error {
	if !p.leads() {
		return core.ErrNotLeader
	}
	if p.core.HighWatermark() < p.core.EpochStart() {
		return core.ErrOffsetNotAvailable
	}
	c.print("latest offset %d", p.core.HighWatermark())
	return nil
}

// readFrom is a consumer's fetch at a leader: everything below the high watermark.
func (c *cluster) readFrom(p *replica, from epoch.Offset) error {
	if !p.leads() || !p.core.MayServe(c.now) {
		return core.ErrNotLeader
	}
	if from < p.log.start || from > p.log.EndOffset() {
		return core.ErrOffsetOutOfRange
	}
	var values string
	for o := from; o < p.core.HighWatermark(); o++ {
		r, _ := p.log.at(o)
		values += " " + r.Value
	}
	if values == "" {
		values = " nothing yet"
	}
	c.print("reads%s", values)
	return nil
}
