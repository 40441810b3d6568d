package story

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// part plays a follower's fetches at a leader, with logs given as runs of epochs, until
// the follower has what the leader has: "part 2 0x3,2x2 0x3,1x2" is leader epoch 2 and
// a leader with three records of epoch 0 and two of epoch 2.
func (t *teller) part(args []string) error {
	if len(args) != 3 {
		return misused("it takes three arguments")
	}
	e, err := number(args[0])
	if err != nil {
		return err
	}
	leader, err := runs(args[1])
	if err != nil {
		return err
	}
	follower, err := runs(args[2])
	if err != nil {
		return err
	}
	c := newCluster(shape{replicas: 2, minISR: 1})
	out := t.cluster
	a, b := c.replicas[0], c.replicas[1]
	if err := errors.Join(c.start(a), c.start(b)); err != nil {
		return err
	}
	c.record.LeaderEpoch = epoch.LeaderEpoch(e)
	c.version++
	cache := leader.cache
	c.put(a, leader)
	c.put(b, follower)
	a.log.cache = cache // taking over must not change what the table says the leader has
	answers := c.fetchUntilInSync(b)
	verdict := "equal"
	if d := c.differences(); len(d) > 0 || a.log.EndOffset() != b.log.EndOffset() {
		verdict = "they differ"
	}
	out.print("%s: %s; follower %s, log %d to %d, leader %s", strings.Join(answers, " "), verdict, b.log.cache, b.log.start, b.log.EndOffset(), a.log.cache)
	return nil
}

// put gives a process a log that it did not write, and starts its core anew on it.
func (c *cluster) put(p *replica, l *log) {
	p.log = l
	mine, _ := c.record.Replica(p.id)
	p.me.Session, p.me.StartID = mine.Session, mine.StartID
	p.core = core.New(p.me, core.Options{}, p.log, 0, c.changeID)
	p.core.Observe(c.now, c.snapshot(), core.FromWrite)
	c.settle(p)
}

// fetchUntilInSync collects what a follower is answered: div(e,o), +n records, or out
// of range.
func (c *cluster) fetchUntilInSync(p *replica) []string {
	var answers []string
	for range 10 {
		q, err := c.ask(p)
		if err != nil {
			return append(answers, err.Error())
		}
		leader, a, err := c.reach(p.name, q)
		if err != nil {
			end := p.log.EndOffset()
			c.fail(p, q, leader, err)
			if !errors.Is(err, core.ErrOffsetOutOfRange) {
				return append(answers, err.Error())
			}
			answers = append(answers, "out-of-range")
			if p.log.EndOffset() == end {
				return append(answers, "and nothing is cut")
			}
			continue
		}
		c.deliver(p, answer{q.request, a, leader.name})
		if a.Diverging == nil {
			return append(answers, fmt.Sprintf("+%d", len(decode(a.Records).Records)))
		}
		answers = append(answers, fmt.Sprintf("div(%d,%d)", a.Diverging.Epoch, a.Diverging.Start))
	}
	return append(answers, "for ever")
}

// runs reads a log from "10:3x4,4x2": it begins at 10, with four records of epoch 3.
// "-" is an empty log. Records of the same epoch and offset are the same.
func runs(s string) (*log, error) {
	l := &log{}
	if s == "-" {
		return l, nil
	}
	if start, rest, ok := strings.Cut(s, ":"); ok {
		n, err := number(start)
		if err != nil {
			return nil, err
		}
		l.start, s = epoch.Offset(n), rest
	}
	for run := range strings.SplitSeq(s, ",") {
		first, count, ok := strings.Cut(run, "x")
		e, err1 := number(first)
		n, err2 := number(count)
		if !ok || err1 != nil || err2 != nil {
			return nil, misused("%q is no run of an epoch, like 0x3", run)
		}
		l.cache.Assign(epoch.LeaderEpoch(e), l.EndOffset())
		for range n {
			l.append(epoch.LeaderEpoch(e), fmt.Sprint("r", l.EndOffset()))
		}
	}
	return l, nil
}

// cacheStep changes or asks an epoch cache given as {0:0,1:5}.
func (t *teller) cacheStep(args []string) error {
	if len(args) < 2 {
		return misused("it takes a cache and what to do with it")
	}
	cache, err := parseCache(args[0])
	if err != nil {
		return err
	}
	numbers, err := numbers(args[2:])
	if err != nil {
		return err
	}
	if args[1] == "end-of" && len(numbers) > 1 {
		t.cluster.print("%s", endOffsets(cache, epoch.Offset(numbers[0]), numbers[1:]))
		return nil
	}
	if err := changeCache(&cache, args[1], numbers); err != nil {
		return err
	}
	t.cluster.print("%s", cache)
	return nil
}

func changeCache(cache *epoch.Cache, what string, n []int) error {
	switch {
	case what == "assign" && len(n) == 2:
		cache.Assign(epoch.LeaderEpoch(n[0]), epoch.Offset(n[1]))
	case what == "cut-end" && len(n) == 1:
		cache.TruncateFromEnd(epoch.Offset(n[0]))
	case what == "cut-start" && len(n) == 1:
		cache.TruncateFromStart(epoch.Offset(n[0]))
	case what == "load" && len(n) == 2: // log end, log start
		cache.TruncateFromEnd(epoch.Offset(n[0]))
		cache.TruncateFromStart(epoch.Offset(n[1]))
	case what == "scan":
		for offset, e := range n {
			cache.Assign(epoch.LeaderEpoch(e), epoch.Offset(offset))
		}
	case what == "clear" && len(n) == 0:
		cache.Clear()
	default:
		return misused("%q with %d numbers cannot be done with a cache", what, len(n))
	}
	return nil
}

// endOffsets answers, for a log that ends at end, where each epoch ends.
func endOffsets(cache epoch.Cache, end epoch.Offset, epochs []int) string {
	answers := make([]string, len(epochs))
	for i, e := range epochs {
		at, upTo := cache.EndOffset(epoch.LeaderEpoch(e), end)
		answers[i] = fmt.Sprintf("%d→(%d,%d)", e, at, upTo)
		if at == epoch.NoEpoch {
			answers[i] = fmt.Sprintf("%d→none", e)
		}
	}
	return strings.Join(answers, " ")
}

func parseCache(s string) (epoch.Cache, error) {
	inner, ok := strings.CutPrefix(s, "{")
	inner, ok2 := strings.CutSuffix(inner, "}")
	if !ok || !ok2 {
		return epoch.Cache{}, misused("%q is no epoch cache, like {0:0,1:5}", s)
	}
	var entries []epoch.Entry
	for pair := range strings.SplitSeq(inner, ",") {
		if pair == "" {
			continue
		}
		a, b, _ := strings.Cut(pair, ":")
		e, err1 := number(a)
		o, err2 := number(b)
		if err := errors.Join(err1, err2); err != nil {
			return epoch.Cache{}, misused("%q is no entry of an epoch cache, like 1:5", pair)
		}
		entries = append(entries, epoch.Entry{Epoch: epoch.LeaderEpoch(e), Start: epoch.Offset(o)})
	}
	cache, err := epoch.NewCache(entries)
	if err != nil {
		return cache, misused("%v", err)
	}
	return cache, nil
}

func numbers(words []string) ([]int, error) {
	out := make([]int, len(words))
	for i, w := range words {
		n, err := number(w)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// maxNumber bounds every number of a story, so that a typing error does not fill the
// memory.
const maxNumber = 10_000

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n > maxNumber || n < -1 {
		return 0, misused("%q is no number from -1 to %d", s, maxNumber)
	}
	return n, nil
}

// usageError is a command that cannot be understood.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func misused(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
