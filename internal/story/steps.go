package story

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// produceTimeout is how long a produce request with acks=all waits.
const produceTimeout = 30 * time.Second

func startStep(c *cluster, p *replica, args []string) error {
	if len(args) == 1 && args[0] == "beside" {
		if !p.up() {
			return fmt.Errorf("%s is down", p.name)
		}
		z := p.zombie()
		c.replicas = append(c.replicas, z)
		c.inheritCuts(p.name, z.name)
	} else if len(args) > 0 {
		return misused("what is %q?", args[0])
	}
	return c.start(p)
}

func stopStep(c *cluster, p *replica, _ []string) error {
	if !p.up() {
		return fmt.Errorf("%s is down", p.name)
	}
	p.core.Stop(c.now)
	c.settle(p)
	c.see()
	state := "must wait"
	if p.up() && p.core.Released() {
		state = "may end"
	}
	c.print("%s %s", p.name, state)
	return nil
}

func crashStep(c *cluster, p *replica, args []string) error {
	text := p.name + " dies"
	var gone []Record
	if len(args) == 2 {
		n, err := number(args[1])
		if err != nil {
			return err
		}
		switch args[0] {
		case "keep": // a machine crash: the tail was not durable
			p.breakPromise()
		case "keep-promise": // the tail is lost, and the replica does not know
		default:
			return misused("what is %q?", args[0])
		}
		text += fmt.Sprintf(" with its machine, what is on its disk ends at %d", n)
		gone = p.log.truncate(epoch.Offset(n))
	} else if len(args) > 0 {
		return misused("what is left of the log?")
	}
	c.stop(p)
	c.event(Event{Kind: Crashed, Replica: p.name, Text: text, Records: gone, Offset: p.log.EndOffset()})
	return nil
}

func volumeStep(_ *cluster, p *replica, args []string) error {
	if len(args) != 1 {
		return misused("what with the volume?")
	}
	switch args[0] {
	case "save":
		p.saved = p.log.copy()
		return nil
	case "new", "restore":
		if p.up() {
			return fmt.Errorf("%s is up", p.name)
		}
		switch {
		case args[0] == "new":
			p.log.restart(0)
			p.volume[1]++
		case p.saved != nil:
			p.log = p.saved.copy()
		default:
			return errors.New("the volume was not saved")
		}
		p.checkpoint = 0
		p.breakPromise() // no proof holds there: no mark at all, or that of another session
		return nil
	}
	return misused("what is %q?", args[0])
}

func checkpointStep(_ *cluster, p *replica, _ []string) error {
	if !p.up() {
		return fmt.Errorf("%s is down", p.name)
	}
	p.checkpoint = p.core.HighWatermark()
	return nil
}

func flushStep(c *cluster, p *replica, _ []string) error {
	p.log.flushed = p.log.EndOffset()
	if p.up() {
		p.core.Flushed()
		c.settle(p)
	}
	return nil
}

func writeStep(c *cluster, p *replica, args []string) error {
	if len(args) != 1 || !slices.Contains([]string{"hold", "land", "answer", "timeout", "pass"}, args[0]) {
		return misused("what with the writes?")
	}
	return c.writeStep(p, args[0])
}

func electStep(c *cluster, p *replica, args []string) error {
	unclean, stale := false, false
	for _, a := range args {
		switch a {
		case "unclean":
			unclean = true
		case "as-read":
			stale = true
		default:
			return misused("what is %q?", a)
		}
	}
	return c.elect(p, unclean, stale)
}

func produceStep(c *cluster, p *replica, args []string) error {
	return c.produceAll(p, args, core.AcksAll)
}
func produce1Step(c *cluster, p *replica, args []string) error {
	return c.produceAll(p, args, core.AcksOne)
}

// produceAll appends batches: x is one record, x*3 three batches of one record, x+3 one
// batch of three.
func (c *cluster) produceAll(p *replica, args []string, acks int16) error {
	if len(args) == 0 {
		return misused("which records?")
	}
	for _, a := range args {
		batches, err := batchesOf(a)
		if err != nil {
			return err
		}
		for _, values := range batches {
			if err := c.spend(len(values)); err != nil {
				return err
			}
			if err := c.produce(p, values, acks); err != nil {
				return err
			}
		}
	}
	return nil
}

func batchesOf(word string) ([][]string, error) {
	i := strings.IndexAny(word, "*+")
	if i < 0 {
		return [][]string{{word}}, nil
	}
	n, err := number(word[i+1:])
	if err != nil {
		return nil, err
	}
	var values []string
	var single [][]string
	for k := range max(n, 0) {
		v := fmt.Sprint(word[:i], k)
		values = append(values, v)
		single = append(single, []string{v})
	}
	if word[i] == '+' {
		return [][]string{values}, nil
	}
	return single, nil
}

// produce appends one batch at a leader.
func (c *cluster) produce(p *replica, values []string, acks int16) error {
	if !p.up() {
		return fmt.Errorf("%s is down", p.name)
	}
	e, err := p.core.AdmitProduce(c.now, acks)
	if err != nil {
		return err
	}
	p.log.append(e, values...)
	c.event(Event{Kind: Produced, Replica: p.name, Text: strings.Join(values, " "), Epoch: e})
	p.core.Appended()
	if acks == core.AcksAll {
		c.tokens++
		p.waiting[c.tokens] = values[len(values)-1]
		p.core.Await(c.tokens, p.log.EndOffset(), c.now+produceTimeout)
	}
	c.settle(p)
	return nil
}

func deleteStep(c *cluster, p *replica, args []string) error {
	if len(args) != 1 {
		return misused("up to which offset?")
	}
	n, err := number(args[0])
	if err != nil {
		return err
	}
	if !p.leads() {
		return core.ErrNotLeader
	}
	if epoch.Offset(n) > p.core.HighWatermark() {
		return fmt.Errorf("%w: nothing above the high watermark %d is deleted", core.ErrOffsetOutOfRange, p.core.HighWatermark())
	}
	p.log.raiseStart(epoch.Offset(n))
	c.settle(p)
	return nil
}

func fetchStep(c *cluster, p *replica, args []string) error {
	h, rounds, send, err := fetchHow(args)
	if err != nil {
		return err
	}
	for range rounds {
		q, err := c.ask(p)
		if err != nil {
			return err
		}
		if send {
			p.sent = append(p.sent, q)
			c.print("%s fetch(%d,%d,%d) is on its way", p.name, q.request.Offset, q.request.LastEpoch, q.request.LeaderEpoch)
			return nil
		}
		if c.exchange(p, q, h) || !p.up() {
			return nil
		}
	}
	return nil
}

func fetchHow(args []string) (h how, rounds int, send bool, err error) {
	h, rounds = how{upto: -1}, 1
	if len(args) == 0 {
		return h, rounds, false, nil
	}
	switch {
	case args[0] == "drop":
		h.drop = true
	case args[0] == "hold":
		h.hold = true
	case args[0] == "send":
		send = true
	case args[0] == "until-in-sync":
		rounds = 8
	case args[0] == "upto" && len(args) == 2:
		h.upto, err = number(args[1])
	default:
		err = misused("what is %q?", strings.Join(args, " "))
	}
	return h, rounds, send, err
}

// arriveStep takes the oldest fetch that was sent to whom it was addressed.
func arriveStep(c *cluster, p *replica, args []string) error {
	h, rounds, send, err := fetchHow(args)
	if err != nil {
		return err
	}
	if send || rounds > 1 {
		return misused("what is %q?", args[0])
	}
	if len(p.sent) == 0 {
		return fmt.Errorf("no fetch of %s is on its way", p.name)
	}
	q := p.sent[0]
	p.sent = p.sent[1:]
	c.exchange(p, q, h)
	c.see()
	return nil
}

func deliverStep(c *cluster, p *replica, _ []string) error {
	if len(p.held) == 0 {
		return errors.New("nothing is held")
	}
	a := p.held[0]
	p.held = p.held[1:]
	c.event(Event{Kind: Delivered, Replica: p.name, Peer: a.from, Text: describe(a.response, nil)})
	c.deliver(p, a)
	return nil
}

func readStep(c *cluster, p *replica, args []string) error {
	if len(args) != 1 {
		return misused("from which offset?")
	}
	n, err := number(args[0])
	if err != nil {
		return err
	}
	return c.readFrom(p, epoch.Offset(n))
}
