package picture

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/internal/story"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	margin     = 24
	textWidth  = 330 // of the column with the commands
	textChars  = 46
	lineHeight = 16
	messageGap = 26
)

// Render draws a story. The name stands above it.
func Render(name string, s *story.Story) []byte {
	p := &painter{lane: map[string]int{}, before: map[string]story.ReplicaState{}}
	p.columns(s)
	p.heading(name, s)
	p.top = p.y
	p.y += 30
	for _, f := range s.Frames {
		p.frame(f)
	}
	p.finishLanes()
	p.legend()
	all := &canvas{}
	all.b.WriteString(p.under.b.String())
	all.b.WriteString(p.over.b.String())
	return all.document(name, p.width, p.y+margin)
}

// painter walks down the page. What is drawn under is the lanes.
type painter struct {
	under, over canvas
	y, top      int
	width       int
	lane        map[string]int // the middle, by replica
	order       []string
	before      map[string]story.ReplicaState
	since       map[string]int // where the present stretch of a lane begins
	record      string
	epochs      []epoch.LeaderEpoch
}

// columns gives every replica a lane wide enough for its longest log.
func (p *painter) columns(s *story.Story) {
	widest := map[string]int{}
	for _, f := range s.Frames {
		for _, r := range f.Replicas {
			cut, at := cutOf(f, r.Name)
			for _, e := range f.Events {
				if e.State != nil && e.Replica == r.Name {
					widest[r.Name] = max(widest[r.Name], draw(*e.State, drawing{cut: e.Records, at: e.Offset}).width())
				}
			}
			if _, known := widest[r.Name]; !known {
				p.order = append(p.order, r.Name)
			}
			widest[r.Name] = max(widest[r.Name], draw(r, drawing{cut: cut, at: at}).width())
		}
	}
	x := margin + textWidth
	for _, name := range p.order {
		w := max(190, widest[name]+100)
		p.lane[name] = x + w/2
		x += w
	}
	p.width = max(x+margin, 860)
	p.since = map[string]int{}
}

// heading is the first comment of the story: its source and what it tells.
func (p *painter) heading(name string, s *story.Story) {
	p.y = margin + 16
	p.over.text(margin, p.y, "title", name)
	p.y += 8
	if len(s.Frames) > 0 {
		for _, line := range wrap(s.Frames[0].Comment, (p.width-2*margin)/7) {
			p.y += lineHeight + 2
			p.over.text(margin, p.y, "lead", line)
		}
	}
	for _, rule := range s.Off {
		p.y += lineHeight + 4
		p.over.text(margin, p.y, "off", "safety rule taken away: "+rule)
	}
	p.y += 12
}

// frame draws one command.
func (p *painter) frame(f story.Frame) {
	word := strings.Fields(f.Command)[0]
	if word == "cluster" {
		p.introduce(f)
		return
	}
	if word == "off" || word == "show" && f.Comment == "" {
		return
	}
	p.y += 6
	from := p.y
	p.words(f, word)
	textEnd := p.y
	p.y = from
	for _, e := range f.Events {
		p.event(e)
	}
	p.logs(f)
	p.y = max(p.y, textEnd) + 4
	p.verdict(f, word)
	p.over.line(margin, p.y, p.width-margin, p.y, "rule")
}

// introduce begins the lanes, also of replicas that come in later.
func (p *painter) introduce(f story.Frame) {
	for _, r := range f.Replicas {
		p.begin(r)
	}
	p.record = f.Record
	p.y += 10
}

func (p *painter) begin(r story.ReplicaState) {
	x := p.lane[r.Name]
	p.over.box(x-16, p.y-18, 32, 24, "pill", "#f3f3f3")
	p.over.text(x, p.y-1, "name", r.Name)
	p.since[r.Name] = p.y + 6
	p.before[r.Name] = r
}

// words writes the left column: the comment, the command, what it printed.
func (p *painter) words(f story.Frame, word string) {
	if len(f.Replicas) == 0 || p.top > 0 && f.Comment != "" {
		for _, line := range wrap(f.Comment, textChars) {
			p.y += lineHeight
			p.over.text(margin, p.y, "say", line)
		}
	}
	if word == "show" {
		p.y += 4
		return
	}
	p.y += lineHeight
	p.over.text(margin, p.y, "command", f.Command)
	if word != "check" {
		p.printed(f)
	}
	if f.Record != p.record && f.Record != "" {
		p.record = f.Record
		for _, line := range wrap("record: "+f.Record, textChars+8) {
			p.y += lineHeight - 2
			p.over.text(margin, p.y, "small", line)
		}
	}
	p.y += 4
}

// printed is the output that no mark in the lanes tells of.
func (p *painter) printed(f story.Frame) {
	drawn := map[string]bool{}
	for _, e := range f.Events {
		switch e.Kind {
		case story.Truncated, story.Acknowledged, story.Refused, story.Exited, story.Struck, story.Told, story.Alarm:
			drawn[e.Text] = e.Replica != ""
		}
	}
	for _, out := range f.Output {
		if drawn[out] || strings.Contains(out, " fetch(") && !strings.Contains(out, "on its way") {
			continue
		}
		class := "small"
		if strings.HasPrefix(out, "error:") {
			class = "badleft"
		}
		for _, line := range wrap(out, textChars) {
			p.y += lineHeight - 1
			p.over.text(margin, p.y, class, line)
		}
	}
}

// event draws a message between lanes, or writes into a lane what happened there.
func (p *painter) event(e story.Event) {
	from, to := p.lane[e.Replica], p.lane[e.Peer]
	switch e.Kind {
	case story.Fetched:
		p.arrow(from, to, strings.TrimPrefix(e.Text, e.Replica+" "), e)
	case story.Answered, story.Delivered:
		p.arrow(to, from, e.Text, e)
	default:
		p.mark(from, e)
	}
}

func (p *painter) arrow(from, to int, label string, e story.Event) {
	if from == 0 || to == 0 || from == to {
		return
	}
	p.y += messageGap
	direction, class, tip := 1, "message", to
	if to < from {
		direction = -1
	}
	switch {
	case e.Missed:
		class, tip = "lostmessage", from+(to-from)*4/5
	case e.Held:
		class, tip = "held", from+(to-from)/2
	}
	p.over.line(from, p.y, tip, p.y, class)
	middle := (from + to) / 2
	if e.Missed {
		middle = (from + tip) / 2
	}
	p.over.text(middle, p.y-5, "label", label)
	if e.Missed {
		p.over.cross(tip, p.y, 6, "x")
		return
	}
	if e.Held {
		p.over.text(tip+direction*24, p.y+4, "label", "held")
		return
	}
	p.over.head(tip, p.y, direction, "arrow")
}

// mark writes into a lane, and draws the log that a cut left.
func (p *painter) mark(x int, e story.Event) {
	text, class := markOf(e)
	if x == 0 || text == "" {
		return
	}
	for _, line := range wrap(text, 34) {
		p.y += lineHeight + 2
		if e.Kind == story.Elected {
			w := 8*len(line) + 8
			p.over.box(x-w/2, p.y-13, w, 18, "pill", colour(e.Epoch))
			p.epoch(e.Epoch)
		}
		p.over.text(x, p.y, class, line)
	}
	p.y += 4
	if e.Kind == story.Crashed || e.Kind == story.Exited {
		p.y += 8
		p.over.cross(x, p.y, 7, "x")
	}
	if e.State != nil && len(e.Records) > 0 {
		p.over.log(x, p.y+4, *e.State, drawing{cut: e.Records, at: e.Offset})
		p.y += logHeight
		p.before[e.Replica] = *e.State
	}
}

func markOf(e story.Event) (text, class string) {
	switch e.Kind {
	case story.Elected:
		return "leads epoch " + itoa(e.Epoch), "value"
	case story.Started:
		return "starts", "good"
	case story.Crashed, story.Exited, story.Struck, story.Alarm, story.Truncated:
		return e.Text, "bad"
	case story.Acknowledged:
		return "✓ " + e.Text, "good"
	case story.Told:
		return e.Text, "label"
	case story.Refused:
		if e.Replica != "" {
			return e.Text, "bad"
		}
	}
	return "", ""
}

// logs draws every log that has changed.
func (p *painter) logs(f story.Frame) {
	drawn := false
	for _, r := range f.Replicas {
		old, known := p.before[r.Name]
		if !known {
			p.y += 20
			p.begin(r)
			continue
		}
		if old.Up != r.Up {
			p.stretch(r.Name, old.Up, p.y)
		}
		cut, at := cutOf(f, r.Name)
		if len(cut) > 0 || old.End != r.End || old.Start != r.Start || r.Up && old.HighWatermark != r.HighWatermark || !reflect.DeepEqual(old.Records, r.Records) {
			p.over.log(p.lane[r.Name], p.y+4, r, drawing{cut: cut, at: at})
			drawn = true
		}
		for _, record := range r.Records {
			p.epoch(record.Epoch)
		}
		p.before[r.Name] = r
	}
	if drawn {
		p.y += logHeight
	}
}

// cutOf finds what a machine crash took from a replica's log, and where.
func cutOf(f story.Frame, name string) ([]story.Record, epoch.Offset) {
	for _, e := range f.Events {
		if e.Replica == name && len(e.Records) > 0 && e.Kind == story.Crashed {
			return e.Records, e.Offset
		}
	}
	return nil, 0
}

// stretch ends a part of a lane and begins the next.
func (p *painter) stretch(name string, up bool, y int) {
	class := "down"
	if up {
		class = "life"
	}
	p.under.line(p.lane[name], p.since[name], p.lane[name], y, class)
	p.since[name] = y
}

func (p *painter) finishLanes() {
	for _, name := range p.order {
		if r, begun := p.before[name]; begun {
			p.stretch(name, r.Up, p.y)
		}
	}
}

// verdict is what "check" found.
func (p *painter) verdict(f story.Frame, word string) {
	if word != "check" {
		return
	}
	for _, out := range f.Output {
		class := "fine"
		if !strings.HasSuffix(out, ": none") {
			class = "verdict"
		}
		p.y += lineHeight + 2
		p.over.text(margin, p.y, class, out)
	}
	p.y += 6
	if slices.ContainsFunc(f.Events, func(e story.Event) bool { return e.Kind == story.Diverged }) {
		p.differences(f)
	}
}

// differences draws all logs once more, with the records in red that others do not have.
func (p *painter) differences(f story.Frame) {
	at := map[epoch.Offset]story.Record{}
	odd := map[epoch.Offset]bool{}
	for _, r := range f.Replicas {
		for i, record := range r.Records {
			o := r.Start + epoch.Offset(i)
			other, known := at[o]
			odd[o] = odd[o] || known && (other.Epoch != record.Epoch || other.Value != record.Value)
			at[o] = record
		}
	}
	for _, r := range f.Replicas {
		p.over.log(p.lane[r.Name], p.y, r, drawing{odd: odd})
	}
	p.y += logHeight
}

func (p *painter) epoch(e epoch.LeaderEpoch) {
	if !slices.Contains(p.epochs, e) {
		p.epochs = append(p.epochs, e)
	}
}
