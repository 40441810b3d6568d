package story

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// command is one word of the language.
type command struct {
	usage        string
	needsCluster bool
	run          func(t *teller, args []string) error
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"cluster": {"cluster REPLICAS MIN-ISR [first-epoch E] [every-batch]", false, (*teller).newCluster},
		"off":     {"off RULE", false, (*teller).off},
		"part":    {"part LEADER-EPOCH LEADER-RUNS FOLLOWER-RUNS", false, (*teller).part},
		"cache":   {"cache {E:O,…} assign E O | end-of LOG-END E… | cut-end O | cut-start O | load LOG-END LOG-START | scan E… | clear", false, (*teller).cacheStep},

		"show":   {"show", true, func(t *teller, _ []string) error { t.cluster.show(); return nil }},
		"check":  {"check", true, func(t *teller, _ []string) error { t.cluster.check(); return nil }},
		"after":  {"after DURATION [REPLICA…]", true, (*teller).after},
		"cut":    {"cut REPLICA REPLICA|api|watch…", true, (*teller).cut},
		"heal":   {"heal REPLICA REPLICA|api|watch…", true, (*teller).heal},
		"record": {"record save|restore|read", true, (*teller).recordCommand},
		"assign": {"assign REPLICAS MIN-ISR", true, (*teller).assign},

		"switchover": {"switchover", true, func(t *teller, _ []string) error {
			return t.cluster.change(epoch.RequestSwitchover(t.cluster.record, epoch.SwitchoverRequest{To: epoch.NoReplica, Reason: "asked for", Change: t.cluster.changeID()}))
		}},
		"last-known": {"last-known", true, func(t *teller, _ []string) error {
			c := t.cluster
			return c.change(epoch.ElectLastKnown(c.record, c.live(), c.changeID(), time.Time{}))
		}},

		"ask-reports": {"ask-reports", true, func(t *teller, _ []string) error {
			return t.cluster.change(epoch.AskReports(t.cluster.record, round))
		}},
		"recover": {"recover", true, func(t *teller, _ []string) error {
			c := t.cluster
			return c.change(epoch.Recover(c.record, epoch.RecoveryRequest{PartitionEpoch: c.record.PartitionEpoch, Round: round, Change: c.changeID()}))
		}},

		"start":      {"start REPLICA [beside]", true, onReplica(startStep)},
		"stop":       {"stop REPLICA", true, onReplica(stopStep)},
		"crash":      {"crash REPLICA [keep N | keep-promise N]", true, onReplica(crashStep)},
		"volume":     {"volume REPLICA new|save|restore", true, onReplica(volumeStep)},
		"checkpoint": {"checkpoint REPLICA", true, onReplica(checkpointStep)},
		"flush":      {"flush REPLICA", true, onReplica(flushStep)},
		"write":      {"write REPLICA hold|land|answer|timeout|pass", true, onReplica(writeStep)},
		"elect":      {"elect REPLICA [unclean] [as-read]", true, onReplica(electStep)},
		"produce":    {"produce REPLICA VALUE…", true, onReplica(produceStep)},
		"produce1":   {"produce1 REPLICA VALUE…", true, onReplica(produce1Step)},
		"delete":     {"delete REPLICA OFFSET", true, onReplica(deleteStep)},
		"fetch":      {"fetch REPLICA [drop | hold | send | upto N | until-in-sync]", true, onReplica(fetchStep)},
		"refused":    {"refused REPLICA", true, onReplica(refusedStep)},
		"arrive":     {"arrive REPLICA [drop | hold]", true, onReplica(arriveStep)},
		"deliver":    {"deliver REPLICA", true, onReplica(deliverStep)},
		"latest":     {"latest REPLICA", true, onReplica(func(c *cluster, p *replica, _ []string) error { return c.latest(p) })},
		"read":       {"read REPLICA OFFSET", true, onReplica(readStep)},
	}
}

// round is the round of reports that a recovery goes by.
const round = "round"

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// Commands lists how each command is written, in order of name.
func Commands() []string {
	var out []string
	for _, n := range commandNames() {
		out = append(out, commands[n].usage)
	}
	return out
}

// onReplica makes a command of a step whose first word names a replica.
func onReplica(step func(*cluster, *replica, []string) error) func(*teller, []string) error {
	return func(t *teller, args []string) error {
		if len(args) == 0 {
			return misused("which replica?")
		}
		p := t.cluster.replica(args[0])
		if p == nil {
			return misused("there is no replica %s", args[0])
		}
		return step(t.cluster, p, args[1:])
	}
}

func (t *teller) newCluster(args []string) error {
	if len(args) < 2 {
		return misused("how many replicas, and which min ISR?")
	}
	n, err1 := number(args[0])
	minISR, err2 := number(args[1])
	if err := errors.Join(err1, err2); err != nil || n < 1 || n > 9 || minISR < 1 {
		return misused("%s replicas with min ISR %s: from 1 to 9, and at least 1", args[0], args[1])
	}
	s := shape{replicas: n, minISR: minISR}
	for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
		switch {
		case rest[0] == "every-batch":
			s.everyBatch = true
		case rest[0] == "first-epoch" && len(rest) > 1:
			e, err := number(rest[1])
			if err != nil {
				return err
			}
			s.firstEpoch, rest = epoch.LeaderEpoch(e), rest[1:]
		default:
			return misused("what is %q?", rest[0])
		}
	}
	t.cluster = newCluster(s)
	return nil
}

func (t *teller) off(args []string) error {
	if len(args) != 1 {
		return misused("which rule?")
	}
	return t.takeAway(args[0])
}

// maxPause bounds the time that one command lets pass.
const maxPause = 5 * time.Minute

func (t *teller) after(args []string) error {
	if len(args) == 0 {
		return misused("how long?")
	}
	d, err := time.ParseDuration(args[0])
	if err != nil || d <= 0 || d > maxPause {
		return misused("%q is no duration up to %v, like 500ms or 2s", args[0], maxPause)
	}
	var fetching []*replica
	for _, name := range args[1:] {
		p := t.cluster.replica(name)
		if p == nil {
			return misused("there is no replica %s", name)
		}
		fetching = append(fetching, p)
	}
	if err := t.cluster.spend(1 + int(d/fetchPause)*len(fetching)); err != nil {
		return err
	}
	t.cluster.passTime(d, fetching)
	return nil
}

// ends finds the two sides of a cut.
func (t *teller) ends(args []string) (*replica, []string, error) {
	if len(args) < 2 {
		return nil, nil, misused("from what?")
	}
	p := t.cluster.replica(args[0])
	for _, other := range args {
		if other != api && other != watch && t.cluster.replica(other) == nil {
			return nil, nil, misused("there is no replica %s", other)
		}
	}
	if p == nil {
		return nil, nil, misused("there is no replica %s", args[0])
	}
	return p, args[1:], nil
}

func (t *teller) cut(args []string) error {
	p, others, err := t.ends(args)
	if err != nil {
		return err
	}
	for _, other := range others {
		t.cluster.cuts[[2]string{p.name, other}] = true
		if q := t.cluster.replica(other); q != nil {
			t.cluster.disconnect(p, other)
			t.cluster.disconnect(q, p.name)
		}
	}
	return nil
}

func (t *teller) heal(args []string) error {
	p, others, err := t.ends(args)
	if err != nil {
		return err
	}
	for _, other := range others {
		delete(t.cluster.cuts, [2]string{p.name, other})
		delete(t.cluster.cuts, [2]string{other, p.name})
	}
	t.cluster.observe(p)
	return nil
}

func (t *teller) recordCommand(args []string) error {
	if len(args) != 1 || !slices.Contains([]string{"save", "restore", "read"}, args[0]) {
		return misused("what with the record?")
	}
	return t.cluster.recordStep(args[0])
}

func (t *teller) assign(args []string) error {
	if len(args) != 2 || strings.Trim(args[0], "ABCDEFGHI") != "" {
		return misused("which replicas, written like ABD, and which min ISR?")
	}
	minISR, err := number(args[1])
	if err != nil {
		return err
	}
	return t.cluster.assign(args[0], minISR)
}
