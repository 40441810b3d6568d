package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// entry is one record, a batch of its own: its leader epoch and its number.
type entry struct{ epoch, value int8 }

func (e entry) String() string {
	if e == (entry{}) {
		return "nothing"
	}
	return fmt.Sprintf("m%d/%d", e.value, e.epoch)
}

// memoryLog is a log that begins at 0, of which a tail may not be durable.
type memoryLog struct {
	entries []entry
	cache   epoch.Cache
	synced  epoch.Offset
}

// StartOffset, EndOffset, FlushedOffset, EpochCache and SizeFrom are what [core.Log] asks.
func (l *memoryLog) StartOffset() epoch.Offset   { return 0 }
func (l *memoryLog) EndOffset() epoch.Offset     { return epoch.Offset(len(l.entries)) }
func (l *memoryLog) FlushedOffset() epoch.Offset { return l.synced }
func (l *memoryLog) EpochCache() epoch.Cache     { return l.cache }

// SizeFrom counts entries.
func (l *memoryLog) SizeFrom(o epoch.Offset) int64 { return int64(l.EndOffset() - o) }

func (l *memoryLog) clone() *memoryLog {
	n := *l
	n.entries = slices.Clone(l.entries)
	return &n
}

func (l *memoryLog) append(e entry) {
	l.cache.Assign(epoch.LeaderEpoch(e.epoch), l.EndOffset())
	l.entries = append(l.entries, e)
}

func (l *memoryLog) truncate(to epoch.Offset) {
	l.cache.TruncateFromEnd(to)
	l.entries = l.entries[:min(len(l.entries), int(max(0, to)))]
	l.synced = min(l.synced, l.EndOffset())
}

// encode is the wire form of the records from an offset on; appendEncoded takes it.
func (l *memoryLog) encode(from epoch.Offset) string {
	b := make([]byte, 0, 2*MaxRecords)
	for _, e := range l.entries[from:] {
		b = append(b, byte(e.epoch), byte(e.value))
	}
	return string(b)
}

func (l *memoryLog) appendEncoded(b []byte, maxEpoch epoch.LeaderEpoch) {
	for ; len(b) >= 2; b = b[2:] {
		e := entry{int8(b[0]), int8(b[1])}
		if epoch.LeaderEpoch(e.epoch) > maxEpoch {
			return
		}
		l.append(e)
	}
}

// cacheFits is I8: epochs do not fall, and the cache is what a scan of the log gives,
// apart from epochs without records at the tail.
func (l *memoryLog) cacheFits() error {
	var scan []epoch.Entry
	for o, e := range l.entries {
		switch n := len(scan); {
		case n > 0 && scan[n-1].Epoch > epoch.LeaderEpoch(e.epoch):
			return fmt.Errorf("epoch %d follows epoch %d at offset %d", e.epoch, scan[n-1].Epoch, o)
		case n == 0 || scan[n-1].Epoch < epoch.LeaderEpoch(e.epoch):
			scan = append(scan, epoch.Entry{Epoch: epoch.LeaderEpoch(e.epoch), Start: epoch.Offset(o)})
		}
	}
	have := slices.DeleteFunc(l.cache.Entries(), func(e epoch.Entry) bool { return e.Start >= l.EndOffset() })
	if !slices.Equal(have, scan) {
		return fmt.Errorf("the epoch cache %s does not fit the log %s", l.cache, l)
	}
	return nil
}

func (l *memoryLog) String() string {
	parts := make([]string, len(l.entries))
	for i, e := range l.entries {
		parts[i] = e.String()
	}
	return strings.Join(parts, " ")
}
