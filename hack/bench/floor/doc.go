// Package floor measures what the machine can do with no product at all: how fast bytes
// go through three processes to three files, and how fast its disk syncs.
package floor
