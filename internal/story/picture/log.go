package picture

import (
	"fmt"

	"github.com/tidemark-io/tidemark/internal/story"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// colours of leader epochs, light enough for text.
var colours = []string{"#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9fb5", "#ffef8a", "#9fded3", "#d9c3a5"}

func colour(e epoch.LeaderEpoch) string {
	if e < 0 {
		return "#eeeeee"
	}
	return colours[int(e)%len(colours)]
}

const (
	cellWidth  = 34
	wideWidth  = 92
	cellHeight = 22
	// single is how many records of a log are drawn one by one; in a longer one, runs
	// of an epoch are drawn together.
	single = 5
)

// cell is one record, or a run of records of one epoch.
type cell struct {
	from  epoch.Offset
	count int
	epoch epoch.LeaderEpoch
	label string
	width int
}

// cells groups records for drawing.
func cells(start epoch.Offset, records []story.Record, together bool) []cell {
	var out []cell
	first := ""
	for i, r := range records {
		if n := len(out); together && n > 0 && out[n-1].epoch == r.Epoch {
			c := &out[n-1]
			c.count++
			c.width = wideWidth
			c.label = fmt.Sprintf("%s … %s", first, r.Value)
			continue
		}
		first = r.Value
		out = append(out, cell{from: start + epoch.Offset(i), count: 1, epoch: r.Epoch, label: r.Value, width: max(cellWidth, 8*len(r.Value)+8)})
	}
	return out
}

func widthOf(cs []cell) int {
	w := 0
	for _, c := range cs {
		w += c.width
	}
	return max(w, cellWidth)
}

// drawing is what is drawn of a log: its records, those that were cut from it, and which
// offsets hold what others do not.
type drawing struct {
	cut []story.Record
	at  epoch.Offset // of the first that was cut
	odd map[epoch.Offset]bool

	kept, gone []cell
}

func draw(s story.ReplicaState, d drawing) drawing {
	together := len(s.Records)+len(d.cut) > single
	d.kept, d.gone = cells(s.Start, s.Records, together), cells(d.at, d.cut, together)
	return d
}

func (d drawing) width() int {
	w := widthOf(d.kept)
	if len(d.gone) > 0 {
		w += widthOf(d.gone)
	}
	return w
}

// x finds where an offset lies, as the distance from the log's left end.
func (d drawing) x(o epoch.Offset) int {
	x := 0
	for _, c := range d.kept {
		if o < c.from+epoch.Offset(c.count) {
			return x + max(0, int(o-c.from))*c.width/c.count
		}
		x += c.width
	}
	return x
}

// logHeight is what a drawn log needs, marks included.
const logHeight = 66

// log draws a replica's log around the middle of its lane, with its marks: the high
// watermark below, the log end above.
func (c *canvas) log(middle, y int, s story.ReplicaState, d drawing) {
	d = draw(s, d)
	left := middle - d.width()/2
	top := y + 24
	c.box(left-4, top-23, d.width()+8, cellHeight+38, "plate", "#fff")
	c.cells(left, top, d.kept, "cell")
	c.outline(left, top, d)
	if len(d.kept) == 0 {
		c.box(left, top, cellWidth, cellHeight, "cell", "#fafafa")
		c.text(left+cellWidth/2, top+15, "offset", "empty")
	}
	end := left + d.x(s.End)
	if len(d.gone) > 0 {
		from := left + widthOf(d.kept)
		c.cells(from, top, d.gone, "gone")
		c.line(from, top+cellHeight/2, from+widthOf(d.gone), top+cellHeight/2, "x")
	}
	c.line(end, top-21, end, top+cellHeight+3, "end")
	c.text(end+4, top-13, "leo", fmt.Sprintf("LEO %d", s.End))
	if s.Up {
		hw := left + d.x(s.HighWatermark)
		c.line(hw, top, hw, top+cellHeight+6, "mark")
		c.add(`<path d="M%d %dl-4 7h8z" style="fill:#00695c"/>`, hw, top+cellHeight+2)
		c.text(hw+6, top+cellHeight+11, "hw", fmt.Sprintf("HW %d", s.HighWatermark))
	}
}

// outline frames in red what others do not have.
func (c *canvas) outline(x, y int, d drawing) {
	for _, cell := range d.kept {
		for o := cell.from; o < cell.from+epoch.Offset(cell.count); o++ {
			if d.odd[o] {
				c.box(x, y, cell.width, cellHeight, "odd", "none")
				break
			}
		}
		x += cell.width
	}
}

func (c *canvas) cells(x, y int, cs []cell, class string) {
	for _, cell := range cs {
		fill := colour(cell.epoch)
		if class == "gone" {
			fill = "#ffe3e6"
		}
		c.box(x, y, cell.width, cellHeight, class, fill)
		c.text(x+cell.width/2, y+15, "value", cell.label)
		at := fmt.Sprint(cell.from)
		if cell.count > 1 {
			at = fmt.Sprintf("%d–%d", cell.from, cell.from+epoch.Offset(cell.count)-1)
		}
		c.text(x+cell.width/2, y-3, "offset", at)
		x += cell.width
	}
}
