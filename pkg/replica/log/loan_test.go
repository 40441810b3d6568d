package log

import (
	"bytes"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func lend(t *testing.T, l *Log, from epoch.Offset, maxBytes int) Loan {
	t.Helper()
	n, err := l.Lend(from, l.EndOffset(), maxBytes, true)
	must(t, err)
	return n
}

func TestALoanIsNobodyElses(t *testing.T) {
	l, _ := open(t, newMem(t), config(), false)
	appendOne(t, l, 0, upTo(9)...)
	all, size := readAll(t, l), len(one(0))
	want := func(n Loan, i int) {
		t.Helper()
		if string(n.Records) != string(all[i*size:(i+1)*size]) {
			t.Errorf("the loan of batch %d holds %x", i, n.Records)
		}
	}
	a, b := lend(t, l, 1, 1), lend(t, l, 2, 1)
	want(a, 1)
	a.Return()
	a.Return() // nothing is given back twice
	c, d := lend(t, l, 3, 1), lend(t, l, 4, 1)
	clear(c.Records)
	want(b, 2)
	want(d, 4)
	if kept, err := l.Read(3, 4, 1, true); err != nil || !bytes.Equal(kept, all[3*size:4*size]) {
		t.Errorf("what a borrower writes into a loan is read by others: %x, %v", kept, err)
	}
}

// A reader that goes on where it ended is led by what is remembered of that, and must not be
// led astray once other batches stand there.
func TestReadingOnAfterTheLogHasChanged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, l *Log)
	}{
		{"more is appended", func(t *testing.T, l *Log) { appendOne(t, l, 1, 6, 7) }},
		{"cut there, and other batches", func(t *testing.T, l *Log) {
			must(t, l.TruncateTo(4))
			appendOne(t, l, 2, 14, 15)
		}},
		{"cut before, and larger batches", func(t *testing.T, l *Log) {
			must(t, l.TruncateTo(2))
			_, err := l.Append(2, []batch.Batch{many(20, 2), many(22, 3), many(25, 2)})
			must(t, err)
		}},
		{"emptied, and begun elsewhere", func(t *testing.T, l *Log) {
			must(t, l.TruncateFullyAndStartAt(3))
			appendOne(t, l, 2, 33, 34, 35)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, _ := open(t, newMem(t), config(), false)
			appendOne(t, l, 1, upTo(5)...)
			size := len(one(0))
			for _, from := range []epoch.Offset{0, 2} {
				n := lend(t, l, from, 2*size)
				if next := lastOf(t, n.Records).NextOffset(); next != from+2 {
					t.Fatalf("read from %d to %d", from, next)
				}
				n.Return()
			}
			tc.change(t, l)
			all := readAll(t, l)
			for pos := 0; pos < len(all); {
				b, _, err := batch.Next(all[pos:])
				must(t, err)
				n := lend(t, l, b.BaseOffset(), len(b))
				if string(n.Records) != string(b) {
					t.Errorf("read at %d: %x, want %x", b.BaseOffset(), n.Records, b)
				}
				n.Return()
				pos += len(b)
			}
		})
	}
}
