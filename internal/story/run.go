package story

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-io/tidemark/internal/guard"
)

// ErrNeedsMutants says that a story takes rules away, which this build cannot do.
var ErrNeedsMutants = errors.New("the story takes a safety rule away: build with -tags mutants")

// Story is a file that was played.
type Story struct {
	// Text is the file with the output of this run.
	Text string
	// Frames are its commands, in order.
	Frames []Frame
	// Off names the safety rules that were taken away.
	Off []string
}

// outputIndent stands before what a command printed.
const outputIndent = "    "

// Run plays a story. What a rule refuses is part of the story and is printed; an error
// is a file that cannot be played, with the line to look at, or ErrNeedsMutants.
func Run(text string) (*Story, error) {
	t := &teller{story: &Story{}}
	defer t.restore()
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := t.line(number, strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
	t.story.Text = t.text.String()
	return t.story, nil
}

// teller plays a story line by line.
type teller struct {
	story    *Story
	text     strings.Builder
	comment  []string
	cluster  *cluster
	restores []func()
}

func (t *teller) restore() {
	for _, f := range t.restores {
		f()
	}
}

func (t *teller) line(number int, line string) error {
	if strings.HasPrefix(line, outputIndent) {
		return nil // output of an earlier run
	}
	t.text.WriteString(line + "\n")
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return nil
	case strings.HasPrefix(line, "#"):
		t.comment = append(t.comment, strings.TrimSpace(strings.TrimLeft(line, "#")))
		return nil
	}
	if err := t.play(words); err != nil {
		if errors.Is(err, ErrNeedsMutants) {
			return err
		}
		return fmt.Errorf("line %d: %s: %w", number, line, err)
	}
	t.finish(Frame{Line: number, Command: line})
	return nil
}

// play runs one command. Only a command that cannot be understood is an error.
func (t *teller) play(words []string) error {
	cmd, ok := commands[words[0]]
	if !ok {
		return fmt.Errorf("no such command; there are: %s", strings.Join(commandNames(), " "))
	}
	if t.cluster == nil {
		t.cluster = newCluster(shape{})
	}
	if len(t.cluster.replicas) == 0 && cmd.needsCluster {
		return errors.New("begin with: cluster REPLICAS MIN-ISR")
	}
	err := cmd.run(t, words[1:])
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return fmt.Errorf("%w; use: %s", err, cmd.usage)
	case errors.Is(err, ErrNeedsMutants):
		return err
	case err != nil:
		t.cluster.note(Event{Kind: Refused}, "error: %v", err)
	}
	t.cluster.see()
	return nil
}

// finish writes down what the command printed.
func (t *teller) finish(f Frame) {
	c := t.cluster
	for out := range strings.Lines(c.out.String()) {
		t.text.WriteString(outputIndent + out)
		f.Output = append(f.Output, strings.TrimSuffix(out, "\n"))
	}
	f.Comment = strings.Join(t.comment, "\n")
	f.Events = c.events
	if len(c.replicas) > 0 {
		f.Record, f.Replicas = c.recordLine(), c.states()
	}
	t.story.Frames = append(t.story.Frames, f)
	t.comment, c.events = nil, nil
	c.out.Reset()
}

// takeAway switches a safety rule off until the story ends.
func (t *teller) takeAway(name string) error {
	g, ok := guard.Parse(name)
	if !ok {
		return misused("no safety rule is called %q", name)
	}
	if !guard.Switchable {
		return ErrNeedsMutants
	}
	t.restores = append(t.restores, guard.SwitchOff(g))
	t.story.Off = append(t.story.Off, name)
	return nil
}
