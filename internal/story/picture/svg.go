package picture

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// canvas collects the elements of a picture. Coordinates are pixels, y downwards.
type canvas struct{ b strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

func escape(s string) string {
	var b strings.Builder
	if xml.EscapeText(&b, []byte(s)) != nil {
		return "" // a strings.Builder takes everything
	}
	return b.String()
}

func (c *canvas) text(x, y int, class, s string) {
	c.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escape(s))
}

func (c *canvas) line(x1, y1, x2, y2 int, class string) {
	c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="%s"/>`, x1, y1, x2, y2, class)
}

func (c *canvas) box(x, y, w, h int, class, fill string) {
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" class="%s" style="fill:%s"/>`, x, y, w, h, class, fill)
}

// cross is the sign of what was lost or died.
func (c *canvas) cross(x, y, size int, class string) {
	c.add(`<path d="M%d %dL%d %dM%d %dL%d %d" class="%s"/>`, x-size, y-size, x+size, y+size, x-size, y+size, x+size, y-size, class)
}

// head is the head of an arrow that points right (1) or left (-1).
func (c *canvas) head(x, y, direction int, class string) {
	c.add(`<path d="M%d %dl%d -4v8z" class="%s"/>`, x, y, -8*direction, class)
}

const style = `
text{font-family:"DejaVu Sans",Verdana,Helvetica,sans-serif;font-size:12px;fill:#222}
.title{font-size:17px;font-weight:bold}.lead{font-size:13px}.say{font-style:italic;fill:#333}
.command,.off{font-family:"DejaVu Sans Mono",Menlo,Consolas,monospace}
.command{fill:#1a4a7a}.off{fill:#b00020;font-weight:bold}.small{font-size:10px;fill:#666}.mid{text-anchor:middle}
.label{font-size:11px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px}
.value{font-size:11px;text-anchor:middle}.name{font-size:14px;font-weight:bold;text-anchor:middle}
.offset{font-size:8px;fill:#666;text-anchor:middle}
.hw{fill:#00695c;font-size:10px;font-weight:bold}.leo{fill:#444;font-size:10px}
.good{fill:#1b7f3b;font-size:11px;font-weight:bold;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px}
.bad{fill:#c00020;font-size:11px;font-weight:bold;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px}
.badleft{fill:#c00020}.verdict{fill:#c00020;font-size:13px;font-weight:bold}.fine{fill:#1b7f3b;font-size:13px;font-weight:bold}
.life{stroke:#999;stroke-width:1.5}.down{stroke:#ccc;stroke-width:1.5;stroke-dasharray:2 5}
.message{stroke:#333;stroke-width:1.3}.held{stroke:#333;stroke-width:1.3;stroke-dasharray:5 3}.lostmessage{stroke:#c00020;stroke-width:1.3}
.arrow{fill:#333}.x{stroke:#c00020;stroke-width:2.5;fill:none}
.cell{stroke:#555;stroke-width:1}.gone{stroke:#c00020;stroke-width:1.3;stroke-dasharray:3 2}.odd{stroke:#c00020;stroke-width:3}.plate{stroke:none}
.pill{stroke:#555;stroke-width:1}.rule{stroke:#e6e6e6;stroke-width:1}.mark{stroke:#00695c;stroke-width:2}.end{stroke:#444;stroke-width:2}
`

// document wraps what was drawn.
func (c *canvas) document(title string, width, height int) []byte {
	var d strings.Builder
	fmt.Fprintf(&d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&d, "<title>%s</title>\n<style>%s</style>\n", escape(title), style)
	fmt.Fprintf(&d, `<rect width="%d" height="%d" style="fill:#fff"/>`+"\n", width, height)
	d.WriteString(c.b.String())
	d.WriteString("</svg>\n")
	return []byte(d.String())
}

// wrap breaks text into lines of at most width characters, at spaces.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
