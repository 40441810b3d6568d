// Package buffers pools byte slices for requests, answers and reads of the log.
package buffers

import (
	"math/bits"
	"sync"
)

// Buffers are pooled in classes of powers of two, from Smallest to Largest bytes. What is
// larger is left to the garbage collector: keeping it would hold memory that a rare request
// needed once.
const (
	smallestBits = 12
	largestBits  = 22

	Smallest = 1 << smallestBits // 4 KiB
	Largest  = 1 << largestBits  // 4 MiB
)

var pools [largestBits - smallestBits + 1]sync.Pool

func class(n int) int {
	if n <= Smallest {
		return 0
	}
	return bits.Len(uint(n-1)) - smallestBits
}

// Get returns a buffer of length n with arbitrary content.
func Get(n int) []byte {
	c := class(n)
	if c >= len(pools) {
		return make([]byte, n)
	}
	if p, ok := pools[c].Get().(*[]byte); ok {
		return (*p)[:n]
	}
	return make([]byte, n, 1<<(c+smallestBits))
}

// Put gives a buffer back. The caller keeps no slice of it. What did not come from Get is
// left to the garbage collector.
func Put(b []byte) {
	c := class(cap(b))
	if c >= len(pools) || cap(b) != 1<<(c+smallestBits) {
		return
	}
	b = b[:cap(b)]
	pools[c].Put(&b)
}
