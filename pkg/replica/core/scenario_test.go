package core

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the scenarios into their files")

// Scenarios are stories: a file holds commands, each followed by what it printed,
// indented. testdata/README.md explains the commands.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "\noff ") && !guard.Switchable {
		t.Skip("it takes a rule away, which needs the build tag mutants: make mutants")
	}
	t.Cleanup(func() {
		for _, restore := range restores {
			restore()
		}
		restores = nil
	})
	var got strings.Builder
	var c *cluster
	for s := bufio.NewScanner(strings.NewReader(string(b))); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "    ") {
			continue // output of an earlier run
		}
		got.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if c, err = step(c, words); err != nil {
			fmt.Fprintf(&c.out, "error: %v\n", err)
		}
		for out := range strings.Lines(c.out.String()) {
			got.WriteString("    " + out)
		}
		c.out.Reset()
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != string(b) {
		t.Errorf("the story goes differently (run with -rewrite and look at the change):\n%s", got.String())
	}
}

// step runs one command.
func step(c *cluster, words []string) (*cluster, error) {
	if words[0] == "cluster" {
		n, minISR := number(words[1]), number(words[2])
		return newCluster(n, minISR), nil
	}
	if c == nil {
		return newCluster(1, 1), errors.New("begin with: cluster REPLICAS MIN-ISR")
	}
	var p *peer
	if len(words) > 1 {
		p = c.peer(words[1])
	}
	switch words[0] {
	case "off":
		return c, switchOff(words[1])
	case "show":
		c.show()
		return c, nil
	case "check":
		c.check()
		return c, nil
	case "after":
		d, err := time.ParseDuration(words[1])
		c.now += d
		c.tick()
		return c, err
	case "see":
		c.see()
		return c, nil
	}
	if p == nil {
		return c, fmt.Errorf("%q: no such command or replica", strings.Join(words, " "))
	}
	return c, peerStep(c, p, words[0], words[2:])
}

func peerStep(c *cluster, p *peer, command string, args []string) error {
	switch command {
	case "start":
		err := c.start(p)
		c.see()
		return err
	case "crash":
		c.stop(p)
		if len(args) == 2 && args[0] == "keep" { // a machine crash: the tail was not durable
			p.log.truncate(epoch.Offset(number(args[1])))
			p.directory[1]++
		}
		if len(args) == 2 && args[0] == "keep-promise" { // the tail is lost, and the replica does not know
			p.log.truncate(epoch.Offset(number(args[1])))
		}
		return nil
	case "checkpoint":
		p.checkpoint = p.core.HighWatermark()
		return nil
	case "elect":
		return c.elect(p, len(args) > 0 && args[0] == "unclean")
	case "produce", "produce1":
		return produceStep(c, p, command, args)
	case "fetch":
		return fetchStep(c, p, args)
	case "deliver":
		if len(p.held) == 0 {
			return errors.New("nothing is held")
		}
		h := p.held[0]
		p.held = p.held[1:]
		c.deliver(p, h)
		return nil
	case "latest":
		return c.latest(p)
	}
	return fmt.Errorf("no such command: %s", command)
}

func produceStep(c *cluster, p *peer, command string, args []string) error {
	acks := AcksAll
	if command == "produce1" {
		acks = AcksOne
	}
	for _, a := range args {
		prefix, count, repeated := strings.Cut(a, "*")
		if !repeated {
			if err := c.produce(p, a, acks); err != nil {
				return err
			}
			continue
		}
		for i := range number(count) {
			if err := c.produce(p, fmt.Sprint(prefix, i), AcksOne); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchStep: fetch NAME [drop | hold | until-in-sync | upto N]
func fetchStep(c *cluster, p *peer, args []string) error {
	how := ""
	if len(args) > 0 {
		how = args[0]
	}
	for round := 0; ; round++ {
		q, a, err := c.ask(p)
		fmt.Fprintf(&c.out, "%s fetch(%d,%d,%d)", p.name, q.Offset, q.LastEpoch, q.LeaderEpoch)
		if err != nil {
			fmt.Fprintf(&c.out, " → %v\n", err)
			p.core.FetchFailed(q, errors.Is(err, ErrFencedLeaderEpoch))
			c.settle(p)
			return nil
		}
		if how == "upto" {
			a.Records = prefix(a.Records, number(args[1]))
		}
		switch {
		case a.Diverging != nil:
			fmt.Fprintf(&c.out, " → div(%d,%d)", a.Diverging.Epoch, a.Diverging.Start)
		default:
			fmt.Fprintf(&c.out, " → %d records, HW %d", countRecords(a.Records), a.HighWatermark)
		}
		switch how {
		case "drop":
			c.out.WriteString(" (answer lost)\n")
			p.core.FetchFailed(q, false)
			c.settle(p)
			return nil
		case "hold":
			c.out.WriteString(" (answer held)\n")
			p.held = append(p.held, heldResponse{q, a})
			return nil
		}
		c.out.WriteString("\n")
		c.deliver(p, heldResponse{q, a})
		inSync := a.Diverging == nil && len(a.Records) == 0
		if how != "until-in-sync" || inSync || round >= 5 {
			return nil
		}
	}
}

func countRecords(b []byte) int { return (&memoryLog{}).appendEncoded(b, 1<<30) }

func prefix(b []byte, n int) []byte {
	l := &memoryLog{}
	l.appendEncoded(b, 1<<30)
	l.entries = l.entries[:min(n, len(l.entries))]
	return l.encode(0)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("scenario: %q is not a number", s))
	}
	return n
}

func switchOff(name string) error {
	g, ok := guard.Parse(name)
	if !ok {
		return fmt.Errorf("no guard %q", name)
	}
	restores = append(restores, guard.SwitchOff(g))
	return nil
}

// restores puts back what a story took away.
var restores []func()

// see lets everybody who is up observe the record, by watch.
func (c *cluster) see() {
	for _, p := range c.peers {
		if p.core != nil {
			p.core.Observe(c.now, c.snapshot(), FromWatch)
			c.settle(p)
		}
	}
}

func (c *cluster) tick() {
	for _, p := range c.peers {
		if p.core != nil {
			p.core.Tick(c.now)
			c.settle(p)
		}
	}
	c.see()
}

func (c *cluster) elect(p *peer, unclean bool) error {
	r := c.record.Clone()
	if unclean {
		r.ISR = []epoch.ReplicaID{p.id}
	}
	r, err := epoch.Elect(r, epoch.Election{Reason: epoch.ReasonProcessDied, Live: []epoch.ReplicaID{p.id}, LeaderEnded: true, Change: c.changeID()})
	if err != nil {
		return err
	}
	c.commit(r)
	c.see()
	return nil
}

func (c *cluster) latest(p *peer) error {
	if p.core.HighWatermark() < p.core.EpochStart() {
		return ErrOffsetNotAvailable
	}
	fmt.Fprintf(&c.out, "latest offset %d\n", p.core.HighWatermark())
	return nil
}

func (c *cluster) show() {
	fmt.Fprintf(&c.out, "record: leader %s epoch %d ISR %s\n", c.nameOf(c.record.Leader), c.record.LeaderEpoch, c.names(c.record.ISR))
	for _, p := range c.peers {
		role, hw := "down", "-"
		if p.core != nil {
			role, hw = p.core.Role().String(), fmt.Sprint(p.core.HighWatermark())
		}
		fmt.Fprintf(&c.out, "%s %-8s LEO %-3d HW %-3s %-16s %s\n", p.name, role, p.log.EndOffset(), hw, p.log.cache, p.log)
	}
}

func (c *cluster) nameOf(id epoch.ReplicaID) string {
	if id == epoch.NoReplica {
		return "none"
	}
	return c.peers[id].name
}

func (c *cluster) names(ids []epoch.ReplicaID) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(c.nameOf(id))
	}
	return "{" + b.String() + "}"
}

// check says whether what was acknowledged is in every live log up to its end, and
// whether the logs are equal as far as they go.
func (c *cluster) check() {
	lost, differ := []string{}, []string{}
	for _, a := range c.acked {
		for _, p := range c.peers {
			if p.core == nil || p.core.Role() != Leader {
				continue
			}
			if i := a.offset - p.log.start; i < 0 || int(i) >= len(p.log.entries) || p.log.entries[i].value != a.value {
				lost = append(lost, fmt.Sprintf("%s at offset %d", a.value, a.offset))
			}
		}
	}
	for i, p := range c.peers {
		for _, q := range c.peers[i+1:] {
			for o := range min(len(p.log.entries), len(q.log.entries)) {
				if p.log.entries[o] != q.log.entries[o] {
					differ = append(differ, fmt.Sprintf("%s and %s at offset %d", p.name, q.name, o))
					break
				}
			}
		}
	}
	fmt.Fprintf(&c.out, "acknowledged records lost: %s\nlogs differ: %s\n", orNone(lost), orNone(differ))
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
