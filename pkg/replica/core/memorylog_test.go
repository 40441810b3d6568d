package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// memoryLog is a log without a disk: one record per batch.
type memoryLog struct {
	start   epoch.Offset
	entries []entry
	cache   epoch.Cache
}

type entry struct {
	epoch epoch.LeaderEpoch
	value string
}

func (l *memoryLog) StartOffset() epoch.Offset     { return l.start }
func (l *memoryLog) EndOffset() epoch.Offset       { return l.start + epoch.Offset(len(l.entries)) }
func (l *memoryLog) SizeFrom(o epoch.Offset) int64 { return int64(l.EndOffset() - o) }
func (l *memoryLog) FlushedOffset() epoch.Offset   { return l.EndOffset() }
func (l *memoryLog) EpochCache() epoch.Cache       { return l.cache }

func (l *memoryLog) append(e epoch.LeaderEpoch, value string) {
	l.cache.Assign(e, l.EndOffset())
	l.entries = append(l.entries, entry{e, value})
}

func (l *memoryLog) truncate(to epoch.Offset) {
	l.cache.TruncateFromEnd(to)
	if to < l.EndOffset() {
		l.entries = l.entries[:max(0, to-l.start)]
	}
}

func (l *memoryLog) String() string {
	parts := make([]string, len(l.entries))
	for i, e := range l.entries {
		parts[i] = fmt.Sprintf("%s/%d", e.value, e.epoch)
	}
	if n := len(parts); n > 8 {
		parts = append(append(slices.Clone(parts[:3]), fmt.Sprintf("…%d…", n-6)), parts[n-3:]...)
	}
	return strings.Join(parts, " ")
}

// encode and decode are the wire form of records between these logs.
func (l *memoryLog) encode(from epoch.Offset) []byte {
	var b []byte
	for _, e := range l.entries[from-l.start:] {
		b = binary.BigEndian.AppendUint32(b, uint32(e.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.value)))
		b = append(b, e.value...)
	}
	return b
}

func (l *memoryLog) appendEncoded(b []byte, maxEpoch epoch.LeaderEpoch) int {
	n := 0
	for ; len(b) > 0; n++ {
		e, size := epoch.LeaderEpoch(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
		if e > maxEpoch {
			break
		}
		l.append(e, string(b[8:8+size]))
		b = b[8+size:]
	}
	return n
}

func countRecords(b []byte) int { return (&memoryLog{}).appendEncoded(b, 1<<30) }
