package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Record is one record of a log, with the epoch that wrote it and the offset at which
// its batch begins.
type Record struct {
	Epoch epoch.LeaderEpoch
	Value string
	Batch epoch.Offset
}

// log is a replica's log without a disk.
type log struct {
	start   epoch.Offset
	flushed epoch.Offset // durable below; counts only with FlushEveryBatch
	lazy    bool         // records are durable only after a flush
	records []Record
	cache   epoch.Cache
}

func (l *log) StartOffset() epoch.Offset { return l.start }
func (l *log) EndOffset() epoch.Offset   { return l.start + epoch.Offset(len(l.records)) }
func (l *log) EpochCache() epoch.Cache   { return l.cache }

// SizeFrom counts records.
func (l *log) SizeFrom(o epoch.Offset) int64 { return int64(l.EndOffset() - max(o, l.start)) }

// FlushedOffset is the end unless the story lets records wait for a flush.
func (l *log) FlushedOffset() epoch.Offset {
	if l.lazy {
		return l.flushed
	}
	return l.EndOffset()
}

// append adds one batch.
func (l *log) append(e epoch.LeaderEpoch, values ...string) {
	base := l.EndOffset()
	l.cache.Assign(e, base)
	for _, v := range values {
		l.records = append(l.records, Record{Epoch: e, Value: v, Batch: base})
	}
}

// truncate cuts the log and returns what went.
func (l *log) truncate(to epoch.Offset) []Record {
	l.cache.TruncateFromEnd(to)
	keep := min(max(0, int(to-l.start)), len(l.records))
	gone := slices.Clone(l.records[keep:])
	l.records = slices.Clone(l.records[:keep])
	l.flushed = min(l.flushed, l.EndOffset())
	return gone
}

// restart empties the log and lets it begin at an offset.
func (l *log) restart(at epoch.Offset) { *l = log{start: at, flushed: at, lazy: l.lazy} }

// raiseStart drops what is below an offset.
func (l *log) raiseStart(to epoch.Offset) {
	if to <= l.start || to > l.EndOffset() {
		return
	}
	l.records = slices.Clone(l.records[to-l.start:])
	l.start, l.flushed = to, max(l.flushed, to)
	l.cache.TruncateFromStart(to)
}

// at is the record at an offset.
func (l *log) at(o epoch.Offset) (Record, bool) {
	if o < l.start || o >= l.EndOffset() {
		return Record{}, false
	}
	return l.records[o-l.start], true
}

func (l *log) copy() *log {
	n := *l
	n.records = slices.Clone(l.records)
	return &n
}

func (l *log) String() string {
	parts := make([]string, len(l.records))
	for i, r := range l.records {
		parts[i] = fmt.Sprintf("%s/%d", r.Value, r.Epoch)
	}
	if n := len(parts); n > 8 {
		parts = append(append(slices.Clone(parts[:3]), fmt.Sprintf("…%d…", n-6)), parts[n-3:]...)
	}
	return strings.Join(parts, " ")
}

// parcel is what an answer to a fetch carries: whole batches.
type parcel struct {
	Base    epoch.Offset
	Records []Record
}

// parcel takes out everything from an offset on, beginning with the batch that holds
// it.
func (l *log) parcel(from epoch.Offset) parcel {
	if r, ok := l.at(from); ok {
		from = max(r.Batch, l.start)
	}
	return parcel{from, slices.Clone(l.records[min(from, l.EndOffset())-l.start:])}
}

func (p parcel) encode() []byte {
	if len(p.Records) == 0 {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil // numbers and strings can always be written
	}
	return b
}

func decode(b []byte) parcel {
	var p parcel
	if len(b) > 0 && json.Unmarshal(b, &p) != nil {
		return parcel{}
	}
	return p
}

// appendParcel appends what a leader sent, up to the first batch of a later epoch.
func (l *log) appendParcel(p parcel, maxEpoch epoch.LeaderEpoch) error {
	for _, r := range p.Records {
		if r.Epoch > maxEpoch {
			break
		}
		if p.Base != l.EndOffset() {
			return fmt.Errorf("the batch at offset %d does not follow the log's end %d", p.Base, l.EndOffset())
		}
		l.cache.Assign(r.Epoch, l.EndOffset())
		l.records = append(l.records, r)
		p.Base++
	}
	return nil
}
