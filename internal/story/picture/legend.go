package picture

import (
	"slices"
	"strconv"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func itoa(e epoch.LeaderEpoch) string { return strconv.Itoa(int(e)) }

// legend explains colours and signs, as far as the story uses them.
func (p *painter) legend() {
	if len(p.order) == 0 {
		return
	}
	p.y += 30
	x := margin
	slices.Sort(p.epochs)
	for _, e := range p.epochs {
		p.over.box(x, p.y-12, 18, 16, "cell", colour(e))
		p.over.text(x+24, p.y, "", "epoch "+itoa(e))
		x += 92
	}
	p.over.line(x+4, p.y-12, x+4, p.y+4, "mark")
	p.over.text(x+12, p.y, "hw", "HW: committed below")
	x += 140
	p.over.line(x+4, p.y-12, x+4, p.y+4, "end")
	p.over.text(x+12, p.y, "leo", "LEO: the log's end")
	x += 126
	p.over.box(x, p.y-12, 18, 16, "gone", "#ffe3e6")
	p.over.text(x+24, p.y, "", "cut")
	p.y += 22
	p.over.text(margin, p.y, "small", "fetch(offset, last epoch in the log, leader epoch); div(epoch, end): your history leaves mine where that epoch ends; ISR: who holds everything below HW")
}
