package node

import (
	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// ReadForReplica reads from offset on what the answer to a Fetch allows, and gives it
// out only if this replica still leads the same epoch: bytes of a later history must
// not pass for this one's (KAFKA-18723). It is for any goroutine.
func (n *Node) ReadForReplica(offset epoch.Offset, maxBytes int, a core.FetchAnswer) (core.FetchResponse, error) {
	res := core.FetchResponse{HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset, Diverging: a.Diverging}
	if a.Diverging != nil {
		return res, nil
	}
	if offset < a.LogEndOffset {
		records, err := n.log.ReadForFollower(offset, a.LogEndOffset, maxBytes)
		if err != nil {
			return core.FetchResponse{}, err
		}
		res.Records = records
	}
	if v := n.View(); (v.Role != core.Leader || v.LeaderEpoch != a.LeaderEpoch) && !guard.Off(guard.FetchedUpToRequestEpoch) {
		return core.FetchResponse{}, core.ErrNotLeader
	}
	return res, nil
}

// Read is a consumer's read.
type Read struct {
	Offset epoch.Offset
	// MaxBytes bounds the records. With AtLeastOne the first batch is returned even
	// if it is larger (KIP-74).
	MaxBytes   int
	AtLeastOne bool
	// CurrentLeaderEpoch is the epoch that the consumer believes in, LastFetchedEpoch
	// that of the last record that it has; NoEpoch skips the check (KIP-320).
	CurrentLeaderEpoch epoch.LeaderEpoch
	LastFetchedEpoch   epoch.LeaderEpoch
}

// Records answers a Read. With Diverging set there are no records: the reader's
// history leaves this log there (Start is used as the end of that epoch).
type Records struct {
	Records        []byte
	HighWatermark  epoch.Offset
	LogStartOffset epoch.Offset
	Diverging      *epoch.Entry
}

// Read reads up to the high watermark of a view. It is for any goroutine.
func (n *Node) Read(v *View, q Read) (Records, error) {
	if err := v.Leads(q.CurrentLeaderEpoch); err != nil {
		return Records{}, err
	}
	res := Records{HighWatermark: v.HighWatermark, LogStartOffset: v.LogStartOffset}
	if q.LastFetchedEpoch != epoch.NoEpoch {
		e, end := v.EpochCache.EndOffset(q.LastFetchedEpoch, v.LogEndOffset)
		if e == epoch.NoEpoch || q.Offset < v.LogStartOffset {
			return Records{}, core.ErrOffsetOutOfRange
		}
		if e < q.LastFetchedEpoch || end < q.Offset {
			res.Diverging = &epoch.Entry{Epoch: e, Start: end}
			return res, nil
		}
	}
	switch {
	case q.Offset < v.LogStartOffset || q.Offset > v.LogEndOffset && !v.Behind():
		return Records{}, core.ErrOffsetOutOfRange
	case q.Offset >= v.HighWatermark:
		return res, nil // what is not committed yet is no error (KAFKA-725)
	}
	records, err := n.log.Read(q.Offset, v.HighWatermark, q.MaxBytes, q.AtLeastOne)
	if err != nil {
		return Records{}, err
	}
	if w := n.View(); w.Role != core.Leader || w.LeaderEpoch != v.LeaderEpoch {
		return Records{}, core.ErrNotLeader
	}
	res.Records = records
	return res, nil
}
