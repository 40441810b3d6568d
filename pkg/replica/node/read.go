package node

import (
	"bytes"

	"github.com/tidemark-io/tidemark/internal/guard"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// ReadForReplica is LendToReplica into memory of the caller's own.
func (n *Node) ReadForReplica(offset epoch.Offset, maxBytes int, a core.FetchAnswer) (core.FetchResponse, error) {
	res, loan, err := n.LendToReplica(offset, maxBytes, a)
	res.Records = bytes.Clone(res.Records)
	loan.Return()
	return res, err
}

// LendToReplica reads from offset on what the answer to a Fetch allows, and gives it
// out only if this replica still leads the same epoch: bytes of a later history must
// not pass for this one's (KAFKA-18723). The records are valid until the loan is returned.
// It is for any goroutine.
func (n *Node) LendToReplica(offset epoch.Offset, maxBytes int, a core.FetchAnswer) (res core.FetchResponse, loan log.Loan, err error) {
	res = core.FetchResponse{HighWatermark: a.HighWatermark, LogStartOffset: a.LogStartOffset, Diverging: a.Diverging}
	if a.Diverging != nil {
		return res, loan, nil
	}
	if offset < a.LogEndOffset {
		if loan, err = n.log.LendToFollower(offset, a.LogEndOffset, maxBytes); err != nil {
			return core.FetchResponse{}, loan, err
		}
		res.Records = loan.Records
	}
	if v := n.View(); (v.Role != core.Leader || v.LeaderEpoch != a.LeaderEpoch) && !guard.Off(guard.FetchedUpToRequestEpoch) {
		loan.Return()
		return core.FetchResponse{}, loan, core.ErrNotLeader
	}
	return res, loan, nil
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
// history leaves this log there (Start is used as the end of that epoch). The records are
// valid until Return.
type Records struct {
	log.Loan
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
	loan, err := n.log.Lend(q.Offset, v.HighWatermark, q.MaxBytes, q.AtLeastOne)
	if err != nil {
		return Records{}, err
	}
	if w := n.View(); w.Role != core.Leader || w.LeaderEpoch != v.LeaderEpoch {
		loan.Return()
		return Records{}, core.ErrNotLeader
	}
	res.Loan = loan
	return res, nil
}
