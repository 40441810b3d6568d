package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Script is a run in the form in which it is kept: its shape in JSON, then its steps, a
// line each. Lines that begin with # tell what it shows.
//
// A script names its moves, so it outlives changes of their order and of what seeds
// draw; it may lose its meaning when a move itself changes.
func Script(c Config, steps []Step, comment string) (string, error) {
	shape, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the shape of the run: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(comment) {
		b.WriteString("# " + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.Write(append(shape, '\n'))
	for _, s := range steps {
		b.WriteString(s.String() + "\n")
	}
	return b.String(), nil
}

// ParseScript reads a Script.
func ParseScript(text string) (Config, []Step, error) {
	var c Config
	var steps []Step
	shaped := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !shaped:
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				return c, nil, fmt.Errorf("the shape of the run: %w", err)
			}
			shaped = true
		default:
			s, err := parseStep(line)
			if err != nil {
				return c, nil, err
			}
			steps = append(steps, s)
		}
	}
	return c, steps, nil
}

func parseStep(line string) (Step, error) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return Step{}, fmt.Errorf("step %q has no seed", line)
	}
	seed, err := strconv.ParseUint(line[i+1:], 10, 64)
	if err != nil {
		return Step{}, fmt.Errorf("step %q: %w", line, err)
	}
	for n, m := range moves {
		if m.name == line[:i] {
			return Step{Move: uint8(n), Seed: seed}, nil
		}
	}
	return Step{}, fmt.Errorf("step %q: there is no such move", line)
}
