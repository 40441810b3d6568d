package log

import (
	"bytes"

	"github.com/tidemark-io/tidemark/internal/buffers"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Loan is whole batches in a pooled buffer. The zero value holds none.
type Loan struct {
	// Records are valid until Return, and the borrower's to change.
	Records []byte
	buffer  []byte
	// next is the offset behind the records, position the byte behind them in their segment.
	next     epoch.Offset
	position int64
}

// Return gives the buffer back. Nothing may look at the records afterwards; a second call
// does nothing.
func (n *Loan) Return() {
	if n.buffer != nil {
		buffers.Put(n.buffer)
	}
	*n = Loan{}
}

// keep turns a loan into memory of the caller's own.
func (n *Loan) keep() []byte {
	defer n.Return()
	return bytes.Clone(n.Records)
}
