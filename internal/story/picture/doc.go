// Package picture draws a story as one SVG file without anything outside: time runs
// downwards, and every replica has a lane with its log.
//
// A record is a box in the colour of the leader epoch that wrote it; long runs of one
// epoch are one box. The log end (LEO) and the high watermark (HW) are marks on the log.
// Fetches and their answers are arrows, dashed while they are held back, crossed when
// they are lost. A lane is dashed while its process is down. Red is what should not be:
// crashes, cuts with the records that they took, records lost, logs that differ.
//
// A log is drawn again only where it has changed. The command "show" draws nothing:
// the picture shows all the time. A story of tables is drawn as text.
//
// [Render] is the only entry; picture.go lays out, log.go draws logs, svg.go writes.
package picture
